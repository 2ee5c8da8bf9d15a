"""Token ids that transformers gives conversations of ours, with real tokenizers and published chat templates.

    python generate.py      # writes ids.json; LM_SHARED names the folder of reference data, ../../../shared without it

Templates and tokenizers are read in place. A case holds which of them it used, the conversation's name and the ids of
`apply_chat_template(tokenize=True)`; a template that refuses the conversation gives no case.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import tokenizers
import transformers
from transformers import AddedToken, PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

HERE = Path(__file__).parent
NOW = datetime(2025, 3, 14, 15, 9, 26)

# Added tokens beyond those of the files: what the models of these templates have, with every rule that a tokenizer knows.
# (text, special, normalized, lstrip, rstrip, single_word)
MARKERS: dict[str, list[tuple[str, bool, bool, bool, bool, bool]]] = {
    "qwen2": [
        ("<tool_call>", False, False, False, False, False),
        ("</tool_call>", False, False, False, False, False),
        ("<tool_response>", False, False, False, False, False),
        ("</tool_response>", False, False, False, False, False),
        ("<think>", False, False, False, False, False),
        ("</think>", False, False, False, False, False),
        ("<｜User｜>", True, False, False, False, False),
        ("<｜Assistant｜>", True, False, False, False, False),
        ("<｜begin▁of▁sentence｜>", True, False, False, False, False),
        ("<｜end▁of▁sentence｜>", True, False, False, False, False),
        ("<tools>", False, True, True, False, False),
        ("</tools>", False, True, False, True, False),
        ("user", False, True, False, False, True),
    ],
    "llama-bpe": [
        ("<|python_tag|>", True, False, False, False, False),
        ("<|eom_id|>", True, False, False, False, False),
        ("<tool_call>", False, True, True, True, False),
        ("</tool_call>", False, True, True, True, False),
        ("<|im_start|>", True, False, False, False, False),
        ("<|im_end|>", True, True, False, True, False),
        ("<｜User｜>", True, False, False, True, False),
        ("<｜Assistant｜>", True, False, True, False, False),
    ],
    "phi-3": [
        ("[INST]", True, False, False, False, False),
        ("[/INST]", True, False, False, False, False),
        ("[AVAILABLE_TOOLS]", True, False, False, False, False),
        ("[/AVAILABLE_TOOLS]", True, False, False, False, False),
        ("[TOOL_CALLS]", True, False, False, False, False),
        ("[TOOL_RESULTS]", True, False, False, False, False),
        ("[/TOOL_RESULTS]", True, False, False, False, False),
        ("<start_of_turn>", True, False, False, False, False),
        ("<end_of_turn>", True, False, False, True, False),
        ("<start_function_call>", False, True, False, False, False),
        ("<end_function_call>", False, True, False, False, False),
        ("<escape>", False, True, True, True, False),
        ("<<SYS>>", False, True, False, False, True),
        ("<</SYS>>", False, False, False, False, True),
    ],
    "smollm2": [
        ("<tool_call>", False, False, False, False, False),
        ("</tool_call>", False, False, False, False, False),
        ("<think>", False, True, False, False, False),
        ("</think>", False, True, False, True, False),
        ("<code>", False, True, False, False, True),
    ],
}

TEMPLATES: dict[str, list[str]] = {
    "qwen2": [
        "Qwen-Qwen2.5-7B-Instruct",
        "Qwen-Qwen3-0.6B",
        "Qwen-Qwen3-Coder-30B-A3B-Instruct",
        "Qwen-Qwen3.5-0.8B",
        "Qwen-QwQ-32B",
        "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
        "phi-4",
        "vllm-deepseekv3",
    ],
    "llama-bpe": [
        "Llama-3",
        "meta-llama-Llama-3.1-8B-Instruct",
        "meta-llama-Llama-3.2-3B-Instruct",
        "meetkai-functionary-medium-v3.1",
        "meetkai-functionary-medium-v3.2",
        "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
        "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
        "vllm-llama3.2_pythonic",
    ],
    "phi-3": [
        "Phi-3-medium",
        "microsoft-Phi-3.5-mini-instruct",
        "mistralrs-llama2",
        "mistralai-Mistral-7B-Instruct-v0.2",
        "mistralai-Mistral-Nemo-Instruct-2407",
        "Mistral-Small-3.2-24B-Instruct-2506",
        "google-gemma-2-2b-it",
        "google-gemma-3-1b-it",
        "google-function-gemma-hf",
    ],
    "smollm2": ["HuggingFaceTB-SmolLM3-3B", "mistralrs-chatml", "trl-smolvlm", "vllm-chatml"],
}


def conversations() -> list[dict[str, Any]]:
    return json.loads((HERE / "conversations.json").read_text(encoding="utf-8"))


def read_tokenizer(shared: Path, name: str) -> PreTrainedTokenizerFast:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_file(str(shared / f"tokenizers/{name}-tokenizer.json"))
    )
    for text, special, normalized, lstrip, rstrip, single_word in MARKERS[name]:
        rules = {"normalized": normalized, "lstrip": lstrip, "rstrip": rstrip, "single_word": single_word}
        tokenizer.add_tokens(AddedToken(text, special=special, **rules), special_tokens=special)
    return tokenizer


def ids(tokenizer: PreTrainedTokenizerFast, template: str, context: dict[str, Any], conversation: dict[str, Any]) -> list[int] | None:
    try:
        encoded = tokenizer.apply_chat_template(
            conversation["messages"],
            tools=conversation.get("tools"),
            chat_template=template,
            add_generation_prompt=conversation["add_generation_prompt"],
            tokenize=True,
            return_dict=False,
            **{**context, **conversation.get("kwargs", {})},
        )
    except Exception as error:  # the template's own refusal, or Jinja's
        print("  refused:", conversation["name"], type(error).__name__, str(error)[:80], file=sys.stderr)
        return None
    return list(encoded)


class FixedClock(datetime):
    """The time behind `strftime_now`."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return NOW


def main() -> None:
    shared = Path(os.environ.get("LM_SHARED", HERE.parents[2] / "shared"))
    chat_template_utils.datetime = FixedClock
    index = json.loads((shared / "goldens/templates/index.json").read_text(encoding="utf-8"))
    contexts = {row["id"]: row["context"] for row in index["templates"]}
    cases = []
    for name, templates in TEMPLATES.items():
        tokenizer = read_tokenizer(shared, name)
        for template in templates:
            print(name, template, file=sys.stderr)
            with open(shared / f"goldens/templates/{template}.jinja", encoding="utf-8", newline="") as file:
                source = file.read()
            for conversation in conversations():
                found = ids(tokenizer, source, contexts[template], conversation)
                if found is not None:
                    case = {"tokenizer": name, "template": template, "conversation": conversation["name"], "ids": found}
                    cases.append(case)
    keys = ["content", "special", "normalized", "lstrip", "rstrip", "single_word"]
    added = {name: [dict(zip(keys, marker)) for marker in markers] for name, markers in MARKERS.items()}
    generator = {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__, "now": NOW.isoformat()}
    with open(HERE / "ids.json", "w", encoding="utf-8", newline="\n") as out:
        out.write('{"generator": ' + json.dumps(generator) + ",\n")
        out.write('"added_tokens": ' + json.dumps(added, ensure_ascii=False) + ",\n")
        out.write('"cases": [\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]}\n")
    print(len(cases), "cases,", sum(len(case["ids"]) for case in cases), "ids", file=sys.stderr)


if __name__ == "__main__":
    main()
