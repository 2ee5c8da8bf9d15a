"""The usual mistakes in a decoder, each as a change to the reference implementation.

A golden is worth something only when each of these moves its logits far past the tolerance; `generate.py` measures it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn


def always(_: Any) -> bool:
    return True


@dataclass(frozen=True)
class Fault:
    name: str
    inject: Callable[[Any], AbstractContextManager[None]]
    applies: Callable[[Any], bool] = always  # of a model


def if_config(test: Callable[[Any], object]) -> Callable[[Any], bool]:
    """For faults that depend on the model's config only."""
    return lambda model: bool(test(model.config))


def if_part(*parts: str) -> Callable[[Any], bool]:
    """For faults in modules with these names; all of them must be there."""
    return lambda model: all(each(model, part) for part in parts)


def if_bias(*parts: str) -> Callable[[Any], bool]:
    return lambda model: any(m.bias is not None for part in parts for m in each(model, part))


def windowed(model: Any) -> bool:
    return bool(getattr(model.config, "sliding_window", None))  # 0 for none, too


def mixed_windows(model: Any) -> bool:
    return windowed(model) and "full_attention" in (getattr(model.config, "layer_types", None) or [])


def rotates(model: Any) -> bool:
    """One rotation for all layers, by the function that most models share."""
    if getattr(model.base_model, "rotary_emb", None) is None:
        return False
    return hasattr(code_of(model), "apply_rotary_pos_emb") and "rope_theta" in (model.config.rope_parameters or {})


def code_of(model: Any) -> Any:
    """The module that the model's classes are written in; its functions are looked up there at each call."""
    return sys.modules[type(model).__module__]


def edit(change: Callable[[Any], object]) -> Callable[[Any], AbstractContextManager[None]]:
    """A fault that changes the model itself, which is thrown away afterwards."""

    @contextmanager
    def inject(model: Any) -> Iterator[None]:
        change(model)
        yield

    return inject


def replace(function: str, by: Callable[..., Any]) -> Callable[[Any], AbstractContextManager[None]]:
    """A fault that stands in for a function of the model's code."""
    return lambda model: mock.patch.object(code_of(model), function, by)


def each(model: Any, part: str) -> list[Any]:
    """Every module whose name ends in `part`."""
    return [m for n, m in model.named_modules() if n.split(".")[-1] == part]


def without(*parts: str) -> Callable[[Any], AbstractContextManager[None]]:
    """A fault that leaves out the modules with these names (their direct parent skips them)."""

    def change(model: Any) -> None:
        for name, module in list(model.named_modules()):
            if name in parts or name.split(".")[-1] in parts:
                model.get_submodule(name.rpartition(".")[0])._modules[name.split(".")[-1]] = nn.Identity()

    return edit(change)


def no_rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    return q, k


def interleaved_rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    size = cos.shape[-1]
    cos, sin = (t[..., : size // 2].repeat_interleave(2, -1).unsqueeze(unsqueeze_dim) for t in (cos, sin))

    def turn(x: Tensor) -> Tensor:
        turned = torch.stack((-x[..., 1:size:2], x[..., 0:size:2]), -1).flatten(-2)
        return torch.cat((x[..., :size] * cos + turned * sin, x[..., size:]), -1)

    return turn(q), turn(k)


def half_split_rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    size = cos.shape[-1]
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)

    def turn(x: Tensor) -> Tensor:
        first, second = x[..., :size].chunk(2, -1)
        return torch.cat((x[..., :size] * cos + torch.cat((-second, first), -1) * sin, x[..., size:]), -1)

    return turn(q), turn(k)


def interleaves(model: Any) -> bool:
    """True of a model whose pairs are adjacent."""
    rotate_half = getattr(code_of(model), "rotate_half", None)
    return rotate_half is not None and rotate_half(torch.arange(4.0))[0] == -1


def tiled_kv(x: Tensor, repeats: int) -> Tensor:
    """Query head i reads KV head i % kv_heads, where i // repeats is right."""
    return x.repeat(1, repeats, 1, 1)


def rotation_of(model: Any) -> Any:
    """The module that makes the rotations."""
    inner = model.base_model
    return inner.rotary_emb if hasattr(inner, "rotary_emb") else inner.pos_emb


def other_rope(change: Callable[[dict[str, Any]], object]) -> Callable[[Any], None]:
    """Rotations made from changed `rope_parameters`."""

    def edited(model: Any) -> None:
        change(model.config.rope_parameters)
        rotation = rotation_of(model)
        rotation.__init__(model.config)

    return edited


def turn_theta(to: Callable[[float], float]) -> Callable[[Any], None]:
    return other_rope(lambda rope: rope.update(rope_theta=to(rope["rope_theta"])))


def rope_is(kind: str) -> Callable[[Any], bool]:
    return lambda model: rotates(model) and model.config.rope_parameters["rope_type"] == kind


def set_eps(model: Any) -> None:
    for module in model.modules():
        for key in ("variance_epsilon", "eps"):
            if isinstance(getattr(module, key, None), float):
                setattr(module, key, 1e-6)


def turn_scale(by: Callable[[Any], float]) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for module in each(model, "self_attn"):
            module.scaling *= by(model.config)

    return change


def widening(config: Any) -> float:
    """head_dim over hidden / heads: 1 for a config that leaves head_dim out."""
    share = config.hidden_size / config.num_attention_heads
    return (getattr(config, "head_dim", None) or share) / share


def move_window(by: int) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        model.config.sliding_window += by

    return change


def window_everywhere(model: Any) -> AbstractContextManager[None]:
    """Only the masks: what else a layer's type decides stays."""
    return mock.patch.object(code_of(model), "create_causal_mask", code_of(model).create_sliding_window_causal_mask)


def no_window(model: Any) -> None:
    model.config.sliding_window = model.config.max_position_embeddings


def drop_biases(*parts: str) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for part in parts:
            for module in each(model, part):
                module.bias.data.zero_()

    return change


def swishes(model: Any) -> bool:
    return any("SiLU" in type(getattr(mlp, "act_fn", None)).__name__ for mlp in each(model, "mlp"))


def swap_gate_and_up(model: Any) -> None:
    for mlp in (mlp for mlp in model.modules() if hasattr(mlp, "gate_proj") and hasattr(mlp, "up_proj")):
        mlp.gate_proj, mlp.up_proj = mlp.up_proj, mlp.gate_proj


def use_gelu(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.act_fn = nn.GELU()


ATTENTION = ("q_proj", "k_proj", "v_proj")
MLP = ("gate_proj", "up_proj", "down_proj")
# Those that any decoder can have; a family adds its own in rows/.
FAULTS = [
    Fault("RoPE off", replace("apply_rotary_pos_emb", no_rope), rotates),
    Fault("RoPE interleaved", replace("apply_rotary_pos_emb", interleaved_rope), lambda model: rotates(model) and not interleaves(model)),
    Fault("RoPE half-split", replace("apply_rotary_pos_emb", half_split_rope), lambda model: rotates(model) and interleaves(model)),
    Fault(
        "RoPE theta 10,000",
        edit(turn_theta(lambda _: 10_000.0)),
        lambda model: rotates(model) and model.config.rope_parameters["rope_theta"] != 10_000.0,
    ),
    Fault("RoPE theta 10 % too large", edit(turn_theta(lambda theta: 1.1 * theta)), rotates),
    *(
        Fault(
            f"{kind} RoPE scaling ignored",
            edit(other_rope(lambda rope: rope.update(rope_type="default"))),
            rope_is(kind),
        )
        for kind in ("linear", "dynamic", "llama3", "yarn", "longrope")
    ),
    Fault(
        "RoPE's factor on sine and cosine missing",
        edit(lambda model: setattr(rotation_of(model), "attention_scaling", 1.0)),
        lambda model: rotates(model) and rotation_of(model).attention_scaling != 1.0,
    ),
    Fault("norm eps 1e-6", edit(set_eps)),
    Fault("attention scale 5 % too large", edit(turn_scale(lambda _: 1.05)), if_part("self_attn")),
    Fault(
        "attention scale by hidden / heads",
        edit(turn_scale(lambda config: widening(config) ** 0.5)),
        if_config(lambda config: widening(config) != 1 and not hasattr(config, "query_pre_attn_scalar")),
    ),
    Fault(
        "KV heads tiled in place of repeated",
        replace("repeat_kv", tiled_kv),
        if_config(lambda config: 1 < getattr(config, "num_key_value_heads", 1) < config.num_attention_heads),
    ),
    Fault("window one longer", edit(move_window(1)), windowed),
    Fault("window one shorter", edit(move_window(-1)), windowed),
    Fault("window ignored", edit(no_window), windowed),
    Fault("window on every layer", window_everywhere, mixed_windows),
    Fault("q norm missing", without("q_norm"), if_part("q_norm")),
    Fault("k norm missing", without("k_norm"), if_part("k_norm")),
    Fault("input norm missing", without("input_layernorm"), if_part("input_layernorm")),
    Fault("post-attention norm missing", without("post_attention_layernorm"), if_part("post_attention_layernorm")),
    Fault("final norm missing", without("model.norm"), if_part("norm")),
    Fault("q, k, v bias missing", edit(drop_biases(*ATTENTION)), if_bias(*ATTENTION)),
    Fault("o bias missing", edit(drop_biases("o_proj")), if_bias("o_proj")),
    Fault("feed-forward bias missing", edit(drop_biases(*MLP)), if_bias(*MLP)),
    Fault("gate and up swapped", edit(swap_gate_and_up), if_part("gate_proj", "up_proj")),
    Fault("GELU in place of SiLU", edit(use_gelu), swishes),
]
