"""Exact-match accuracy of a Hugging Face folder, per skill.

    python evaluate.py                                  # the shipped model on the generated eval split
    python evaluate.py --documented                     # the flows of documented.json
    python evaluate.py --cases cases.jsonl              # written conversations
    python evaluate.py --write ../eval                  # what `lm score` reads, in place of scoring
    python evaluate.py --model runs/pocket/checkpoint   # another checkpoint

A call counts when names and arguments equal the expected ones; an answer to a written case counts when it calls
nothing and holds every expected piece of text (``a|b``: one of them; case is ignored). Decoding is greedy.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import generate
from train import skill_of

CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)
SHIPPED = Path(__file__).parents[1] / "model"
Case = dict[str, Any]


def parse_calls(text: str) -> list[Any] | None:
    """The calls in a reply, or None when one of them is not JSON or does not end."""
    found = CALL.findall(text)
    if len(found) != text.count("<tool_call>"):
        return None
    try:
        return [json.loads(c) for c in found]
    except json.JSONDecodeError:
        return None


def same_calls(found: list[Any] | None, wanted: list[Any]) -> bool:
    def key(c: Any) -> str:
        return json.dumps(c, sort_keys=True)

    return found is not None and sorted(map(key, normal(found))) == sorted(map(key, normal(wanted)))


def normal(value: Any) -> Any:
    """Whole floats become integers, so that 3.0 equals 3."""
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items()}
    if isinstance(value, list):
        return [normal(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def passes(case: Case, reply: str) -> bool:
    if case["calls"]:
        return same_calls(parse_calls(reply), case["calls"])
    low = reply.lower()
    return "<tool_call>" not in reply and all(
        any(x in low for x in piece.lower().split("|")) for piece in case["contains"]
    )


def turns_of(conversation: Case) -> Iterator[Case]:
    """Every assistant turn as one case, its expected text in full."""
    for i, m in enumerate(conversation["messages"]):
        if m["role"] == "assistant":
            wanted = [x["function"] for x in m.get("tool_calls", [])]
            yield {
                "skill": skill_of(conversation["messages"], i, len(conversation["tools"])),
                "tools": conversation["tools"],
                "messages": conversation["messages"][:i],
                "calls": wanted,
                "contains": [m["content"]] if not wanted else [],
            }


def eval_split(count: int, seed: int) -> Iterator[Case]:
    """``count`` generated conversations."""
    rng = random.Random(seed)
    while count:
        c = generate.conversation(rng, "eval")
        if not c["thinking"]:
            yield c
            count -= 1


def write(conversations: Iterable[Case], path: Path) -> None:
    """One conversation a line, with the skill that each of the assistant's turns shows."""
    lines = []
    for c in conversations:
        skills = [t["skill"] for t in turns_of(c)]
        lines.append(json.dumps({"skills": skills, "tools": c["tools"], "messages": c["messages"]}, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", type=Path, default=SHIPPED)
    p.add_argument("--cases", type=Path, help="a file of written cases; without it the eval split is generated")
    p.add_argument("--documented", action="store_true", help="the documented flows in place of the eval split")
    p.add_argument("--count", type=int, default=300, help="generated conversations")
    p.add_argument("--seed", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--failures", type=Path, help="write what went wrong here")
    p.add_argument("--write", type=Path, help="write the eval split and the documented flows to this folder, and stop")
    args = p.parse_args()
    if args.write:
        write(eval_split(args.count, args.seed), args.write / "eval.jsonl")
        write(generate.DOCUMENTED, args.write / "documented.jsonl")
        return
    torch.set_num_threads(args.threads)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    cases = (
        [json.loads(line) for line in args.cases.read_text().splitlines()]
        if args.cases
        else [t for c in generate.DOCUMENTED for t in turns_of(c)]
        if args.documented
        else [t for c in eval_split(args.count, args.seed) for t in turns_of(c)]
    )
    score: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    failures = []
    for case in cases:
        inputs = tokenizer.apply_chat_template(
            case["messages"],
            tools=case["tools"] or None,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            out = model.generate(**inputs, max_new_tokens=192, do_sample=False)
        reply = tokenizer.decode(out[0][inputs["input_ids"].shape[1] :]).replace("<|im_end|>", "")
        good = passes(case, reply)
        for name in (case["skill"], "all", *([f"origin {case['origin']}"] if "origin" in case else [])):
            score[name][0] += good
            score[name][1] += 1
        if not good:
            failures.append({**case, "reply": reply})
    for name, (hit, n) in sorted(score.items()):
        print(f"{name:20} {hit:4}/{n:<4} {100 * hit / n:5.1f} %")
    if args.failures:
        args.failures.write_text("".join(json.dumps(f, ensure_ascii=False) + "\n" for f in failures))


if __name__ == "__main__":
    main()
