"""Opens GGUF files that `lm convert` writes of the tiny checkpoints with the reference reader, and compares their numbers.

    cargo build --release -p lm-cli
    python read_ours.py ../../target/release/lm            # all checkpoints
    python read_ours.py ../../target/release/lm qwen3-tiny # some

Each checkpoint is written as F16, Q8_0 and Q4_0. `gguf.GGUFReader` must open the file; each matrix must be what `gguf.quants` makes of
the checkpoint's own numbers (`quantize`, then `dequantize`), in the order of rows that llama.cpp's converter gives to queries and
keys. Needs numpy, torch, safetensors and gguf (made with 0.19.0). What a file cannot say stops `lm`, and is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import dequantize, quantize
from safetensors import safe_open

MODELS = Path(__file__).parent.parent / "models"
# Checkpoints whose tensors are, one by one, those of a file; the others stack, part or change them.
PLAIN = ("granite", "llama", "ministral3", "mistral", "olmo2", "phi3", "qwen2", "qwen3-tiny", "smollm3")
PERMUTED = ("llama", "mistral3", "granite", "smollm3")
TYPES = {"f16": gguf.GGMLQuantizationType.F16, "q8_0": gguf.GGMLQuantizationType.Q8_0,
         "q4_0": gguf.GGMLQuantizationType.Q4_0}  # fmt: skip


def tensors_of(folder: Path) -> dict[str, np.ndarray]:
    tensors = {}
    for path in sorted(folder.glob("model*.safetensors")):
        with safe_open(path, framework="pt") as file:
            tensors |= {name: file.get_tensor(name).float().numpy() for name in file.keys()}
    return tensors


def permuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """The rows of each head with those that RoPE turns together side by side."""
    pairs = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(rows.shape)


def check(folder: Path, path: Path, wanted: str) -> int:
    """Compares the matrices of a file with those of its folder; returns how many there are."""
    reader = gguf.GGUFReader(path)
    architecture = reader.fields["general.architecture"].contents()
    assert reader.fields["GGUF.version"].contents() == 3
    assert reader.fields["general.architecture"].contents() in gguf.MODEL_ARCH_NAMES.values()
    layers = reader.fields[f"{architecture}.block_count"].contents()
    arch = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, layers)
    config = json.loads((folder / "config.json").read_text())
    stored = {tensor.name: tensor for tensor in reader.tensors}
    count = 0
    for name, values in tensors_of(folder).items():
        tensor = stored.get(names.get_name(name, try_suffixes=(".weight", ".bias")) or name)
        if tensor is None and (name == "lm_head.weight" or "rotary_emb" in name):
            continue
        assert tensor is not None, f"{folder.name}: {name} is not in the file"
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}
        for part, key in heads.items():
            if architecture in PERMUTED and f".{part}." in tensor.name:
                values = permuted(values, config[key])
        kind = gguf.GGMLQuantizationType.F32
        if values.ndim > 1:
            kind = TYPES[wanted]
            if values.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0]:
                kind = gguf.GGMLQuantizationType.F16
        assert tensor.tensor_type == kind, f"{name} is {tensor.tensor_type.name}, expected {kind.name}"
        expected = dequantize(quantize(values, kind), kind)
        got = dequantize(np.array(tensor.data), tensor.tensor_type).reshape(expected.shape)
        assert np.array_equal(got, expected), f"{folder.name} {wanted}: {name} differs"
        count += 1
    return count


def main() -> None:
    lm, *chosen = sys.argv[1:]
    for folder in sorted(MODELS.iterdir()):
        if not (folder / "config.json").exists() or (chosen and folder.name not in chosen):
            continue
        for wanted in TYPES:
            with tempfile.TemporaryDirectory() as out:
                path = Path(out, "model.gguf")
                command = [lm, "convert", str(folder), str(path), "--quantize", wanted]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    print(f"{folder.name} {wanted}: {done.stderr.strip().splitlines()[0]}")
                elif folder.name.startswith(PLAIN) and "fp8" not in folder.name:
                    print(f"{folder.name} {wanted}: {check(folder, path, wanted)} tensors as gguf.quants has them")
                else:
                    print(f"{folder.name} {wanted}: {len(gguf.GGUFReader(path).tensors)} tensors, opened")


main()
