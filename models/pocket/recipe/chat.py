"""The tokenizer, the chat template and the token ranges of assistant turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import Environment
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

TEMPLATE = Path(__file__).parents[1] / "model" / "chat_template.jinja"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKERS = [f"<{slash}{name}>" for name in ("tool_call", "tool_response", "think", "tools") for slash in ("", "/")]
# Words (camelCase ones in parts), digits, line ends and JSON punctuation never share a token, and no word
# carries its leading space: a value then has the same tokens in a question as in a call, so that copying is copying.
SPLIT = r"\p{Lu}?\p{Ll}+|\p{Lu}+|[\p{Lt}\p{Lm}\p{Lo}]+|\p{N}|\n|[\"{}\[\]:, ]+|[^\p{L}\p{N}]"


def _environment() -> Any:
    env = Environment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda x: json.dumps(x, ensure_ascii=False)
    return env.from_string(TEMPLATE.read_text())


_TEMPLATE = _environment()


def render(conversation: dict[str, Any], **options: Any) -> str:
    return _TEMPLATE.render(messages=conversation["messages"], tools=conversation.get("tools") or None, **options)


def train_tokenizer(texts: list[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = len(SPECIAL) + len(MARKERS)
    for name in SPECIAL + MARKERS:
        texts = [t.replace(name, "\n") for t in texts]
    trainer = trainers.BpeTrainer(
        vocab_size=size - added,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=3,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    while tokenizer.get_vocab_size() < size - added:
        tokenizer.add_tokens([AddedToken(f"<|extra_{tokenizer.get_vocab_size()}|>", normalized=False)])
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in SPECIAL])
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in MARKERS])
    return tokenizer


class Encoder:
    """Turns conversations into tokens and the ranges that the model has to write."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.start, self.end, self.think = (tokenizer.token_to_id(t) for t in ("<|im_start|>", "<|im_end|>", "<think>"))
        self.assistant = tokenizer.encode("assistant\n", add_special_tokens=False).ids

    def encode(self, conversations: list[dict[str, Any]]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        encoded = self.tokenizer.encode_batch([render(c) for c in conversations], add_special_tokens=False)
        return [(e.ids, self.turns(e.ids)) for e in encoded]

    def turns(self, ids: list[int]) -> list[tuple[int, int]]:
        """[first, past the last) token of every assistant turn, its end marker included."""
        found, n = [], len(self.assistant)
        i = 0
        while i < len(ids):
            if ids[i] == self.start and ids[i + 1 : i + 1 + n] == self.assistant:
                first = i + 1 + n
                if ids[first] == self.think:
                    first += 2
                last = ids.index(self.end, first) + 1
                found.append((first, last))
                i = last
            else:
                i += 1
        return found
