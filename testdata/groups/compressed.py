"""The layouts of compressed-tensors: folders, and how their matrices are drawn, written and dequantised."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

try:
    import compressed_tensors.compressors as compressors
    from compressed_tensors.quantization import QuantizationScheme
except ImportError:  # the layouts are written all the same
    compressors = None


def described(layout: str, activations: dict[str, Any] | None = None, **weights: Any) -> dict[str, Any]:
    """A ``quantization_config`` as llm-compressor 0.6 writes it."""
    weights = {"actorder": None, "block_structure": None, "dynamic": False, "group_size": None, "observer": "minmax",
               "observer_kwargs": {}, "symmetric": True, "type": "int", **weights}  # fmt: skip
    group = {"input_activations": activations, "output_activations": None, "targets": ["Linear"], "weights": weights}
    return {"config_groups": {"group_0": group}, "format": layout, "global_compression_ratio": 1.5, "ignore": ["lm_head"],
            "kv_cache_scheme": None, "quant_method": "compressed-tensors", "quantization_status": "compressed",
            "sparsity_config": {}, "transform_config": {}, "version": "0.12.0"}  # fmt: skip


FOLDERS = {
    "ct-int-8": described("int-quantized", {"dynamic": True, "num_bits": 8, "strategy": "token", "symmetric": True, "type": "int"},
                          num_bits=8, strategy="channel"),
    "ct-packed-4": described("pack-quantized", num_bits=4, strategy="group", group_size=32, symmetric=False),
    "ct-packed-4-sym": described("pack-quantized", num_bits=4, strategy="channel", actorder="static"),
    "ct-packed-8": described("pack-quantized", num_bits=8, strategy="group", group_size=32),
    "ct-float-8": described("float-quantized", {"dynamic": True, "num_bits": 8, "strategy": "token", "symmetric": True, "type": "float"},
                            num_bits=8, strategy="channel", type="float"),
    "ct-float-8-tensor": described("float-quantized", {"dynamic": False, "num_bits": 8, "strategy": "tensor", "symmetric": True, "type": "float"},
                                   num_bits=8, strategy="tensor", type="float"),
}  # fmt: skip


def words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Neighbours of the last axis in words of 32 bits, the first in the lowest bits."""
    per_word = 32 // bits
    codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % per_word)))
    shifts = np.arange(per_word, dtype=np.uint32) * np.uint32(bits)
    groups = codes.reshape(len(codes), -1, per_word).astype(np.uint32)
    return np.bitwise_or.reduce(groups << shifts, axis=-1).astype(np.uint32).view(np.int32)


def matrix(how: dict[str, Any], inputs: int, outputs: int, random: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    """The stored tensors, by the ends of their names, and the weights ``[outputs, inputs]``."""
    group = how["config_groups"]["group_0"]
    make = floats if group["weights"]["type"] == "float" else integers
    stored, weights = make(how, group["weights"], inputs, outputs, random)
    if (group["input_activations"] or {}).get("dynamic") is False:
        stored["input_scale"] = torch.tensor([0.02], dtype=torch.bfloat16)
    check(how, stored, weights)
    return stored, weights


def floats(how: dict, args: dict, inputs: int, outputs: int, random: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    rows = outputs if args["strategy"] == "channel" else 1
    codes = torch.from_numpy(random.normal(0, 150, (outputs, inputs))).clamp(-448, 448).to(torch.float8_e4m3fn)
    scales = torch.from_numpy(random.uniform(0.5, 1.5, (rows, 1)) / 150 / inputs**0.5).to(torch.bfloat16)
    weights = codes.double() * scales.double()
    stored = {"weight": codes, "weight_scale": scales if rows > 1 else scales[0]}
    return stored, weights.numpy().astype(np.float32)


def integers(how: dict, args: dict, inputs: int, outputs: int, random: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    bits, middle = args["num_bits"], 1 << (args["num_bits"] - 1)
    group = args["group_size"] or inputs
    groups = inputs // group
    codes = np.clip(np.round(random.normal(middle, middle / 3, (outputs, inputs))), 0, 2 * middle - 1).astype(np.int64)
    zeros = np.full((outputs, groups), middle) if args["symmetric"] else random.integers(0, 2 * middle, (outputs, groups))
    spread = 3 / middle / inputs**0.5
    scales = torch.from_numpy(spread * random.uniform(0.5, 1.5, (outputs, groups))).to(torch.bfloat16)
    weights = (codes - zeros.repeat(group, 1)) * scales.double().numpy().repeat(group, 1)
    stored: dict[str, Tensor | np.ndarray] = {"weight_scale": scales}
    if how["format"] == "int-quantized":
        stored["weight"] = (codes - middle).astype(np.int8)
    else:
        stored |= {"weight_packed": words(codes, bits), "weight_shape": np.array([outputs, inputs])}
    if not args["symmetric"]:
        stored["weight_zero_point"] = np.ascontiguousarray(words(zeros.T, bits).T)
    return stored, weights.astype(np.float32)


def check(how: dict[str, Any], stored: dict[str, Any], weights: np.ndarray) -> None:
    """The package reads the same weights from the tensors."""
    if compressors is None:
        return
    scheme = QuantizationScheme(**how["config_groups"]["group_0"])
    tensors = {name: torch.as_tensor(values) for name, values in stored.items()}
    tensors["weight_scale"] = tensors["weight_scale"].double()
    reader = compressors.BaseCompressor.get_value_from_registry(how["format"])
    read = reader.decompress(tensors, scheme)["weight"]
    np.testing.assert_allclose(read.double().numpy(), weights.astype(np.float64), rtol=1e-6, atol=0)
