"""Mixtures of experts: how their weights are drawn and stored, and the mistakes that all of them can have."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from faults import each, edit

ROUTERS = ("mlp.gate.weight", "feed_forward.gate.weight", "block_sparse_moe.router.weight")
CORRECTIONS = ("e_score_correction_bias", "expert_bias")


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    """A router that is sure of some rows and unsure of others; what its experts do must differ."""
    if name.endswith(ROUTERS):
        return 2.0 * torch.randn(shape, generator=random) / math.sqrt(shape[-1])
    if name.endswith(CORRECTIONS):
        return 0.4 * torch.randn(shape, generator=random)
    return None


def renamed(names: dict[str, str]) -> Any:
    """Published checkpoints have other names for parts of these."""

    def store(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
        def new(name: str) -> str:
            return next((name.replace(own, other) for own, other in names.items() if own in name), name)

        return {new(name): values for name, values in weights.items()}

    return store


def stored_by_expert(
    module: str = "mlp.experts", names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"), others: dict[str, str] | None = None
) -> Any:
    """Published checkpoints have each projection of each expert on its own."""

    def store(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
        published = {}
        for name, values in renamed(others or {})(weights, random).items():
            stem, _, projection = name.rpartition(".")
            if not stem.endswith(".experts"):
                published[name] = values
                continue
            layer = ".".join(stem.split(".")[:3])
            for expert, matrix in enumerate(values):
                parts = zip(names[:2], matrix.chunk(2)) if projection == "gate_up_proj" else [(names[2], matrix)]
                published |= {f"{layer}.{module}.{expert}.{part}.weight": half.contiguous() for part, half in parts}
        return published

    return store


def routers(model: Any) -> list[Any]:
    return [router for part in ("gate", "router") for router in each(model, part) if hasattr(router, "top_k")]


def has_routers(*attributes: str) -> Any:
    """For faults of models whose routers have these attributes."""
    return lambda model: bool(found := routers(model)) and all(hasattr(router, key) for router in found for key in attributes)


def has_experts(model: Any) -> bool:
    return bool(routers(model)) and all(hasattr(experts, "gate_up_proj") for experts in each(model, "experts"))


def change_routers(**changes: Any) -> Any:
    def change(model: Any) -> None:
        for router in routers(model):
            for key, to in changes.items():
                setattr(router, key, to(getattr(router, key)))

    return edit(change)


def swap_halves(model: Any) -> None:
    for experts in each(model, "experts"):
        experts.gate_up_proj.data = torch.cat(experts.gate_up_proj.data.chunk(2, 1)[::-1], 1)


def next_expert(model: Any) -> None:
    for experts in each(model, "experts"):
        experts.down_proj.data = experts.down_proj.data.roll(1, 0)


def correction_of(router: Any, parents: dict[Any, Any]) -> Tensor | None:
    """What is added to a router's scores in the choice only, wherever the family keeps it."""
    for module in (router, parents[router], getattr(router, "moe_statics", None)):
        for name in CORRECTIONS:
            if module is not None and (found := getattr(module, name, None)) is not None:
                return found
    return None


def corrections(model: Any) -> list[tuple[Any, Tensor]]:
    parents = {child: module for module in model.modules() for child in module.children()}
    found = [(router, correction_of(router, parents)) for router in routers(model)]
    return [(router, correction) for router, correction in found if correction is not None]


def no_corrections(model: Any) -> None:
    for _, correction in corrections(model):
        correction.data.zero_()


def correct_weights(model: Any) -> None:
    """The corrected scores as the experts' weights."""
    for router, correction in corrections(model):
        forward = router.forward

        def corrected(*inputs: Any, forward: Any = forward, router: Any = router, correction: Tensor = correction) -> Any:
            logits, _, chosen = forward(*inputs)
            scores = logits.softmax(-1) if hasattr(router, "moe_statics") else logits.sigmoid()
            weights = (scores + correction.squeeze()).gather(-1, chosen)
            if getattr(router, "norm_topk_prob", True):
                weights = weights / weights.sum(-1, keepdim=True)
            return logits, weights * getattr(router, "routed_scaling_factor", 1.0), chosen

        router.forward = corrected


def has_groups(model: Any) -> bool:
    return any(getattr(router, "num_group", 1) > 1 for router in routers(model))


def scales_routed(model: Any) -> bool:
    return any(getattr(router, "routed_scaling_factor", 1.0) != 1.0 for router in routers(model))
