"""Tiny random checkpoints with what transformers computes for them.

    python generate.py                  # every model, and the table in README.md
    python generate.py qwen3-tiny       # one of them; README.md stays as it is
    python generate.py --readme         # the table alone

Writes an ordinary Hugging Face folder per row of ``rows/``, with ``golden.json`` (token ids), ``golden.safetensors``
(logits) and ``faults.json`` in it: how far each of the usual mistakes moves the logits. The run fails when a fault is
nearer than ten times the tolerance.

A row has ``config`` (as ``config.json`` has it), ``dtype`` and ``shards`` of the file, and where it needs them
``seed``, ``draw(name, shape, config, random)`` for weights that the usual way does not suit (``None`` where it does) and
``tensors(weights, random)``, which turns the model's own tensors into those of the published layout. ``in_pieces`` is
``False`` where the reference's logits depend on the length of a call, ``embedding_scale`` what the reference multiplies
rows by that are given in place of ids, ``rows(model, count)`` what it needs beside rows that no ids stand behind, ``cannot_have`` a set
of common faults that mean nothing for the model, ``lengths`` those of its prompts. ``tied`` says of a model with other parts, whose class
decides by the outer config and by the tensors of the file, whether the head is the embedding.
"""

from __future__ import annotations

import json
import math
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from faults import FAULTS
from rows import all_faults, all_models

HERE = Path(__file__).parent
TOLERANCE = 2e-4  # absolute, on logits in f32
FAULT_FACTOR = 10  # a fault has to move some logit by this many tolerances
PROMPT_LENGTHS = (1, 7, 33, 70)  # one token, within a page of 32, just over one, over two
GREEDY_TOKENS = 32
GREEDY_MARGIN = 0.02  # between the two likeliest tokens, so that rounding cannot turn the choice

MODELS = all_models()


def tokenizer(more: Sequence[str] = ()) -> Tokenizer:
    """A byte-level BPE of 300 entries, trained on ``more`` texts, too; the checkpoints' logits are wider (320), as padded ones are."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    text = ["the rain in the town ran on and on", "and then the other one went on in the rain", "one on one"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=297, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([*text * 4, *more], trainer)
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
    empty = AutoModelForCausalLM.from_config(text_config(folder, row))
    random, own = torch.Generator().manual_seed(seed_of(name, row)), row.get("draw", lambda *_: None)
    dtype, weights = getattr(torch, row["dtype"]), {}
    tied = {"lm_head.weight"} if empty.config.tie_word_embeddings else set()
    for parameter, values in empty.state_dict().items():  # with the buffers that checkpoints hold
        if parameter in tied:
            continue
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
    """Of a whole prompt; a call for one token before it undoes what a longer call left in a dynamic RoPE."""
    model(torch.tensor([ids[:1]]))
    return model(torch.tensor([ids])).logits[0]


def positions(model: Any, first: int, count: int) -> dict[str, Tensor]:
    """Of a later call, for the model that counts from 0 in each."""
    return {"position_ids": torch.arange(first, first + count)[None]} if model.config.model_type == "bamba" else {}


@torch.inference_mode()
def logits_in_pieces(model: Any, ids: list[int], length: int) -> Tensor:
    past, rows = None, []
    for at in range(0, len(ids), length):
        piece = ids[at : at + length]
        out = model(torch.tensor([piece]), past_key_values=past, use_cache=True, **positions(model, at, len(piece)))
        past, rows = out.past_key_values, [*rows, out.logits[0]]
    return torch.cat(rows)


@torch.inference_mode()
def greedy(model: Any, prompt: list[int]) -> tuple[list[int], float]:
    """The greedy continuation, end tokens included, and the least lead of a chosen token."""
    model(torch.tensor([prompt[:1]]))
    ids, lead, past = list(prompt), math.inf, None
    while len(ids) < len(prompt) + GREEDY_TOKENS:
        new = ids if past is None else ids[-1:]
        out = model(torch.tensor([new]), past_key_values=past, use_cache=True, **positions(model, len(ids) - len(new), len(new)))
        past, top = out.past_key_values, out.logits[0, -1].topk(2)
        lead = min(lead, (top.values[0] - top.values[1]).item())
        ids.append(top.indices[0].item())
    return ids[len(prompt) :], lead


def rows_of(length: int) -> list[int]:
    """Every row of a short prompt; of a long one the first, the last and those at the borders of a page."""
    return list(range(length)) if length <= 8 else sorted({0, 15, 31, 32, min(64, length - 1), length - 1})


@torch.inference_mode()
def goldens(row: dict[str, Any], model: Any, random: torch.Generator) -> tuple[dict[str, Any], dict[str, Tensor]]:
    prompts, tensors = [], {}
    for i, length in enumerate(row.get("lengths", PROMPT_LENGTHS)):
        while True:
            ids = torch.randint(0, model.config.vocab_size, (length,), generator=random).tolist()
            tokens, lead = greedy(model, ids)
            if lead > GREEDY_MARGIN:
                break
        whole = logits_of(model, ids)
        for piece in (1, 5) if row.get("in_pieces", True) else ():  # the reference agrees with itself before ours is held against it
            assert (logits_in_pieces(model, ids, piece) - whole).abs().max() < TOLERANCE / 4
        rows = rows_of(length)
        tensors[f"prompts.{i}.logits"] = whole[rows].contiguous()
        prompts.append({"ids": ids, "rows": rows, "greedy": tokens})
    embeddings = torch.randn(11, model.config.hidden_size, generator=random)
    tensors["embeddings"] = embeddings
    given, beside = embeddings[None] / row.get("embedding_scale", 1.0), row.get("rows", lambda *_: {})(model, len(embeddings))
    tensors["embeddings.logits"] = model(inputs_embeds=given, **beside).logits[0].contiguous()
    ways = {"rows_stand_for_ids": False} if beside else {}
    return {"tolerance": TOLERANCE, **ways, "prompts": prompts}, tensors


def statistics(model: Any, golden: dict[str, Any]) -> dict[str, float]:
    """How much the logits spread, and how much of a row's attention its favourite key gets (0.04 if all were alike)."""
    ids = golden["prompts"][-1]["ids"]
    with torch.inference_mode():
        out = model(torch.tensor([ids]), output_attentions=True)
    peak = torch.stack([a[0, :, 4:].amax(-1).mean() for a in out.attentions or () if a is not None]).mean()
    return {"logits_std": round(out.logits.std().item(), 2), "attention_peak": round(peak.item(), 2)}


def fault_distances(
    row: dict[str, Any], folder: Path, golden: dict[str, Any], tensors: dict[str, Tensor]
) -> dict[str, float]:
    """The largest change of a golden logit under each fault that this model can have."""
    found = {}
    for fault in [*FAULTS, *all_faults()]:
        model = load(folder, row)
        if fault.name in row.get("cannot_have", ()) or not fault.applies(model):
            continue
        with fault.inject(model):
            moved = [(logits_of(model, p["ids"])[p["rows"]] - tensors[f"prompts.{i}.logits"]).abs().max().item()
                     for i, p in enumerate(golden["prompts"])]  # fmt: skip
        found[fault.name] = float(f"{max(moved):.3g}")
        assert found[fault.name] >= FAULT_FACTOR * TOLERANCE, f"{folder.name}: {fault.name} hardly shows: {max(moved)}"
    return found


def text_config(folder: Path, row: dict[str, Any]) -> Any:
    """That of the text model, with what the class of the whole model knows of the head."""
    config = AutoConfig.from_pretrained(folder).get_text_config()
    config.tie_word_embeddings = row.get("tied", config.tie_word_embeddings)
    return config


def load(folder: Path, row: dict[str, Any]) -> Any:
    """The text model, which may be a part of what the folder holds."""
    config = text_config(folder, row)
    config.allow_global_per_layer_attribute_access = True  # Gemma 4's heads have two widths; statistics and faults ask for one
    inner = {
        r"^(model\.language_model|language_model\.model|model\.text_model)\.": "model.",
        r"^language_model\.lm_head\.": "lm_head.",
    }
    return AutoModelForCausalLM.from_pretrained(
        folder, config=config, key_mapping=inner, dtype=torch.float32, attn_implementation="eager"
    ).eval().float()  # of quantised weights it makes bfloat16 whatever it is asked for


def generate(name: str, row: dict[str, Any]) -> None:
    folder = write_folder(name, row)
    model = load(folder, row)
    golden, tensors = goldens(row, model, torch.Generator().manual_seed(1000 + seed_of(name, row)))
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    save_file(tensors, folder / "golden.safetensors")
    found = {**statistics(model, golden), "faults": fault_distances(row, folder, golden, tensors)}
    (folder / "faults.json").write_text(json.dumps(found, indent=1) + "\n")


def table() -> str:
    lines = ["| model | faults | the one that shows least | moves logits by | their spread | attention's favourite |"]
    lines.append("|---" * 6 + "|")
    for name in sorted(MODELS):
        found = json.loads((HERE / name / "faults.json").read_text())
        fault, least = min(found["faults"].items(), key=lambda fault: fault[1])
        cells = [f"`{name}`", len(found["faults"]), fault, f"{least:.3g}", found["logits_std"], found["attention_peak"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def write_readme() -> None:
    readme = HERE / "README.md"
    marked = re.compile(r"(?<=<!-- faults -->\n).*?(?=\n<!-- end -->)", re.DOTALL)
    readme.write_text(marked.sub(lambda _: table(), readme.read_text(), count=1))


def main() -> None:
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    wanted = sys.argv[1:]
    for name in [] if wanted == ["--readme"] else wanted or MODELS:
        generate(name, MODELS[name])
        print(name)
    if wanted in ([], ["--readme"]):
        write_readme()


if __name__ == "__main__":
    main()
