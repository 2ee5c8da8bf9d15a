#!/usr/bin/env python3
"""Writes a file for each of ggml's block types: rows of blocks, then the floats that the `gguf` package makes of them.

    python3 testdata/ggml/generate.py        # needs numpy and gguf (made with 0.19)

`<type>.bin` has ROWS rows (of types with a codebook more) of COLS columns in ggml's bytes, then the same rows as little-endian f32. Codes are random bytes; the
scales of each row are of one kind: random ones, the largest, negative ones, denormals, zeros of both signs, mixtures.

`<type>.quantized.bin`, of the types that floats are quantised to, has rows of COLS floats, then the blocks that the package makes of them.

GRIDS has the codebooks of `gguf.quants` as Rust source.
"""

import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS, dequantize, quantize

ROWS, COLS, SEED = 6, 256, 20261121

# Where a block has half-precision floats.
HALVES = {
    "Q8_0": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "MXFP4": [],
    "IQ4_XS": [0],
    "IQ3_S": [0],
    "IQ3_XXS": [0],
    "IQ2_S": [0],
    "IQ2_XS": [0],
    "IQ2_XXS": [0],
    "IQ1_M": [],
    "IQ1_S": [0],
}
# Rows of the types with a codebook, so many that random numbers meet (nearly) all entries; their scales' kinds take turns.
CODEBOOKS = {"IQ3_S": 64, "IQ3_XXS": 32, "IQ2_S": 128, "IQ2_XS": 64, "IQ2_XXS": 32, "IQ1_M": 256, "IQ1_S": 256}
GRIDS = pathlib.Path(__file__).parent / "../../crates/lm-kernels/src/host/pack/ggml/grids.rs"

# Bits of the halves of a row: of these, at random.
KINDS = [
    None,  # any finite one
    [0x7BFF],  # 65,504
    [0xFBFF, 0xBC00, 0x8001],  # negative: the largest, one, a denormal
    [0x0001, 0x03FF, 0x0400],  # the smallest, the largest denormal, the smallest normal
    [0x0000, 0x8000],
    [0x2C00, 0xA1B7, 0x1234, 0x0011],
]
# The same for the exponents of MXFP4, of which 255 is no number.
EXPONENTS = [None, [254], [0, 1], [2, 3], [125, 126, 127], [253, 0, 128]]


def blocks(kind, rng):
    columns, size = GGML_QUANT_SIZES[kind]
    count = CODEBOOKS.get(kind.name, ROWS)
    rows = rng.integers(0, 256, (count, COLS // columns, size), dtype=np.uint8)
    # Codes and integer scales at the ends of their ranges.
    rows[1, ::2, :] = 0xFF
    rows[2, ::2, :] = 0x00
    rows[3, ::2, :] = 0x80
    for row in range(count):
        bits, exponents = KINDS[row % len(KINDS)], EXPONENTS[row % len(KINDS)]
        for offset in HALVES[kind.name]:
            rows[row, :, offset : offset + 2] = halves(bits, rows.shape[1], rng).view(np.uint8)
        if kind == GGMLQuantizationType.IQ1_M:  # the upper four bits of each of the last four words
            half = halves(bits, rows.shape[1], rng).astype(np.int64)
            words = rows[row, :, 48:].copy().view("<u2")
            words = words & 0x0FFF | (half >> np.arange(0, 16, 4) & 15).astype("<u2") << 12
            rows[row, :, 48:] = words.view(np.uint8)
        if kind == GGMLQuantizationType.MXFP4:
            rows[row, :, 0] = rng.integers(0, 255, rows.shape[1]) if exponents is None else rng.choice(exponents, rows.shape[1])
    return rows.reshape(count, -1)


def halves(bits, count, rng):
    any_finite = rng.integers(0, 0x7C00, count) | rng.integers(0, 2, count) << 15
    return (any_finite if bits is None else rng.choice(bits, count)).astype("<u2").reshape(count, 1)


def grids():
    """The codebooks as source: which numbers, whose digits are an entry's magnitudes, are in them. Entries are in their order."""
    parts = ["//! Codebook entries as bit sets. Written by `testdata/ggml/generate.py` from the tables of `gguf.quants`.\n"]
    for quants in (IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS):
        quants.init_grid()
        levels = len(quants.grid_map)
        digits = np.searchsorted(quants.grid_map, quants.grid.reshape(quants.grid_shape))
        numbers = digits @ levels ** np.arange(digits.shape[1])
        assert (np.diff(numbers) > 0).all(), "the order of a codebook is that of its numbers"
        words = [0] * -(-(levels ** digits.shape[1]) // 64)
        for number in numbers.tolist():
            words[number // 64] |= 1 << number % 64
        name = quants.__name__.removesuffix("_S") if quants is IQ1_S else quants.__name__
        rows = [", ".join(f"{word:#018x}" for word in words[at : at + 5]) for at in range(0, len(words), 5)]
        body = ",\n    ".join(rows)
        parts.append(f"#[rustfmt::skip]\npub(super) const {name}: [u64; {len(words)}] = [\n    {body},\n];\n")
    GRIDS.write_text("\n".join(parts))


def floats(rng):
    """Rows of one kind each: what rounding, its ties, and the choice of the largest value depend on."""
    normal = rng.standard_normal((10, COLS)).astype(np.float32)
    steps = rng.integers(-127, 128, COLS)
    rows = [
        normal[0],
        normal[1] * np.float32(1e-3),
        normal[2] * np.float32(5e4),
        normal[3] * np.float32(1e-7),  # steps that are denormal halves, or none
        np.zeros(COLS),
        -np.zeros(COLS),
        np.where(np.arange(COLS) % 32 == 5, 127, steps / 2),  # halves of a step of 1
        np.where(np.arange(COLS) % 32 == 5, -8, np.clip(steps // 9, -15, 15) / 2),
        rng.choice([-1.5, 1.5], COLS),  # the largest of either sign
        rng.choice([0.0, -0.0, 3e-5, -7.25], COLS),
        np.exp2(rng.uniform(-20, 10, COLS)) * rng.choice([-1, 1], COLS),
        normal[4].astype(np.float16).astype(np.float32),
    ]
    return np.array(rows, dtype=np.float32)


def main():
    grids()
    rng = np.random.default_rng(SEED)
    for name in HALVES:
        kind = GGMLQuantizationType[name]
        rows = blocks(kind, rng)
        with np.errstate(over="ignore"):
            values = dequantize(rows, kind)
        assert values.shape == (len(rows), COLS) and not np.isnan(values).any(), name
        out = pathlib.Path(__file__).with_name(f"{name.lower()}.bin")
        out.write_bytes(rows.tobytes() + values.astype("<f4").tobytes())
    values = floats(np.random.default_rng(SEED))
    for name in ("Q4_0", "Q8_0"):
        made = quantize(values, GGMLQuantizationType[name])
        out = pathlib.Path(__file__).with_name(f"{name.lower()}.quantized.bin")
        out.write_bytes(values.astype("<f4").tobytes() + made.tobytes())


if __name__ == "__main__":
    main()
