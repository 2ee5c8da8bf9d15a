"""A tiny checkpoint in the layouts of AutoAWQ, GPTQ and compressed-tensors, with what transformers computes on the weights that they
stand for.

    python generate.py            # all folders
    python generate.py awq ct-*   # some of them

The matrices of ``llama-tiny-bias``'s shape are drawn as integers, scales and zero points, written by the published layouts, and
dequantised here with numpy: ``w[output, input] = (code - zero[group, output]) * scale[group, output]``. Where the package
``compressed-tensors`` is installed, its own decompression of what was written must give the same weights.
"""

from __future__ import annotations

import json
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

import compressed

HERE = Path(__file__).parent
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # output that stands in each place of a word, the lowest bits first
BASE = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
        "eos_token_id": 299}  # fmt: skip
FOLDERS = {
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"},
    "gptq-sym": {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True, "desc_act": False},
    "gptq-v2": {"quant_method": "gptq", "bits": 4, "group_size": -1, "sym": False, "desc_act": False,
                "checkpoint_format": "gptq_v2"},
    "gptq-8": {"quant_method": "gptq", "bits": 8, "group_size": 32, "sym": True, "desc_act": False},
    **compressed.FOLDERS,
}  # fmt: skip


def pack(values: np.ndarray, bits: int, order: list[int]) -> np.ndarray:
    """Packs the last axis into words of 32 bits; place `p` of a word takes the value of its `order[p]`."""
    per_word = 32 // bits
    words = values.reshape(*values.shape[:-1], -1, per_word)[..., order].astype(np.uint32)
    shifts = np.arange(per_word, dtype=np.uint32) * np.uint32(bits)
    return np.bitwise_or.reduce(words << shifts, axis=-1).astype(np.uint32).view(np.int32)


def matrix(how: dict, inputs: int, outputs: int, random: np.random.Generator) -> tuple[dict, np.ndarray]:
    """The stored tensors, by the ends of their names, and the weights `[outputs, inputs]`."""
    if how["quant_method"] == "compressed-tensors":
        return compressed.matrix(how, inputs, outputs, random)
    bits = how["bits"]
    group = inputs if how["group_size"] == -1 else how["group_size"]
    groups, per_word = inputs // group, 32 // bits
    middle = 1 << (bits - 1)
    codes = np.clip(np.round(random.normal(middle, middle / 3, (inputs, outputs))), 0, 2 * middle - 1).astype(np.int64)
    symmetric = how.get("sym", False)
    zeros = np.full((groups, outputs), middle) if symmetric else random.integers(1, 2 * middle, (groups, outputs))
    spread = 3 / middle / inputs**0.5
    scales = (spread * random.uniform(0.5, 1.5, (groups, outputs))).astype(np.float16)
    weights = (codes - zeros.repeat(group, 0)) * scales.astype(np.float64).repeat(group, 0)
    natural = list(range(per_word))
    if how["quant_method"] == "awq":
        stored = {"qweight": pack(codes, bits, AWQ_ORDER), "qzeros": pack(zeros, bits, AWQ_ORDER)}
    else:
        less = 0 if how.get("checkpoint_format") == "gptq_v2" else 1
        stored = {"qweight": np.ascontiguousarray(pack(np.ascontiguousarray(codes.T), bits, natural).T),
                  "qzeros": pack(zeros - less, bits, natural),
                  "g_idx": (np.arange(inputs) // group).astype(np.int32)}  # fmt: skip
    return stored | {"scales": scales}, weights.T.astype(np.float32)


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    wanted = sys.argv[1:] or ["*"]
    for seed, (name, how) in enumerate(FOLDERS.items()):
        if not any(fnmatch(name, pattern) for pattern in wanted):
            continue
        random, folder = np.random.default_rng(seed), HERE / name
        folder.mkdir(exist_ok=True)
        torch.manual_seed(seed)
        model = LlamaForCausalLM._from_config(LlamaConfig(**BASE), attn_implementation="eager").eval()
        stored, quantised = {}, set()
        for path, module in model.named_modules():
            if isinstance(module, torch.nn.Linear) and path != "lm_head":
                parts, weights = matrix(how, module.in_features, module.out_features, random)
                module.weight.data = torch.from_numpy(np.ascontiguousarray(weights))
                stored |= {f"{path}.{part}": torch.as_tensor(values) for part, values in parts.items()}
                quantised.add(path)
        for path, parameter in model.named_parameters():
            if path.removesuffix(".weight") not in quantised:
                spread = 0.05 if path == "lm_head.weight" else 1.0
                parameter.data = (1.0 + 0.2 * torch.randn(parameter.shape) if "norm" in path else spread * torch.randn(parameter.shape)).half().float()
                stored[path] = parameter.data.half()
        save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "rope_theta": 10000.0, **BASE}
        (folder / "config.json").write_text(json.dumps(config | {"quantization_config": how}, indent=1) + "\n")
        shutil.copy(HERE.parent / "models" / "llama-tiny" / "tokenizer.json", folder)
        ids = torch.randint(0, 297, (40,)).tolist()
        logits = model(torch.tensor([ids])).logits[0]
        save_file({"logits": logits[[0, 7, 39]].contiguous()}, folder / "golden.safetensors")
        (folder / "golden.json").write_text(json.dumps({"ids": ids, "rows": [0, 7, 39]}) + "\n")
        print(name, "logits spread by", round(logits.std().item(), 2))


if __name__ == "__main__":
    main()
