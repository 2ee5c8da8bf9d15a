"""Importance matrices of tiny checkpoints, computed by transformers.

    python generate.py          # every file
    python generate.py phi3-tiny

Hooks add up the squares of what enters each linear layer of the model in f32, over `text.txt` in windows of 32 tokens. The sums
are written by the package `gguf` in the layout of llama.cpp's `tools/imatrix/imatrix.cpp`, under the names of its converter.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf.constants import MODEL_ARCH
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

HERE = Path(__file__).parent
WINDOW = 32
MODELS = {
    "llama-tiny": MODEL_ARCH.LLAMA,  # separate head
    "llama-tiny-bias": MODEL_ARCH.LLAMA,  # tied head, biases
    "phi3-tiny": MODEL_ARCH.PHI3,  # fused projections
    "qwen3-moe-tiny": MODEL_ARCH.QWEN3MOE,  # experts
}


class Sums:
    """Sums of squares and numbers of rows, by name and expert."""

    def __init__(self, names: gguf.TensorNameMap) -> None:
        self.names = names
        self.squares: dict[str, dict[int, Tensor]] = defaultdict(dict)
        self.counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))

    def add(self, module: str, expert: int, x: Tensor) -> None:
        name = self.names.get_name(f"{module}.weight", try_suffixes=(".weight",))
        assert name, module
        x = x.reshape(-1, x.shape[-1]).double()
        self.squares[name][expert] = self.squares[name].get(expert, 0) + x.square().sum(0)
        self.counts[name][expert] += len(x)


def record_linear(sums: Sums, name: str, module: nn.Linear) -> None:
    module.register_forward_pre_hook(lambda _, inputs: sums.add(name, 0, inputs[0]))


def record_experts(sums: Sums, name: str, module: nn.Module) -> None:
    """Rows of each expert, and what its gate lets through, computed from its weights."""

    def hook(experts: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        rows, chosen, _ = inputs
        for expert in range(experts.num_experts):
            x = rows[(chosen == expert).any(-1)]
            gate, up = (x @ experts.gate_up_proj[expert].T).chunk(2, -1)
            for projection in ("gate_proj", "up_proj"):
                sums.add(f"{name}.{projection}", expert, x)
            sums.add(f"{name}.down_proj", expert, experts.act_fn(gate) * up)

    module.register_forward_pre_hook(hook)


def record(model: PreTrainedModel, sums: Sums) -> None:
    tied = model.config.tie_word_embeddings
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            record_linear(sums, "model.embed_tokens" if tied and name == "lm_head" else name, module)
        elif hasattr(module, "num_experts") and hasattr(module, "gate_up_proj"):
            record_experts(sums, name, module)


@torch.inference_mode()
def generate(model_name: str, arch: MODEL_ARCH) -> None:
    path = HERE.parent / "models" / model_name
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
    sums = Sums(gguf.get_tensor_name_map(arch, model.config.num_hidden_layers))
    record(model, sums)
    text = (HERE / "text.txt").read_text()
    ids = torch.tensor(AutoTokenizer.from_pretrained(path).encode(text, add_special_tokens=False))
    windows = ids.split(WINDOW)
    for window in windows:
        model(window[None], use_cache=False)
    writer = gguf.GGUFWriter(HERE / f"{model_name}.gguf", arch="")
    writer.kv_data[0].clear()  # `general.architecture`, which these files lack
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["text.txt"])
    writer.add_uint32("imatrix.chunk_count", len(windows))
    writer.add_uint32("imatrix.chunk_size", WINDOW)
    for name in sorted(sums.squares):
        experts = sorted(sums.squares[name])
        stacked = torch.stack([sums.squares[name][expert] for expert in experts])
        writer.add_tensor(f"{name}.in_sum2", stacked.numpy().astype(np.float32))
        counts = [[sums.counts[name][expert]] for expert in experts]
        writer.add_tensor(f"{name}.counts", np.array(counts, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        generate(name, MODELS[name])
