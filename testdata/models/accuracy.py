"""What llama.cpp's 4-bit and 8-bit formats lose, for `lm eval` to be held against.

    python accuracy.py MODEL conversations.jsonl --write text.txt   # renders conversations with the model's template
    python accuracy.py MODEL text.txt                               # KL divergences on a text

Every matrix, the embedding included, goes through the package ``gguf`` to Q4_0 or Q8_0 and back, and what enters a
linear layer is rounded to 8 bits in blocks of 32, as llama.cpp does; everything else is transformers in f32. Windows
and scored tokens are those of ``lm eval`` without a prefix; KL is from the f32 model's distribution, in nats.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from gguf import quants
from gguf.constants import GGMLQuantizationType as Format
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

BLOCK = 32
ROWS = 64  # of logits in double precision at a time


def through(format: Format, weight: Tensor) -> Tensor:
    """The weight as the format keeps it; rows are filled up with zeros to whole blocks."""
    width = weight.shape[1]
    padded = nn.functional.pad(weight, (0, -width % BLOCK)).numpy()
    kept = quants.dequantize(quants.quantize(np.ascontiguousarray(padded), format), format)
    return torch.from_numpy(kept)[:, :width].contiguous()


def rounded(x: Tensor) -> Tensor:
    """Activations as llama.cpp multiplies them: 8 bits and an f16 scale for each 32."""
    width = x.shape[-1]
    blocks = nn.functional.pad(x, (0, -width % BLOCK)).unflatten(-1, (-1, BLOCK))
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    quants = torch.round(blocks / scale.where(scale > 0, torch.ones_like(scale)))
    return (quants * scale.half().float()).flatten(-2)[..., :width]


def quantised(path: Path, format: Format, round_activations: bool) -> PreTrainedModel:
    model = load(path)
    matrices = {m.weight for m in model.modules() if isinstance(m, nn.Linear | nn.Embedding)}
    with torch.no_grad():
        for weight in matrices:  # a set: tied weights go through once
            weight.copy_(through(format, weight))
    if round_activations:
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.register_forward_pre_hook(lambda _, inputs: (rounded(inputs[0]), *inputs[1:]))
    return model


def load(path: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()


def log_probs(model: PreTrainedModel, ids: Tensor) -> Iterator[Tensor]:
    """Logarithms of the probabilities after every token but the last, in pieces of rows."""
    logits = model(ids[None], use_cache=False).logits[0, :-1]
    return (rows.double().log_softmax(-1) for rows in logits.split(ROWS))


def summary(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


@torch.inference_mode()
def measure(path: Path, text: str, context: int) -> None:
    ids = torch.tensor(AutoTokenizer.from_pretrained(path).encode(text, add_special_tokens=False))
    windows = [w for w in ids.split(context) if len(w) > 1]
    base = load(path)
    loss = [-p[i, t].item() for w in windows for i, t, p in followed(base, w)]
    mean, error = summary(loss)
    print(f"{len(loss)} of {len(ids)} tokens scored, perplexity in f32 {np.exp(mean):.4f} ± {np.exp(mean) * error:.4f}")
    print("| weights | activations | KL divergence | same top token |\n|---|---|---|---|")
    for format in (Format.Q4_0, Format.Q8_0):
        for name, round_activations in (("f32", False), ("8 bits per 32", True)):
            model = quantised(path, format, round_activations)
            kl, same = [], []
            for window in windows:
                for p, q in zip(log_probs(base, window), log_probs(model, window)):
                    kl += (p.exp() * (p - q)).sum(-1).tolist()
                    same += (p.argmax(-1) == q.argmax(-1)).tolist()
            mean, error = summary(kl)
            print(f"| {format.name} | {name} | {mean:.4e} ± {error:.1e} | {100 * np.mean(same):.2f} % |")


def followed(model: PreTrainedModel, window: Tensor) -> Iterator[tuple[int, int, Tensor]]:
    """Row, the token that follows, and the piece that has the row."""
    for piece, targets in zip(log_probs(model, window), window[1:].split(ROWS)):
        yield from ((i, t, piece) for i, t in enumerate(targets.tolist()))


def render(path: Path, conversations: Path) -> str:
    """Conversations as the model's template writes them, one after another."""
    tokenizer = AutoTokenizer.from_pretrained(path)
    lines = map(json.loads, conversations.read_text().splitlines())
    return "".join(
        tokenizer.apply_chat_template(line["messages"], tools=line["tools"] or None, tokenize=False) for line in lines
    )


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=Path)
    p.add_argument("file", type=Path, help="a text, or with --write conversations, one a line")
    p.add_argument("--write", type=Path, help="write the rendered conversations to this file, and stop")
    p.add_argument("--context", type=int, default=512, help="tokens of a window")
    p.add_argument("--threads", type=int, default=2)
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    if args.write:
        args.write.write_text(render(args.model, args.file))
    else:
        measure(args.model, args.file.read_text(), args.context)


if __name__ == "__main__":
    main()
