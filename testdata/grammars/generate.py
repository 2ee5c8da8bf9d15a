"""Writes golden.json: which texts of cases.py llama.cpp and Python's Lark accept by each grammar.

    python generate.py ../gguf/qwen3-tiny-q8_0.gguf      # or another GGUF file with a byte-level vocabulary; llama-cpp-python 0.3.36, lark 1.3.1
"""

import json
import sys

import lark
import llama_cpp as ll

from cases import CASES, FAULTS, LARK, NO_PATTERN


@ll.llama_log_callback
def quiet(level, text, user_data):
    pass


def accepts(vocab, grammar, tokens):
    """Index of the first token that is refused, or whether the text may end."""
    sampler = ll.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
    if not sampler:
        return None
    try:
        for token in [*tokens, ll.llama_vocab_eos(vocab)]:
            data = (ll.llama_token_data * 1)(ll.llama_token_data(token, 0.0, 0.0))
            candidates = ll.llama_token_data_array(data, 1, -1, False)
            ll.llama_sampler_apply(sampler, candidates)
            if data[0].logit == float("-inf"):
                return False
            ll.llama_sampler_accept(sampler, token)
        return True
    finally:
        ll.llama_sampler_free(sampler)


def parses(parser, text):
    try:
        parser.parse(text)
        return True
    except lark.exceptions.LarkError:
        return False


def main():
    ll.llama_log_set(quiet, None)
    ll.llama_backend_init()
    params = ll.llama_model_default_params()
    params.vocab_only = True
    model = ll.llama_model_load_from_file(sys.argv[1].encode(), params)
    vocab = ll.llama_model_get_vocab(model)

    def tokens(text):
        data = text.encode()
        buffer = (ll.llama_token * (len(data) + 8))()
        count = ll.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, False)
        return buffer[:count]

    grammars = []
    for name, grammar, texts in CASES:
        results = {text: accepts(vocab, grammar, tokens(text)) for text in texts}
        grammars.append({"name": name, "grammar": grammar, "texts": results})
    for name, grammar in FAULTS:
        assert accepts(vocab, grammar, []) is None, name
    faults = [{"name": name, "grammar": grammar} for name, grammar in FAULTS]
    of_lark = []
    for name, grammar, texts in LARK:
        # Lark's Earley parser refuses terminals that match the empty text.
        parser = lark.Lark(grammar.replace("/(.*)/", "/(.+)/?"), parser="earley", lexer="dynamic_complete")
        results = {text: parses(parser, text) for text in texts}
        of_lark.append({"name": name, "grammar": grammar, "texts": results})
    no_pattern = [{"name": name, "grammar": grammar} for name, grammar in NO_PATTERN]
    golden = {"grammars": grammars, "faults": faults, "lark": of_lark, "no_pattern": no_pattern}
    with open("golden.json", "w") as file:
        json.dump(golden, file, indent=1, ensure_ascii=False)
        file.write("\n")


main()
