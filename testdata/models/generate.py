"""Tiny random checkpoints with what transformers computes for them.

    python generate.py                  # every model
    python generate.py qwen3-tiny       # one of them

Writes an ordinary Hugging Face folder per row of ``MODELS``, with ``golden.json`` (token ids) and
``golden.safetensors`` (logits) in it, then ``faults.json`` and the table in README.md: how far each of the usual
mistakes moves the logits. The run fails when a fault is nearer than ten times the tolerance.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from faults import FAULTS

HERE = Path(__file__).parent
TOLERANCE = 2e-4  # absolute, on logits in f32
FAULT_FACTOR = 10  # a fault has to move some logit by this many tolerances
PROMPT_LENGTHS = (1, 7, 33, 70)  # one token, within a page of 32, just over one, over two
GREEDY_TOKENS = 32
GREEDY_MARGIN = 0.02  # between the two likeliest tokens, so that rounding cannot turn the choice

COMMON = {"vocab_size": 320, "max_position_embeddings": 128, "hidden_act": "silu", "rms_norm_eps": 0.01,
          "bos_token_id": None, "eos_token_id": 299, "pad_token_id": 297, "attention_dropout": 0.0, "use_cache": True}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
# `config.json` as checkpoints in the wild write it (rope_theta, rope_scaling), except for one in the newer spelling.
MODELS: dict[str, dict[str, Any]] = {
    "llama-tiny": {  # 2 query heads a KV head, llama3 rope scaling, no head_dim given
        "dtype": "float32", "shards": 1,
        "config": {**LLAMA, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "attention_bias": False, "mlp_bias": False, "rope_theta": 500000.0,
                   "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 64}},
    },
    "llama-tiny-bias": {  # 3 query heads a KV head, a head wider than hidden / heads, biases, tied
        "dtype": "float16", "shards": 1,
        "config": {**LLAMA, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 24, "tie_word_embeddings": True,
                   "attention_bias": True, "mlp_bias": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}},
    },
    "qwen3-tiny": {  # 4 query heads a KV head, heads * head_dim wider than hidden
        "dtype": "bfloat16", "shards": 1,
        "config": {**QWEN3, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3,
                   "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": False,
                   "attention_bias": False, "rope_theta": 1000000.0, "rope_scaling": None,
                   "use_sliding_window": False, "sliding_window": None, "max_window_layers": 3},
    },
    "qwen3-tiny-window": {  # a KV head for each query head, the upper layers windowed, biases, tied, sharded
        "dtype": "float32", "shards": 2,
        "config": {**QWEN3, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 4,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 32, "tie_word_embeddings": True,
                   "attention_bias": True, "rope_theta": 5000.0, "rope_scaling": None,
                   "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    },
}  # fmt: skip


def tokenizer() -> Tokenizer:
    """A byte-level BPE of 300 entries; the checkpoints' logits are wider (320), as padded ones are."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    text = ["the rain in the town ran on and on", "and then the other one went on in the rain", "one on one"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=297, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(text * 4, trainer)
    made.add_tokens([AddedToken(f"<|unused_{i}|>", normalized=False) for i in range(297 - made.get_vocab_size())])
    names = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    made.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in names])
    assert made.token_to_id("<|im_end|>") == 299
    return made


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor:
    """Weights under which every part matters: scores and logits spread well past 1, norms and biases far from neutral."""
    normal = torch.randn(shape, generator=random)
    if name.endswith("norm.weight"):
        tied_head = name == "model.norm.weight" and config.tie_word_embeddings
        around = 0.4 if tied_head else 1.6 if "q_norm" in name or "k_norm" in name else 1.3
        return around * (0.4 + 1.2 * torch.rand(shape, generator=random))
    if name.endswith(".bias"):
        return 0.5 * normal
    if "embed_tokens" in name:
        return normal
    gain = next((g for part, g in (("q_proj", 1.3), ("k_proj", 1.3), ("lm_head", 1.5)) if part in name), 1.0)
    return normal * gain / math.sqrt(shape[-1])


def write_folder(name: str, row: dict[str, Any], seed: int) -> Path:
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    config = {**row["config"], **COMMON, "dtype": row["dtype"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [299, 297]}, indent=2) + "\n")
    tokenizer().save(str(folder / "tokenizer.json"))
    empty = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    random = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, row["dtype"])
    weights = {n: draw(n, p.shape, empty.config, random).to(dtype) for n, p in empty.named_parameters()}
    names = list(weights)
    if row["shards"] == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        place = {}
        for i in range(row["shards"]):
            file = f"model-{i + 1:05}-of-{row['shards']:05}.safetensors"
            part = names[i * len(names) // row["shards"] : (i + 1) * len(names) // row["shards"]]
            save_file({n: weights[n] for n in part}, folder / file, metadata={"format": "pt"})
            place |= dict.fromkeys(part, file)
        size = sum(w.numel() * w.element_size() for w in weights.values())
        index = {"metadata": {"total_size": size}, "weight_map": place}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    return folder


@torch.inference_mode()
def logits_of(model: Any, ids: list[int]) -> Tensor:
    return model(torch.tensor([ids])).logits[0]


@torch.inference_mode()
def logits_in_pieces(model: Any, ids: list[int], length: int) -> Tensor:
    past, rows = None, []
    for at in range(0, len(ids), length):
        out = model(torch.tensor([ids[at : at + length]]), past_key_values=past, use_cache=True)
        past, rows = out.past_key_values, [*rows, out.logits[0]]
    return torch.cat(rows)


def greedy(model: Any, ids: list[int]) -> tuple[list[int], float]:
    """The greedy continuation, end tokens included, and the least lead of a chosen token."""
    ids, lead, start = list(ids), math.inf, len(ids)
    for _ in range(GREEDY_TOKENS):
        top = logits_of(model, ids)[-1].topk(2)
        lead = min(lead, (top.values[0] - top.values[1]).item())
        ids.append(top.indices[0].item())
    return ids[start:], lead


def rows_of(length: int) -> list[int]:
    """Every row of a short prompt; of a long one the first, the last and those at the borders of a page."""
    return list(range(length)) if length <= 8 else sorted({0, 15, 31, 32, min(64, length - 1), length - 1})


@torch.inference_mode()
def goldens(model: Any, random: torch.Generator) -> tuple[dict[str, Any], dict[str, Tensor]]:
    prompts, tensors = [], {}
    for i, length in enumerate(PROMPT_LENGTHS):
        while True:
            ids = torch.randint(0, COMMON["vocab_size"], (length,), generator=random).tolist()
            tokens, lead = greedy(model, ids)
            if lead > GREEDY_MARGIN:
                break
        whole = logits_of(model, ids)
        for piece in (1, 5):  # the reference agrees with itself before ours is held against it
            assert (logits_in_pieces(model, ids, piece) - whole).abs().max() < TOLERANCE / 4
        rows = rows_of(length)
        tensors[f"prompts.{i}.logits"] = whole[rows].contiguous()
        prompts.append({"ids": ids, "rows": rows, "greedy": tokens})
    embeddings = torch.randn(11, model.config.hidden_size, generator=random)
    tensors["embeddings"] = embeddings
    tensors["embeddings.logits"] = model(inputs_embeds=embeddings[None]).logits[0].contiguous()
    return {"tolerance": TOLERANCE, "prompts": prompts}, tensors


def statistics(model: Any, golden: dict[str, Any]) -> dict[str, float]:
    """How much the logits spread, and how much of a row's attention its favourite key gets (0.04 if all were alike)."""
    ids = golden["prompts"][-1]["ids"]
    with torch.inference_mode():
        out = model(torch.tensor([ids]), output_attentions=True)
    peak = torch.stack([a[0, :, 4:].amax(-1).mean() for a in out.attentions]).mean()
    return {"logits_std": round(out.logits.std().item(), 2), "attention_peak": round(peak.item(), 2)}


def fault_distances(folder: Path, golden: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, float]:
    """The largest change of a golden logit under each fault that this model can have."""
    found = {}
    for fault in FAULTS:
        model = load(folder)
        if not fault.applies(model.config):
            continue
        with fault.inject(model):
            moved = [(logits_of(model, p["ids"])[p["rows"]] - tensors[f"prompts.{i}.logits"]).abs().max().item()
                     for i, p in enumerate(golden["prompts"])]  # fmt: skip
        found[fault.name] = float(f"{max(moved):.3g}")
        assert found[fault.name] >= FAULT_FACTOR * TOLERANCE, f"{folder.name}: {fault.name} hardly shows: {max(moved)}"
    return found


def load(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def table(report: dict[str, Any]) -> str:
    rows = report["models"]
    lines = ["| fault | " + " | ".join(rows) + " |", "|---" * (len(rows) + 1) + "|"]
    for fault in FAULTS:
        cells = [rows[m]["faults"].get(fault.name) for m in rows]
        lines.append(f"| {fault.name} | " + " | ".join("–" if c is None else f"{c:.3g}" for c in cells) + " |")
    for key, title in (("logits_std", "*standard deviation of the logits*"), ("attention_peak", "*attention's favourite*")):
        lines.append(f"| {title} | " + " | ".join(str(rows[m][key]) for m in rows) + " |")
    return "\n".join(lines)


def main() -> None:
    torch.set_num_threads(1)
    path = HERE / "faults.json"
    report = json.loads(path.read_text()) if path.exists() else {"tolerance": TOLERANCE, "models": {}}
    for seed, (name, row) in enumerate(MODELS.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        folder = write_folder(name, row, seed)
        model = load(folder)
        golden, tensors = goldens(model, torch.Generator().manual_seed(1000 + seed))
        (folder / "golden.json").write_text(json.dumps(golden) + "\n")
        save_file(tensors, folder / "golden.safetensors")
        report["models"][name] = {**statistics(model, golden), "faults": fault_distances(folder, golden, tensors)}
    path.write_text(json.dumps(report, indent=1) + "\n")
    readme = HERE / "README.md"
    marked = re.compile(r"(?<=<!-- faults -->\n).*?(?=\n<!-- end -->)", re.DOTALL)
    readme.write_text(marked.sub(lambda _: table(report), readme.read_text()))
    print(table(report))


if __name__ == "__main__":
    main()
