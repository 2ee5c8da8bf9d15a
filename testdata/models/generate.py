"""Tiny random checkpoints with what transformers computes for them.

    python generate.py                  # every model
    python generate.py qwen3-tiny       # one of them

Writes an ordinary Hugging Face folder per row of ``rows/``, with ``golden.json`` (token ids) and
``golden.safetensors`` (logits) in it, then ``faults.json`` and the table in README.md: how far each of the usual
mistakes moves the logits. The run fails when a fault is nearer than ten times the tolerance.

A row has ``config`` (as ``config.json`` has it), ``dtype`` and ``shards`` of the file, and where it needs them
``seed``, ``draw(name, shape, config, random)`` for weights that the usual way does not suit (``None`` where it does) and
``tensors(weights, random)``, which turns the model's own tensors into those of the published layout.
"""

from __future__ import annotations

import json
import math
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from faults import FAULTS
from rows import all_faults, all_models

HERE = Path(__file__).parent
TOLERANCE = 2e-4  # absolute, on logits in f32
FAULT_FACTOR = 10  # a fault has to move some logit by this many tolerances
PROMPT_LENGTHS = (1, 7, 33, 70)  # one token, within a page of 32, just over one, over two
GREEDY_TOKENS = 32
GREEDY_MARGIN = 0.02  # between the two likeliest tokens, so that rounding cannot turn the choice

MODELS = all_models()


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


def seed_of(name: str, row: dict[str, Any]) -> int:
    """From the name, so that a new row moves no other."""
    return row.get("seed", zlib.crc32(name.encode()))


def write_folder(name: str, row: dict[str, Any]) -> Path:
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    config = {**row["config"], "dtype": row["dtype"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [299, 297]}, indent=2) + "\n")
    tokenizer().save(str(folder / "tokenizer.json"))
    empty = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    random, own = torch.Generator().manual_seed(seed_of(name, row)), row.get("draw", lambda *_: None)
    dtype, weights = getattr(torch, row["dtype"]), {}
    for parameter, values in empty.named_parameters():
        drawn = own(parameter, values.shape, empty.config, random)
        drawn = draw(parameter, values.shape, empty.config, random) if drawn is None else drawn
        weights[parameter] = drawn.to(dtype)
    weights = row.get("tensors", lambda weights, _: weights)(weights, random)
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
            ids = torch.randint(0, model.config.vocab_size, (length,), generator=random).tolist()
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
    for fault in [*FAULTS, *all_faults()]:
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
    lines = ["| model | faults | the one that shows least | moves logits by | their spread | attention's favourite |"]
    lines.append("|---" * 6 + "|")
    for name, row in sorted(report["models"].items()):
        fault, least = min(row["faults"].items(), key=lambda fault: fault[1])
        cells = [f"`{name}`", len(row["faults"]), fault, f"{least:.3g}", row["logits_std"], row["attention_peak"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    torch.set_num_threads(1)
    path = HERE / "faults.json"
    report = json.loads(path.read_text()) if path.exists() else {"tolerance": TOLERANCE, "models": {}}
    for name, row in MODELS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        folder = write_folder(name, row)
        model = load(folder)
        golden, tensors = goldens(model, torch.Generator().manual_seed(1000 + seed_of(name, row)))
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
