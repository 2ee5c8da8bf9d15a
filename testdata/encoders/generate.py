"""Tiny random encoders as folders of sentence-transformers, with what it computes for them.

    python generate.py                # every folder
    python generate.py bert-mean      # one of them

Writes a folder per row of ``rows.py``: the files of a ``SentenceTransformer`` or a ``CrossEncoder``, and ``golden.json`` with its vectors or
scores. The run fails when a fault of the row (a part of the model left out or done in another usual way) moves the results by less than
ten times the tolerance.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedTokenizerFast

from transformers.utils import logging

import transformers
from rows import ROWS
from tokenizer import MAKERS, TEXTS

HERE = Path(__file__).parent
DECIMALS = 7
TOLERANCE = 1e-4
FAULT_FACTOR = 10
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[3]), (TEXTS[2], TEXTS[2]), (TEXTS[3], TEXTS[0]), ("rain", "")]


def draw(name: str, shape: torch.Size, random: torch.Generator) -> Tensor:
    """Weights whose every part matters: norms around one, biases, tables of about the embeddings' size."""
    normal = torch.randn(shape, generator=random)
    if "norm" in name.lower() and name.endswith("weight"):
        return 1 + 0.3 * normal
    if len(shape) == 1:
        return 0.3 * normal
    if "embedding" in name or "embed_tokens" in name or "attention_bias" in name:
        return 0.7 * normal
    return 1.4 * normal / math.sqrt(shape[-1])


def model_of(row: dict[str, Any], seed: int) -> nn.Module:
    config = AutoConfig.for_model(**row["config"])
    for key, value in row.get("attributes", {}).items():
        setattr(config, key, value)
    model = getattr(transformers, row["class"])(config)
    random = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, row["dtype"])
    weights = {name: draw(name, value.shape, random).to(dtype) for name, value in model.named_parameters()}
    model.load_state_dict(weights, strict=False)
    return model.to(dtype).eval()


def write(row: dict[str, Any], folder: Path, seed: int) -> None:
    """The files of the model, then those of sentence-transformers."""
    made = MAKERS[row["tokenizer"]]()
    names = {key: f"{token}" for key, token in made.names.items()}
    inputs = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]} if row.get("token_types") else {}
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made.tokenizer, model_max_length=row.get("model_max_length", 10**9), **names, **inputs
    )
    row["config"]["vocab_size"] = fast.vocab_size + row.get("spare_rows", 0)
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        model = model_of(row, seed)
        model.save_pretrained(base)
        fast.save_pretrained(base)
        if "modules" not in row:
            for path in base.iterdir():
                shutil.copyfile(path, folder / path.name)
        else:
            limit = {"max_seq_length": row["max_seq_length"]} if "max_seq_length" in row else {}
            transformer = Transformer(str(base), model_kwargs={"dtype": getattr(torch, row["dtype"])}, **limit)
            pooling = Pooling(model.config.hidden_size, **row["pooling"])
            torch.manual_seed(seed)
            named = {key: row[key] for key in ("prompts", "default_prompt_name") if key in row}
            modules = [transformer, pooling, *row["modules"]()]
            SentenceTransformer(modules=modules, **named).save(str(folder), create_model_card=False)
            # The weights under the names of the whole model's class.
            shutil.copyfile(base / "model.safetensors", folder / "model.safetensors")
            shutil.copyfile(base / "config.json", folder / "config.json")
        for change in row.get("files", []):
            change(folder)


def embedded(folder: Path, row: dict[str, Any], fault: Any = None) -> list[dict[str, Any]]:
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32, "attn_implementation": "eager"})
    if fault:
        fault(model[0].auto_model)
    rows = []
    for ask in row.get("ask", [{}]):
        for text in TEXTS:
            vector = model.encode([text], **ask)[0]
            ids = model.preprocess([text], prompt=model._resolve_prompt(ask.get("prompt"), ask.get("prompt_name")))["input_ids"]
            rows.append({"text": text, **ask, "ids": ids[0].tolist(), "vector": rounded(vector)})
        batch = model.encode(list(TEXTS), **ask)
        for golden, vector in zip(rows[-len(TEXTS) :], batch, strict=True):
            assert fault or max(abs(a - b) for a, b in zip(golden["vector"], vector.tolist(), strict=True)) < 1e-4
    return rows


def scored(folder: Path, row: dict[str, Any], fault: Any = None) -> list[dict[str, Any]]:
    model = CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": torch.float32, "attn_implementation": "eager"})
    if fault:
        fault(model[0].model if hasattr(model[0], "model") else model.model)
    rows = []
    for pair in PAIRS:
        ids = model[0].preprocess([pair])["input_ids"][0].tolist()
        scores = model.predict([pair], convert_to_tensor=True)[0].reshape(-1)
        logits = model.predict([pair], activation_fn=nn.Identity(), convert_to_tensor=True)[0].reshape(-1)
        rows.append({"pair": pair, "ids": ids, "scores": rounded(scores), "logits": rounded(logits)})
    return rows


def rounded(vector: Any) -> list[float]:
    return [round(value, DECIMALS) for value in vector.tolist()]


def distance(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> float:
    key = "vector" if "vector" in one[0] else "logits"
    pairs = [(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x[key], y[key], strict=True)]
    return max(abs(a - b) for a, b in pairs)


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    wanted = sys.argv[1:] or list(ROWS)
    for name in wanted:
        row, folder = ROWS[name], HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write(row, folder, zlib.crc32(name.encode()))
        for junk in ("README.md", "special_tokens_map.json"):
            (folder / junk).unlink(missing_ok=True)
        compute = embedded if "pooling" in row else scored
        golden = compute(folder, row)
        for title, fault in row.get("faults", {}).items():
            far = distance(golden, compute(folder, row, fault))
            assert far > FAULT_FACTOR * TOLERANCE, f"{name}: {title} moves the results by {far:.1e} only"
        values = [value for case in golden for value in case.get("vector", case.get("logits"))]
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in golden)
        (folder / "golden.json").write_text(f"[\n{lines}\n]\n")
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{name}: {size // 1000} kB, values up to {max(map(abs, values)):.2f}", file=sys.stderr)
        assert size < 400_000


if __name__ == "__main__":
    main()
