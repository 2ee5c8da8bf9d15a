"""Checkpoints in 8-bit floats with factors, as `quant_method` fp8 writes them."""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST = 448.0  # of float8_e4m3fn


def fp8(block: tuple[int, int] | None, kept: tuple[str, ...]):
    """For a row's `tensors`: matrices of layers become 8-bit floats, with a factor for each block or for all of a matrix."""

    def tensors(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
        published = {}
        for name, values in weights.items():
            if values.dim() != 2 or ".layers." not in name or any(part in name for part in kept):
                published[name] = values
                continue
            rows, cols = values.shape
            r, c = block or (rows, cols)
            blocks = values.float().reshape(rows // r, r, cols // c, c)
            mantissas, exponents = torch.frexp(blocks.abs().amax((1, 3)) / LARGEST)
            # Four bits of each factor: products then have no more than bfloat16 holds, to which the reference rounds them.
            factors = torch.ldexp((16 * mantissas).ceil() / 16, exponents)
            codes = (blocks / factors[:, None, :, None]).reshape(rows, cols).to(torch.float8_e4m3fn)
            published[name] = codes
            published[f"{name}_scale_inv"] = factors if block else factors.reshape(())
        return published

    return tensors
