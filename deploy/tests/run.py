"""Tests of the files of `deploy/` with two replicas of `lm serve` on this machine; prints a table of what clients saw.

    python deploy/tests/run.py target/release/lm [--only nginx]

Needs nginx with njs (Debian: nginx, libnginx-mod-http-js), and for Ray the packages of requirements.txt.
"""

import argparse
import shutil
import sys
from pathlib import Path

import cases
import nginx_edges
from processes import Nginx

KILLED = ("one replica killed (SIGKILL), started again", "kill", True)
DRAINED = ("one replica ended (SIGTERM), started again", "drain", False)
REPLACED = ("one server killed, replaced by Serve", "kill", True)
RAY_KILLED = ("one replica of Serve killed, replaced", "kill_replica", True)


def nginx_rows(lm):
    yield from cases.rows("nginx", lambda affinity: Nginx(lm, affinity), [KILLED, DRAINED])
    yield from nginx_edges.rows(lm)


def ray_rows(lm):
    import ray_front

    ray_front.start_ray()
    yield from ray_front.batch(lm)
    yield from cases.rows("Ray Serve", lambda affinity: ray_front.RayServe(lm, affinity), [REPLACED, RAY_KILLED])


PARTS = {"nginx": nginx_rows, "ray": ray_rows}


def main():
    parser = argparse.ArgumentParser(description="Test nginx and Ray with two replicas of lm serve")
    parser.add_argument("lm", type=Path, help="the program `lm`")
    parser.add_argument("--only", choices=PARTS, help="part to test [default: all]")
    given = parser.parse_args()
    lm = shutil.which(given.lm.resolve()) or parser.error(f"{given.lm} is no program")
    print("| router | what happens | requests | what clients saw |\n|---|---|---|---|")
    for part in [given.only] if given.only else PARTS:
        for row in PARTS[part](lm):
            print("|", " | ".join(map(str, row)), "|", flush=True)


if __name__ == "__main__":
    sys.exit(main())
