"""Speed of OpenVINO GenAI on an exported model, as lines of JSON that are named as those of `lm bench --json`.

Prompts are ids without text; each one has another first id, so that none is found in the prefix cache. Greedy, end tokens ignored.
"""

import argparse
import json
import sys
import time

import numpy
import openvino
import openvino_genai

OUTPUT = 64  # tokens of a decode run and of each sequence, as in `lm bench`
PROMPT = 64  # tokens of the prompt of each sequence
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model")
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--prefill", type=int, required=True)
parser.add_argument("--decode", type=lambda text: list(map(int, text.split(","))), required=True)
parser.add_argument("--sequences", type=int, required=True)
ARGS = parser.parse_args()

# Activations are rounded by 128, the group size of the weights, which makes prompts and several sequences faster than the default, 32.
PIPELINE = openvino_genai.LLMPipeline(ARGS.model, "CPU", INFERENCE_NUM_THREADS=ARGS.threads, KV_CACHE_PRECISION="f16",
                                      DYNAMIC_QUANTIZATION_GROUP_SIZE=128)  # fmt: skip
PROMPTS = 0


def prompts(sequences: int, tokens: int) -> openvino_genai.TokenizedInputs:
    """Ids spread as `lm bench` spreads them, below 32,000, which every vocabulary has."""
    global PROMPTS
    firsts = (PROMPTS + numpy.arange(sequences)) * 104_729
    PROMPTS += sequences
    ids = (firsts[:, None] + numpy.arange(tokens) * 7919) % 32_000
    return openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))


def generate(sequences: int, tokens: int, output: int) -> tuple[float, openvino_genai.PerfMetrics]:
    """Seconds of a call that gives `output` tokens a sequence, and what the pipeline says about it."""
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens, config.ignore_eos, config.do_sample, config.apply_chat_template = output, True, False, False
    inputs = prompts(sequences, tokens)
    begin = time.perf_counter()
    results = PIPELINE.generate(inputs, config)
    seconds = time.perf_counter() - begin
    if [len(reply) for reply in results.tokens] != [output] * sequences:
        sys.exit(f"replies of {[len(reply) for reply in results.tokens]} tokens, {output} expected")
    return seconds, results.perf_metrics


def show(metric: str, context: int, sequences: int, value: float) -> None:
    print(json.dumps({"metric": metric, "context": context, "sequences": sequences, "value": value}), flush=True)


def main() -> None:
    generate(1, ARGS.prefill, 2)  # kernels are compiled when a shape is first seen
    show("prefill", ARGS.prefill, 1, ARGS.prefill / generate(1, ARGS.prefill, 1)[0])
    for context in ARGS.decode:
        metrics = generate(1, max(context, 1), OUTPUT)[1]
        show("decode", context, 1, 1e3 / metrics.get_tpot().mean)  # milliseconds a token after the first
    generate(ARGS.sequences, PROMPT, 2)
    seconds = generate(ARGS.sequences, PROMPT, OUTPUT)[0]
    show("decode", PROMPT, ARGS.sequences, ARGS.sequences * OUTPUT / seconds)


main()
