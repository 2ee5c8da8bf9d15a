"""The tiny checkpoints, one module a family: `MODELS`, and where a family can have mistakes of its own, `FAULTS`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

FAMILIES: list[ModuleType] = [
    import_module(f"rows.{path.stem}") for path in sorted(Path(__file__).parent.glob("*.py")) if path.stem[0] != "_"
]


def all_models() -> dict[str, dict[str, Any]]:
    """Every row by the name of its folder."""
    return {name: row for family in FAMILIES for name, row in getattr(family, "MODELS", {}).items()}


def all_faults() -> list[Any]:
    """The families' own faults."""
    return [fault for family in FAMILIES for fault in getattr(family, "FAULTS", [])]
