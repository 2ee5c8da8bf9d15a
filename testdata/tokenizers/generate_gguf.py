"""Writes gguf.json: small vocabularies as GGUF files hold them, and the ids that transformers gives when it reads such files.

    python testdata/tokenizers/generate_gguf.py    # transformers 5.23.0, gguf 0.19

Nothing here comes from a published model: the merges are learnt from the texts below, over whole texts, so that they reach over
every border that a pre-tokenizer can set, and ids tell where it cut.
"""

import json
import tempfile
from pathlib import Path

import gguf
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.integrations.gguf.gguf_tokenizer_mapping import (
    GGUF_PRE_TOKENIZER_SPLITS,
    convert_gguf_tokenizer,
    get_gguf_tokenizer,
)

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

TEXTS = [
    "",
    "Hello, world!",
    "I'm sure they'd've DON'T'S 'ſ it's WE'LL we'Ll",
    "1 22 333 4444 55555 1234567 ½ Ⅷ ١٢٣ 3.14 1,000",
    "CamelCaseWords HTTPServer iOS ǅungla éÉ ÑOÑO",
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n",
    "def f(x):\n    return x + 1\r\n\r\n\tif not x: pass",
    "a/b//c\\d path/to/file.txt\n/next https://x.y/z?q=1&r=2",
    "  two leading, three   inside, trailing  ",
    "日本語のテキスト、漢字とひらがな。한국어 텍스트 中文字符",
    "हिन्दी क्षेत्र ภาษาไทย עברית שָׁלוֹם العربية é e\u0301\u0301x",
    "😀👩\u200d🚀 🏳️\u200d🌈!! ❤️",
    "------ ====== ...... !?!? \"quoted\" (round) [square] {curly} <angle>",
    "_under_score_ snake_case $dollar %percent ^caret ~tilde `tick`",
    "\u00a0no\u00a0break\u2003em\u3000wide\u200bzero",
    "<|im_start|>user\nHi<|im_end|>\n<think>no</think> <think",
    "▁mark <0x41> Ġ \u0000 \ufffd \U0010ffff",
]

LEARNT = 420


def learn(alphabet, pre_tokenizer):
    """Merges over whole texts, in order, as pairs."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=len(alphabet) + LEARNT, initial_alphabet=alphabet, min_frequency=1, show_progress=False)
    # Each text with its neighbours too, so that pairs across words are frequent; nothing that merges into a special token.
    texts = [text for text in TEXTS if "<think>" not in text]
    tokenizer.train_from_iterator([a + b for a, b in zip(texts, texts[1:])] + texts, trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def byte_level():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = learn(alphabet, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    tokens = list(dict.fromkeys([*alphabet, *(a + b for a, b in merges)]))
    types = [NORMAL] * len(tokens)
    tokens += ["<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    types += [CONTROL, CONTROL, USER_DEFINED, USER_DEFINED]
    return {"tokens": tokens, "types": types, "merges": [f"{a} {b}" for a, b in merges]}


def sentencepiece(runs):
    """Pieces in the order in which they merge, after the special ones, bytes and, where wanted, runs of spaces and line ends."""
    alphabet = sorted({char for text in TEXTS[:9] for char in text.replace(" ", "▁")} | {"▁"})
    merges = learn(alphabet, pre_tokenizers.Metaspace(split=False, prepend_scheme="never"))
    first = ["<pad>", "</s>", "<s>", "<unk>", "<|im_start|>", "<|im_end|>", "<think>"]
    types = [CONTROL, CONTROL, CONTROL, UNKNOWN, CONTROL, CONTROL, USER_DEFINED]
    tokens = first + [f"<0x{byte:02X}>" for byte in range(256)]
    types += [BYTE] * 256
    runs = [char * count for char in runs for count in range(2, 7)]
    tokens, types = tokens + runs, types + [USER_DEFINED] * len(runs)
    known = set(tokens) | {run.replace(" ", "▁") for run in runs}
    pieces = [token for token in dict.fromkeys([*(a + b for a, b in merges), *alphabet]) if token not in known]
    tokens, types = tokens + pieces, types + [NORMAL] * len(pieces)
    # The merges of tokens that are no pieces of their own, runs among them, are found in the vocabulary.
    texts = set(tokens) | {run.replace(" ", "▁") for run in runs}
    return {"tokens": tokens, "types": types, "merges": [f"{a} {b}" for a, b in merges if {a, b, a + b} <= texts]}


def ids(architecture, model, vocabulary, scores=None, **keys):
    """The ids of each text as transformers finds them from a GGUF file with this vocabulary."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        writer.add_tokenizer_model(model)
        writer.add_token_list(vocabulary["tokens"])
        writer.add_token_types(vocabulary["types"])
        if scores:
            writer.add_token_scores(scores)
        for key, value in keys.items():
            getattr(writer, key)(value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        architecture, tokenizer, _ = get_gguf_tokenizer(str(path))
        tokenizer, _ = convert_gguf_tokenizer(architecture, tokenizer)
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]


def main():
    assert transformers.__version__ == "5.23.0", transformers.__version__
    byte_vocabulary = byte_level()
    rows, distinct = {}, []
    for name in sorted(GGUF_PRE_TOKENIZER_SPLITS):
        found = ids("llama", "gpt2", byte_vocabulary, add_tokenizer_pre=name, add_token_merges=byte_vocabulary["merges"])
        if found not in distinct:
            distinct.append(found)
        rows[name] = distinct.index(found)
    pieces, runs = sentencepiece(runs=""), sentencepiece(runs=" \n")
    scores = [-float(index) for index in range(len(pieces["tokens"]))]
    # Gemma's scores do not follow the merges: these run the other way.
    other = [float(index) for index in range(len(runs["tokens"]))]
    kinds = {
        "phi3": {"architecture": "phi3", "model": "llama", "vocabulary": "pieces", "scores": scores, "prefix": True},
        "gemma2": {"architecture": "gemma2", "model": "llama", "vocabulary": "runs", "scores": other, "prefix": False},
        "gemma4": {"architecture": "gemma4", "model": "gemma4", "vocabulary": "pieces", "scores": None, "prefix": False},
    }
    vocabularies = {"byte_level": byte_vocabulary, "pieces": pieces, "runs": runs}
    for kind in kinds.values():
        vocabulary = vocabularies[kind["vocabulary"]]
        keys = {"add_add_space_prefix": kind["prefix"], "add_unk_token_id": 3}
        if kind["model"] == "gemma4":
            keys["add_token_merges"] = vocabulary["merges"]
        kind["ids"] = ids(kind["architecture"], kind["model"], vocabulary, kind["scores"], **keys)
    goldens = {"texts": TEXTS, "vocabularies": vocabularies, "pre_tokenizers": rows, "pre_tokenizer_ids": distinct, "sentencepiece": kinds}
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}" for key, value in goldens.items()]
    Path(__file__).with_name("gguf.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
