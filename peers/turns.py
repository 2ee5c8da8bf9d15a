"""Runs this stack and others by turns and prints their figures side by side. `compare.sh` prepares its arguments."""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

Figures = dict[str, float]
CONTEXTS = (0, 512, 4096)
parser = argparse.ArgumentParser(description=__doc__)
for option in ("--lm", "--gguf"):
    parser.add_argument(option, type=Path, required=True)
parser.add_argument("--checkpoint", type=Path, help="checkpoint that `lm` quantises as it loads it; without it, only the file is measured")
parser.add_argument("--llama", type=Path, help="folder of llama.cpp's programs; without it, llama.cpp is left out")
parser.add_argument("--openvino", type=Path, help="model that OpenVINO GenAI loads; without it, OpenVINO is left out")
parser.add_argument("--mmproj", type=Path)
parser.add_argument("--image", type=Path)
parser.add_argument("--threads", required=True)
parser.add_argument("--runs", type=int, required=True)
ARGS = parser.parse_args()


class Failed(Exception):
    """A program that ended with an error."""


def run(command: list[object], kinds: str = "out") -> str:
    """Output of a command, its errors included if `kinds` is "both", and its largest resident memory in a last line."""
    errors = subprocess.STDOUT if kinds == "both" else subprocess.DEVNULL
    program = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=errors, text=True,
                               errors="replace")  # a random model writes any bytes
    text = program.stdout.read()
    _, status, usage = os.wait4(program.pid, 0)
    if status != 0:
        raise Failed(f"{' '.join(map(str, command))}: status {status}\n{text}")
    return f"{text}\npeak {usage.ru_maxrss}\n"


def peak_of(text: str) -> Figures:
    return {"peak memory, MB": int(re.findall(r"^peak (\d+)$", text, re.M)[-1]) * 1024 / 1e6}


def lines_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def ours(*extra: object) -> Figures:
    """Text, of a checkpoint that is quantised when it is loaded or of a GGUF file."""
    contexts = ",".join(map(str, CONTEXTS))
    return figures_of(run([ARGS.lm, "bench", *extra, "--kv", "f16", "--threads", ARGS.threads, "--runs", 1, "--json",
                           "--only", "prefill,decode", "--prefill", 512, "--decode", contexts, "--sequences", 8]))  # fmt: skip


def openvino() -> Figures:
    contexts = ",".join(map(str, CONTEXTS))
    return figures_of(run([sys.executable, Path(__file__).with_name("openvino_bench.py"), ARGS.openvino, "--threads",
                           ARGS.threads, "--prefill", 512, "--decode", contexts, "--sequences", 8]))  # fmt: skip


def figures_of(text: str) -> Figures:
    """The lines that `lm bench --json` writes."""
    figures = {}
    for line in lines_of(text):
        name = f"{line['metric']} {line['context']}" if line["sequences"] == 1 else "8 sequences"
        figures[name] = line["value"]
    return figures


def llama() -> Figures:
    bench = [ARGS.llama / "llama-bench", "-m", ARGS.gguf, "-t", ARGS.threads, "-r", 1, "-fa", 1, "-o", "jsonl"]
    figures = {"prefill 512": lines_of(run([*bench, "-p", 512, "-n", 0]))[0]["avg_ts"]}
    for line in lines_of(run([*bench, "-p", 0, "-n", 64, "-d", ",".join(map(str, CONTEXTS))])):
        figures[f"decode {line['n_depth']}"] = line["avg_ts"]
    batched = [ARGS.llama / "llama-batched-bench", "-m", ARGS.gguf, "-t", ARGS.threads, "-fa", "on", "-c", 2048,
               "-npp", 64, "-ntg", 64, "-npl", 8, "--output-format", "jsonl"]  # fmt: skip
    line = lines_of(run(batched))[0]
    return figures | {"8 sequences": 8 * 64 / line["t"]}


def our_picture() -> Figures:
    """The context of `image` is the number of its rows, that of `image_prefill` the number of all tokens."""
    text = run([ARGS.lm, "bench", ARGS.checkpoint, "--image", ARGS.image, "--kv", "f16", "--threads", ARGS.threads,
                "--runs", 1, "--json", "--only", "image,image_prefill"])  # fmt: skip
    lines = {line["metric"]: line for line in lines_of(text)}
    encode, prefill = lines["image"], lines["image_prefill"]
    rest = prefill["context"] / prefill["value"] * 1e3 - encode["value"]
    return {"encode a view, ms": encode["value"], "decode its rows, ms": rest * encode["context"] / prefill["context"],
            "tokens/s with its encoding": prefill["value"]} | our_memory()  # fmt: skip


def our_memory() -> Figures:
    """Of a reply to the picture: `lm bench` itself reads a gigabyte to measure the memory's rate."""
    return peak_of(run([ARGS.lm, "generate", "-m", ARGS.checkpoint, "--image", ARGS.image, "--kv", "f16", "--context", 2048,
                        "--threads", ARGS.threads, "--max-tokens", 1, "x"]))  # fmt: skip


def llama_picture() -> Figures:
    """llama.cpp shows a picture of one tile twice, as an overview and as a tile. The time from the end of the first view's encoding to the
    beginning of the next one's is that of its rows and of the few tokens between the two."""
    text = run([ARGS.llama / "llama-mtmd-cli", "-m", ARGS.gguf, "--mmproj", ARGS.mmproj, "--image", ARGS.image, "-p", "x",
                "-n", 1, "-c", 2048, "-t", ARGS.threads], "both")  # fmt: skip
    encode = list(map(int, re.findall(r"batch encoding done in (\d+) ms", text)))
    begun, ended = (list(map(seconds_of, re.findall(rf"^(\S+) I {step}", text, re.M)))
                    for step in ("encoding mtmd batch", "mtmd batch encoding done"))  # fmt: skip
    return {"encode a view, ms": median(encode), "decode its rows, ms": (begun[1] - ended[0]) * 1e3} | peak_of(text)


def seconds_of(stamp: str) -> float:
    """Of a time as llama.cpp logs it: minutes, seconds, milliseconds, microseconds."""
    minutes, seconds, milliseconds, microseconds = map(int, stamp.split("."))
    return 60 * minutes + seconds + milliseconds / 1e3 + microseconds / 1e6


def show(stacks: dict[str, list[Figures]]) -> None:
    """A row a figure: medians, smallest and largest, and the median of the ratios of the turns."""
    (own, own_turns), *others = stacks.items()
    print(f"| | {own} |" + "".join(f" {name} | ratio |" for name, _ in others))
    print("|---|---|" + "---|---|" * len(others))
    for figure in own_turns[0]:
        cells = [figure, cell([turn[figure] for turn in own_turns])]
        for _, turns in others:
            both = [(mine[figure], turn[figure]) for mine, turn in zip(own_turns, turns) if figure in turn]
            cells.append(cell([theirs for _, theirs in both]) if both else "–")
            cells.append(f"{median(mine / theirs for mine, theirs in both):.2f}" if both else "–")
        print("| " + " | ".join(cells) + " |")


def cell(values: list[float]) -> str:
    digits = 0 if median(values) >= 100 else 1
    return " ".join([f"{median(values):,.{digits}f}", f"({min(values):,.{digits}f} to {max(values):,.{digits}f})"])


def stacks() -> dict[str, Callable[[], Figures]]:
    """Functions that measure a turn, this stack's first."""
    if ARGS.image:
        own = {"lm": our_picture}
    elif ARGS.checkpoint:
        own = {"lm, q4": lambda: ours(ARGS.checkpoint, "--quantize", "q4"), "lm, the same file": lambda: ours(ARGS.gguf)}
    else:
        own = {"lm": lambda: ours(ARGS.gguf)}
    if ARGS.llama:
        own["llama.cpp"] = llama_picture if ARGS.image else llama
    if ARGS.openvino:
        own["OpenVINO"] = openvino
    return own


def main() -> None:
    measures = stacks()
    own = next(iter(measures))
    turns: dict[str, list[Figures]] = {name: [] for name in measures}
    for turn in range(ARGS.runs):
        for name, measure in list(measures.items()):
            load = os.getloadavg()[0]
            try:
                turns[name].append(measure())
            except Failed as failed:
                if name == own:
                    sys.exit(str(failed))
                print(f"{name} is left out: {failed}", file=sys.stderr)
                del measures[name], turns[name]
                continue
            print(f"turn {turn + 1}, {name}, load {load:.1f} before: {turns[name][-1]}", file=sys.stderr)
    show(turns)


main()
