"""Logits that llama.cpp computes for GGUF files of the tiny checkpoints, beside those of transformers.

    python logits_of_llama_cpp.py FILE...                  # files in this folder
    python logits_of_llama_cpp.py FILE --of CHECKPOINT     # of which checkpoint of ../models, where the name does not say it
    python logits_of_llama_cpp.py --lm PATH [CHECKPOINT...]  # F32 files that `PATH convert` writes [default: of all checkpoints]

Prints the largest difference of a logit in the golden rows of all prompts, or why there is none: the error of the program that
refused. llama.cpp keeps keys and values in f32 here and does not use flash attention; its GELU is a table of 16-bit floats.
Needs numpy, safetensors and llama-cpp-python (made with 0.3.36, CPU alone).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import llama_cpp.llama_cpp as api
import numpy as np
from safetensors.numpy import load_file

HERE = Path(__file__).parent
MODELS = HERE.parent / "models"
# Settings that files imply, as in generate.py; the logits of the changed checkpoints stand beside its files.
IMPLIED = {
    "gemma2-tiny": {"query_pre_attn_scalar": 16, "rope_theta": 10000.0},
    "gemma3-tiny": {"query_pre_attn_scalar": 16, "sliding_window_pattern": 6},
    "gpt-oss-tiny": {"swiglu_limit": 7.0},
}


class Model:
    """A file that llama.cpp has loaded."""

    def __init__(self, path: Path) -> None:
        params = api.llama_model_default_params()
        params.n_gpu_layers, params.use_mmap = 0, False
        self.model = api.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise ValueError(f"llama.cpp does not load {path}")
        self.width = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))

    def logits(self, ids: list[int]) -> np.ndarray:
        """Of all rows of a prompt."""
        params = api.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = 1
        params.type_k = params.type_v = api.GGML_TYPE_F32
        params.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        context = api.llama_init_from_model(self.model, params)
        batch = api.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, 1
        if api.llama_decode(context, batch):
            raise SystemExit("llama.cpp does not decode")
        rows = [np.ctypeslib.as_array(api.llama_get_logits_ith(context, i), (self.width,)).copy() for i in range(len(ids))]
        api.llama_batch_free(batch)
        api.llama_free(context)
        return np.stack(rows)


def goldens(checkpoint: Path, file: Path) -> list[tuple[list[int], list[int], np.ndarray]]:
    """Ids, rows and their logits: those beside the file, or beside the checkpoint."""
    beside = file.with_suffix(".golden.json")
    if beside.exists():
        return [(p["ids"], [-1], np.array([p["logits"]])) for p in json.loads(beside.read_text())["prompts"]]
    prompts = json.loads((checkpoint / "golden.json").read_text())["prompts"]
    tensors = load_file(checkpoint / "golden.safetensors")
    return [(p["ids"], p["rows"], tensors[f"prompts.{i}.logits"]) for i, p in enumerate(prompts)]


ERRORS: list[str] = []


@api.llama_log_callback
def log(_level: int, text: bytes, _: ctypes.c_void_p) -> None:
    if b"error loading" in text:
        ERRORS.append(text.decode(errors="replace").strip())


def difference(checkpoint: Path, file: Path, golden: Path) -> str:
    """Largest difference of a logit, or the reason why there is none."""
    try:
        model = Model(file)
    except ValueError:
        return f"llama.cpp: {ERRORS[-1].rpartition('error loading model: ')[2]}"
    worst = []
    for ids, rows, expected in goldens(checkpoint, golden):
        if max(ids) < model.width:
            got = model.logits(ids)[rows]
            worst.append(np.abs(got - expected[:, : model.width]).max())
    return f"{max(worst):.1e} ({len(worst)} prompts)" if worst else "no prompt has only ids of the file"


def of_ours(lm: Path, checkpoint: Path) -> str:
    """Of the file that `lm convert` writes. The folder is copied: llama.cpp decides by the name `phi3` how it tokenizes."""
    with tempfile.TemporaryDirectory() as folder:
        copy, file = Path(folder) / "checkpoint", Path(folder) / "ours.gguf"
        shutil.copytree(checkpoint, copy)
        golden = HERE / f"{checkpoint.name}-bf16.gguf" if checkpoint.name in IMPLIED else file
        config = json.loads((copy / "config.json").read_text())
        (config.get("text_config") or config).update(IMPLIED.get(checkpoint.name, {}))
        (copy / "config.json").write_text(json.dumps(config))
        done = subprocess.run([lm, "convert", copy, file, "--quantize", "f32"], capture_output=True, text=True)
        if done.returncode:
            return f"lm: {done.stderr.strip().splitlines()[-1].partition('converted: ')[2]}"
        return difference(checkpoint, file, golden)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--of", type=Path)
    parser.add_argument("--lm", type=Path)
    wanted = parser.parse_args()
    api.llama_log_set(log, None)
    api.llama_backend_init()
    if wanted.lm:
        every = sorted(path.parent for path in MODELS.glob("*/config.json"))
        for checkpoint in [MODELS / file.name for file in wanted.files] or every:
            print(f"{checkpoint.name}: {of_ours(wanted.lm.resolve(), checkpoint)}", flush=True)
    for file in [] if wanted.lm else wanted.files:
        named = [path for path in sorted(MODELS.iterdir()) if file.name.startswith(path.name + "-")]
        checkpoint = MODELS / wanted.of if wanted.of else max(named, key=lambda path: len(path.name), default=MODELS)
        print(f"{file.name}: {difference(checkpoint, file, file)}")


main()
