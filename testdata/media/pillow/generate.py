"""Writes the pictures of this folder and `golden.json`: what Pillow makes of them. See README.md."""

import hashlib
import io
import json
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

FOLDER = Path(__file__).parent
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS}

# Pictures at 100 times the width, and their sizes afterwards.
HIGH = [
    ((3, 399), [(5, 40), (3, 40), (2, 398), (5, 399), (1, 400), (7, 1)]),
    ((10, 1001), [(4, 100), (20, 1000), (4, 1001), (20, 1002)]),
    ((10, 1000), [(4, 100), (20, 999), (4, 1001)]),
    ((3, 301), [(2, 30), (9, 300)]),
    ((3, 300), [(2, 30), (9, 299)]),
    ((399, 3), [(40, 5), (40, 2)]),
]


def pixels(width, height):
    """A pattern that the test computes too."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return (x * 37 + y * y * 11 + x * y * 7 + c * 59).astype(np.uint8)


def digest(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def resized():
    for source, targets in HIGH:
        image = Image.fromarray(pixels(*source))
        for name, kind in FILTERS.items():
            for target in targets:
                yield {"source": source, "filter": name, "size": target, "sha256": digest(image.resize(target, kind))}


def main():
    golden = {"resized": list(resized())}
    lines = ",\n".join(f'"{key}": [\n' + ",\n".join(json.dumps(entry) for entry in entries) + "\n]" for key, entries in golden.items())
    (FOLDER / "golden.json").write_text("{\n" + lines + "\n}\n")


main()
