"""Pooled hidden states of the tiny checkpoints as transformers computes them.

    python generate.py

Writes ``golden.json``: for one checkpoint of each architecture, the vectors of length 1 that mean and last-token pooling of
``last_hidden_state`` give for two prompts of the checkpoint's own ``golden.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).parent
CHECKPOINTS = HERE.parent / "models"
sys.path.insert(0, str(CHECKPOINTS))

from generate import MODELS, load  # noqa: E402  (the path is set above)

NAMES = (
    "gemma2-tiny", "gemma3-tiny", "gemma3n-tiny", "gemma4-tiny", "gpt-oss-tiny-odd", "granite-tiny", "lfm2-tiny", "llama-tiny",
    "ministral3-tiny", "mistral-tiny", "olmo2-tiny", "olmo3-tiny", "phi3-tiny", "qwen2-tiny", "qwen3-moe-tiny", "qwen3-tiny",
    "qwen3_5-tiny", "smollm3-tiny",
)  # fmt: skip
PROMPTS = (1, 3)  # of 7 tokens and of 70 in most checkpoints: within a page and over two
DECIMALS = 6


@torch.inference_mode()
def vectors(model: Any, ids: list[int]) -> dict[str, list[float]]:
    """The hidden state after the last norm, which the output head reads: mean over all tokens, and the last one."""
    states = model.get_decoder()(torch.tensor([ids]), use_cache=False).last_hidden_state[0].double()
    return {"mean": unit(states.mean(0)), "last": unit(states[-1])}


def unit(vector: Tensor) -> list[float]:
    return [round(value, DECIMALS) for value in (vector / vector.norm()).tolist()]


def main() -> None:
    torch.set_num_threads(1)
    lines = []
    for name in NAMES:
        folder = CHECKPOINTS / name
        model = load(folder, MODELS[name])
        prompts = json.loads((folder / "golden.json").read_text())["prompts"]
        golden = [{"ids": prompts[i]["ids"], **vectors(model, prompts[i]["ids"])} for i in PROMPTS]
        lines.append(f"{json.dumps(name)}: {json.dumps(golden)}")
        print(name)
    (HERE / "golden.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
