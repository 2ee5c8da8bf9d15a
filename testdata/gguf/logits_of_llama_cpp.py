"""Logits that llama.cpp computes for GGUF files of the tiny checkpoints, beside those of transformers.

    python logits_of_llama_cpp.py FILE...                  # files in this folder, or such as `lm convert` writes
    python logits_of_llama_cpp.py FILE --of CHECKPOINT     # of which checkpoint of ../models, where the name does not say it

Prints the largest difference of a logit in the golden rows of each prompt. llama.cpp keeps keys and values in f32 here and does
not use flash attention. Needs numpy, safetensors and llama-cpp-python (made with 0.3.36, CPU alone).
"""

from __future__ import annotations

import argparse
import ctypes
import json
from pathlib import Path

import llama_cpp.llama_cpp as api
import numpy as np
from safetensors.numpy import load_file

HERE = Path(__file__).parent
MODELS = HERE.parent / "models"


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


@api.llama_log_callback
def silent(level: int, text: bytes, _: ctypes.c_void_p) -> None:
    pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--of", type=Path)
    wanted = parser.parse_args()
    api.llama_log_set(silent, None)
    api.llama_backend_init()
    for file in wanted.files:
        named = [path for path in sorted(MODELS.iterdir()) if file.name.startswith(path.name + "-")]
        checkpoint = MODELS / wanted.of if wanted.of else max(named, key=lambda path: len(path.name), default=MODELS)
        model, worst = Model(file), []
        for ids, rows, expected in goldens(checkpoint, file):
            if max(ids) < model.width:
                got = model.logits(ids)[rows]
                worst.append(np.abs(got - expected[:, : model.width]).max())
        print(f"{file.name}: logits differ by {', '.join(f'{value:.1e}' for value in worst) or 'nothing comparable'}")


main()
