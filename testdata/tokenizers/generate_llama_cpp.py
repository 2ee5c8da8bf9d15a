"""Writes llama_cpp.json: the ids that llama.cpp gives for the texts and the byte-level vocabulary of gguf.json, from files that say less
than others: no pre-tokenizer, the one called `default`, tokens of the undefined type 0, no types at all.

    python testdata/tokenizers/generate_llama_cpp.py    # llama-cpp-python 0.3.36 (CPU alone), gguf 0.19
"""

import ctypes
import json
import tempfile
from pathlib import Path

import gguf
import llama_cpp.llama_cpp as api

HERE = Path(__file__).parent
CASES = {"no pre": {"pre": None}, "default": {"pre": "default"}, "type 0": {"pre": "gpt-2", "every": 3}, "no types": {"pre": "gpt-2", "every": 0}}


def write(path, vocabulary, pre, every=None):
    """A file with a vocabulary and no weights; each so many ordinary tokens have type 0, or none has a type."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary["tokens"])
    if every != 0:
        types = [0 if every and kind == 1 and i % every == 0 else kind for i, kind in enumerate(vocabulary["types"])]
        writer.add_token_types(types)
    writer.add_token_merges(vocabulary["merges"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def ids(path, texts):
    params = api.llama_model_default_params()
    params.vocab_only = True
    model = api.llama_model_load_from_file(str(path).encode(), params)
    assert model, path
    vocab = api.llama_model_get_vocab(model)
    found = []
    for text in texts:
        out = (ctypes.c_int32 * 4096)()
        raw = text.encode()
        count = api.llama_tokenize(vocab, raw, len(raw), out, len(out), False, True)
        assert count >= 0
        found.append(list(out[:count]))
    return found


@api.llama_log_callback
def silent(level, text, _):
    pass


def main():
    api.llama_log_set(silent, None)
    goldens = json.loads((HERE / "gguf.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        found = {}
        for name, case in CASES.items():
            write(path, goldens["vocabularies"]["byte_level"], **case)
            found[name] = {**case, "ids": ids(path, goldens["texts"])}
    lines = [f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in found.items()]
    (HERE / "llama_cpp.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
