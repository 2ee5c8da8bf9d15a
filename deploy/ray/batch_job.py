"""Ray Data job that answers the lines of a file with `lm batch`, on all machines of a Ray cluster.

    python batch_job.py requests.jsonl answers.jsonl --model Qwen/Qwen3-0.6B

Each line has one answer, in the order of the lines. A block of lines is one run of `lm batch`; a run that is killed is repeated.
"""

import argparse
import os
import subprocess

import ray

RUNS = 3


def answers(block, lm, model, options):
    """Answers a block of lines with a process of `lm batch`; one that a signal ends is started again."""
    lines = [str(line) for line in block["text"]]
    command = ["setpriv", "--pdeathsig", "KILL", "--", lm, "batch", *([model] if model else []), *options]
    for _ in range(RUNS):
        run = subprocess.run(command, input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True)
        found = run.stdout.splitlines()
        # Code 1: a request has failed, and its answer says why.
        if run.returncode in (0, 1) and len(found) == len(lines):
            return {"text": found}
        if run.returncode >= 0:
            break
    raise RuntimeError(f"lm batch ended with code {run.returncode} and answered {len(found)} of {len(lines)} lines")


def answer_file(requests, destination, lm="lm", model=None, options=(), lines=1000, cpus=1):
    """Writes the answers of the lines of `requests` to `destination`, which appears when it is complete."""
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    with open(requests) as file:
        # Blank lines have no answer.
        rows = [{"text": line.rstrip("\n")} for line in file if line.strip()]
    blocks = ray.data.from_items(rows, override_num_blocks=max(1, -(-len(rows) // lines)))
    arguments = {"lm": lm, "model": model, "options": list(options)}
    answered = blocks.map_batches(answers, fn_kwargs=arguments, batch_size=None, num_cpus=cpus, zero_copy_batch=True)
    with open(f"{destination}.part", "w") as file:
        for row in answered.iter_rows():
            file.write(row["text"] + "\n")
    os.replace(f"{destination}.part", destination)


def main():
    parser = argparse.ArgumentParser(description="Answer a file of requests with lm batch on a Ray cluster")
    parser.add_argument("requests", help="JSON Lines as `lm batch` reads them")
    parser.add_argument("answers", help="file to write")
    parser.add_argument("--lm", default="lm", help="the program, on each machine")
    parser.add_argument("--model", help="model folder, file or name, on each machine")
    parser.add_argument("--options", default="", help="options of `lm batch`, as one text")
    parser.add_argument("--lines", type=int, default=1000, help="number of lines of a run of `lm batch`")
    parser.add_argument("--cpus", type=float, default=1, help="number of CPUs of a run")
    given = parser.parse_args()
    options = given.options.split() or ["--threads", str(max(1, int(given.cpus)))]
    answer_file(given.requests, given.answers, given.lm, given.model, options, given.lines, given.cpus)


if __name__ == "__main__":
    main()
