"""Embeddings of folders of sentence-transformers, as it computes them.

    python generate_sentence_transformers.py

Writes ``sentence-transformers/model`` (the decoder of ``../models/qwen3-tiny`` as an embedding model stores it: its tensors
have no ``model.`` before their names, and the tokenizer ends a text with ``<|endoftext|>``), a folder of settings per row of
``RECIPES``, which together with the model's files is a folder of sentence-transformers, and ``golden.json`` with the vectors.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Tokenizer, processors
from transformers import AutoModel, PreTrainedTokenizerFast

HERE = Path(__file__).parent
OUTPUT = HERE / "sentence-transformers"
CHECKPOINT = HERE.parent / "models" / "qwen3-tiny"
WIDTH = 64
DECIMALS = 7
TEXTS = (
    "rain",
    "the rain in the town ran on and on",
    "one on one, and then the other one went on in the rain; the town ran on and on in the rain, on and on",
    "Übergröße: 10 €\nin two lines",
)
MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json")
INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# ``modules`` come after the pooling. ``published`` are settings in the form of older folders, such as Qwen3-Embedding's.
# ``prompts`` of ``ask`` are the arguments of ``encode``.
RECIPES: dict[str, dict[str, Any]] = {
    "last": {
        "pooling": {"pooling_mode": "lasttoken"},
        "modules": lambda: [Normalize()],
        "prompts": {"query": INSTRUCTION, "document": ""},
        "published": True,
        "ask": [{}, {"prompt_name": "query"}, {"prompt_name": "document"}, {"prompt": "Query: "}],
    },
    "mean-dense": {
        "pooling": {"pooling_mode": "mean", "include_prompt": False},
        "modules": lambda: [
            Dense(WIDTH, 48, bias=False, activation_function=torch.nn.Identity()),
            Dense(48, 32, activation_function=torch.nn.Tanh()),
            Normalize(),
        ],
        "prompts": {"query": "search_query: ", "document": "search_document: "},
        "default_prompt_name": "document",
        "ask": [{}, {"prompt_name": "query"}, {"prompt": ""}],
    },
    "cls-short": {
        "pooling": {"pooling_mode": "cls", "include_prompt": False},
        "modules": list,
        "max_seq_length": 12,
        "ask": [{}, {"prompt": "on: "}],
    },
    "mean-short": {
        "pooling": {"pooling_mode": "mean"},
        "modules": list,
        "max_seq_length": 12,
        "published": True,
        "ask": [{}],
    },
}  # fmt: skip


def write_model(folder: Path) -> None:
    """The decoder without its head, and a tokenizer with an end of text."""
    AutoModel.from_pretrained(CHECKPOINT, dtype=torch.bfloat16).save_pretrained(folder)
    tokenizer = Tokenizer.from_file(str(CHECKPOINT / "tokenizer.json"))
    end = "<|endoftext|>"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B:1 {end}:1", special_tokens=[(end, tokenizer.token_to_id(end))]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, pad_token=end, model_max_length=128)
    fast.save_pretrained(folder)


def write_recipe(model: Path, recipe: dict[str, Any], folder: Path) -> None:
    """A folder of sentence-transformers with the model's files."""
    limit = {"max_seq_length": recipe["max_seq_length"]} if "max_seq_length" in recipe else {}
    transformer = Transformer(str(model), model_kwargs={"dtype": torch.bfloat16}, **limit)
    modules = [transformer, Pooling(WIDTH, **recipe["pooling"]), *recipe["modules"]()]
    named = {key: recipe[key] for key in ("prompts", "default_prompt_name") if key in recipe}
    SentenceTransformer(modules=modules, **named).save(str(folder), create_model_card=False)
    for name in MODEL_FILES:  # those that the recipes share, unchanged
        shutil.copyfile(model / name, folder / name)
    if recipe.get("published"):
        publish(recipe, folder)


def publish(recipe: dict[str, Any], folder: Path) -> None:
    """The files in the form of older versions."""
    mode = recipe["pooling"]["pooling_mode"]
    keys = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "mean_sqrt_len": "mean_sqrt_len_tokens",
            "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}  # fmt: skip
    pooling = {"word_embedding_dimension": WIDTH, **{f"pooling_mode_{key}": name == mode for name, key in keys.items()}}
    write_json(folder / "1_Pooling" / "config.json", {**pooling, "include_prompt": True})
    types = ["Transformer", "Pooling", *(type(module).__name__ for module in recipe["modules"]())]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(types)
    ]
    write_json(folder / "modules.json", modules)
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", {**tokenizer, "model_max_length": 128})
    (folder / "sentence_bert_config.json").unlink()
    if "max_seq_length" in recipe:
        write_json(folder / "sentence_bert_config.json",
                   {"max_seq_length": recipe["max_seq_length"], "do_lower_case": False})  # fmt: skip
    named = {"prompts": recipe.get("prompts", {}), "default_prompt_name": None, "similarity_fn_name": "cosine"}
    write_json(folder / "config_sentence_transformers.json", named)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def vectors(folder: Path, recipe: dict[str, Any]) -> list[dict[str, Any]]:
    """The vectors of the texts, one text at a time, and of 16 dimensions."""
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    rows = []
    for ask in recipe["ask"]:
        for text in TEXTS:
            whole = model.encode([text], **ask)[0]
            short = model.encode([text], truncate_dim=16, normalize_embeddings=True, **ask)[0]
            count = model.preprocess([text], prompt=model._resolve_prompt(ask.get("prompt"), ask.get("prompt_name")))
            numbers = {"vector": rounded(whole), "short": rounded(short), "tokens": count["input_ids"].shape[-1]}
            rows.append({"text": text, **ask, **numbers})
        batch = model.encode(list(TEXTS), **ask)
        for row, vector in zip(rows[-len(TEXTS) :], batch, strict=True):
            assert max(abs(a - b) for a, b in zip(row["vector"], vector.tolist(), strict=True)) < 1e-4
    return rows


def rounded(vector: Any) -> list[float]:
    return [round(value, DECIMALS) for value in vector.tolist()]


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        model = Path(temporary) / "model"
        write_model(model)
        (OUTPUT / "model").mkdir(parents=True)
        for name in MODEL_FILES:
            shutil.copyfile(model / name, OUTPUT / "model" / name)
        for name, recipe in RECIPES.items():
            folder = Path(temporary) / name
            write_recipe(model, recipe, folder)
            rows = ",\n".join(map(json.dumps, vectors(folder, recipe)))
            lines.append(f"{json.dumps(name)}: [\n{rows}\n]")
            for path in (path for path in folder.rglob("*") if path.is_file()):
                if path.parent == folder and path.name in MODEL_FILES:
                    continue
                target = OUTPUT / name / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
            print(name, file=sys.stderr)
    (OUTPUT / "golden.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
