"""The weighted mean of two checkpoints of one run, as a Hugging Face folder's weights.

    python average.py runs/two/checkpoint runs/long/checkpoint --share 0.75 --out ../model
"""

from __future__ import annotations

import argparse
from pathlib import Path

from safetensors.torch import load_file, save_file

WEIGHTS = "model.safetensors"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("checkpoints", type=Path, nargs=2)
    p.add_argument("--share", type=float, default=0.5, help="share of the second")
    p.add_argument("--out", type=Path, required=True)
    args = p.parse_args()
    one, two = (load_file(folder / WEIGHTS) for folder in args.checkpoints)
    mean = {k: ((1 - args.share) * one[k].float() + args.share * two[k].float()).to(one[k].dtype) for k in one}
    save_file(mean, args.out / WEIGHTS, metadata={"format": "pt"})


if __name__ == "__main__":
    main()
