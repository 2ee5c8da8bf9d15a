"""Writes filters.json: logits before and after each filter, for tests/filters.rs.

    python filters.py        (torch 2.15, transformers 5.23)

The filters that transformers has are its own. DRY, top-n-sigma and XTC are written out below from their published
descriptions, in the plainest form: comparisons of whole suffixes, softmax by definition.
"""

import json
import math
from pathlib import Path

import torch
from transformers.generation import logits_process as hf

WIDTH = 48
generator = torch.Generator().manual_seed(15)


def row(scale):
    """Random logits; three decimals, so that the file is exact."""
    values = torch.randn(WIDTH, generator=generator) * scale
    return [round(value, 3) for value in values.tolist()]


def text(length, distinct):
    return torch.randint(0, distinct, (length,), generator=generator).tolist()


def softmax(logits):
    top = max(logits)
    weights = [math.exp(logit - top) for logit in logits]
    return [weight / sum(weights) for weight in weights]


def of_transformers(processor):
    def apply(ids, logits):
        scores = torch.tensor([logits], dtype=torch.float32)
        # An empty text is one without tokens, not one without a shape.
        tokens = torch.tensor([ids], dtype=torch.long).reshape(1, len(ids))
        return processor(tokens, scores)[0].tolist()

    return apply


def top_n_sigma(n):
    """arXiv 2411.07641: logits below max - n * sigma are dropped."""

    def apply(_, logits):
        mean = sum(logits) / len(logits)
        sigma = math.sqrt(sum((logit - mean) ** 2 for logit in logits) / len(logits))
        return [logit if logit >= max(logits) - n * sigma else -math.inf for logit in logits]

    return apply


def xtc(threshold):
    """text-generation-webui pull request 6335, at probability 1: of the tokens of at least the threshold all but the least
    probable are removed."""

    def apply(_, logits):
        probabilities = softmax(logits)
        top = [p for p in probabilities if p >= threshold]
        return [-math.inf if top and p > min(top) else logit for p, logit in zip(probabilities, logits)]

    return apply


def dry(multiplier, base, allowed_length, last_n=None, breakers=()):
    """text-generation-webui pull request 5677. Token t is the letter chr(t)."""

    def apply(ids, logits):
        ids = ids if last_n is None else ids[len(ids) - min(last_n, len(ids)):]
        logits = list(logits)
        for token in range(len(logits)):
            if chr(token) in breakers:
                continue
            longest = 0
            for position in (at for at in range(len(ids)) if ids[at] == token):
                length = 0
                # The last `length + 1` tokens, without a breaker among them, also end before `position`.
                while length < position and chr(ids[-1 - length]) not in breakers:
                    if ids[position - 1 - length] != ids[-1 - length]:
                        break
                    length += 1
                longest = max(longest, length)
            if longest >= allowed_length:
                logits[token] -= multiplier * base ** (longest - allowed_length)
        return logits

    return apply


CASES = [
    ({"repetition_penalty": 1.3}, of_transformers(hf.RepetitionPenaltyLogitsProcessor(1.3)), 2),
    ({"repetition_penalty": 0.8}, of_transformers(hf.RepetitionPenaltyLogitsProcessor(0.8)), 1),
    ({"no_repeat_ngram_size": 1}, of_transformers(hf.NoRepeatNGramLogitsProcessor(1)), 1),
    ({"no_repeat_ngram_size": 2}, of_transformers(hf.NoRepeatNGramLogitsProcessor(2)), 2),
    ({"no_repeat_ngram_size": 3}, of_transformers(hf.NoRepeatNGramLogitsProcessor(3)), 2),
    ({"suppress_tokens": [0, 7, 40]}, of_transformers(hf.SuppressTokensLogitsProcessor([0, 7, 40])), 1),
    ({"temperature": 0.7}, of_transformers(hf.TemperatureLogitsWarper(0.7)), 1),
    ({"top_k": 5}, of_transformers(hf.TopKLogitsWarper(5)), 1),
    ({"top_p": 0.5}, of_transformers(hf.TopPLogitsWarper(0.5)), 2),
    ({"top_p": 0.95}, of_transformers(hf.TopPLogitsWarper(0.95)), 2),
    ({"min_p": 0.1}, of_transformers(hf.MinPLogitsWarper(0.1)), 2),
    ({"typical_p": 0.3}, of_transformers(hf.TypicalLogitsWarper(0.3)), 2),
    ({"typical_p": 0.95}, of_transformers(hf.TypicalLogitsWarper(0.95)), 2),
    ({"top_n_sigma": 0.5}, top_n_sigma(0.5), 1),
    ({"top_n_sigma": 1.5}, top_n_sigma(1.5), 1),
    ({"xtc_probability": 1.0, "xtc_threshold": 0.05}, xtc(0.05), 3),
    ({"xtc_probability": 1.0, "xtc_threshold": 0.02}, xtc(0.02), 2),
    ({"dry_multiplier": 0.8}, dry(0.8, 1.75, 2), 3),
    (
        {"dry_multiplier": 1.5, "dry_base": 1.2, "dry_allowed_length": 1, "dry_penalty_last_n": 20},
        dry(1.5, 1.2, 1, last_n=20),
        2,
    ),
    (
        {"dry_multiplier": 0.8, "dry_allowed_length": 1, "dry_sequence_breakers": ["\x03"]},
        dry(0.8, 1.75, 1, breakers=("\x03",)),
        3,
    ),
]


def mark(after, before):
    """null for a masked token, true for an unchanged one: the file stays small."""
    if after == -math.inf:
        return None
    return True if abs(after - before) < 1e-6 else round(after, 5)


lines = []
for params, apply, count in CASES:
    for scale in [1.0, 3.0, 0.2][:count]:
        logits = row(scale)
        # Random tokens; a passage that repeats; few tokens.
        passage = text(13, 6)
        ids = {1.0: text(60, 5), 3.0: passage * 3 + passage[:7], 0.2: text(40, 3)}[scale]
        prompt, generated = ids[: len(ids) // 3], ids[len(ids) // 3 :]
        after = [mark(*pair) for pair in zip(apply(ids, logits), logits)]
        case = {"params": params, "prompt": prompt, "generated": generated, "logits": logits, "after": after}
        lines.append(json.dumps(case, separators=(",", ":")))
Path(__file__).with_name("filters.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
