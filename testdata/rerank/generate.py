"""Scores of a reranker of causal form as transformers computes them.

    python generate.py

Writes ``model`` (a tokenizer with tokens ``yes`` and ``no``, and the config of ``../models/qwen3-tiny`` with a longer context; the weights
are that checkpoint's) and ``golden.json``: the relevance of documents to queries as the model card of Qwen3-Reranker computes it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

HERE = Path(__file__).parent
CHECKPOINTS = HERE.parent / "models"
sys.path.insert(0, str(CHECKPOINTS))

from generate import tokenizer  # noqa: E402  (the path is set above)

CHECKPOINT = CHECKPOINTS / "qwen3-tiny"
CONTEXT = 1024
# From the model card.
PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
CASES: list[dict[str, Any]] = [
    {"query": "where is the rain?", "documents": ["the rain in the town ran on and on", "one on one", "Übergröße: 10 €\n", "yes, no"]},
    {"query": "one", "instruction": "Find the number", "documents": ["and then the other one went on in the rain", " one ", "10\n\n"]},
]  # fmt: skip


def encoded(made: PreTrainedTokenizerFast, query: str, document: str, instruction: str) -> list[int]:
    """The parts are tokenised on their own, as the model card does."""
    middle = f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    return [id for text in (PREFIX, middle, SUFFIX) for id in made.encode(text, add_special_tokens=False)]


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    folder = HERE / "model"
    folder.mkdir(exist_ok=True)
    made = tokenizer(["yes\nno\nyes\nno\nyes\nno"] * 4)
    made.save(str(folder / "tokenizer.json"))
    fast = PreTrainedTokenizerFast(tokenizer_object=made)
    yes, no = (made.token_to_id(word) for word in ("yes", "no"))
    assert yes is not None and no is not None
    config = json.loads((CHECKPOINT / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": CONTEXT}, indent=2) + "\n")
    model = AutoModelForCausalLM.from_pretrained(CHECKPOINT, dtype=torch.float32, attn_implementation="eager")
    lines = []
    for case in CASES:
        scores, tokens = [], 0
        for document in case["documents"]:
            ids = encoded(fast, case["query"], document, case.get("instruction", INSTRUCTION))
            logits = model(torch.tensor([ids])).logits[0, -1, [no, yes]].double()
            scores.append(round(torch.softmax(logits, 0)[1].item(), 7))
            tokens += len(ids)
        lines.append(json.dumps({**case, "scores": scores, "tokens": tokens}))
    (HERE / "golden.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
