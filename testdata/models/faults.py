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


def windowed(config: Any) -> bool:
    return getattr(config, "sliding_window", None) is not None


@dataclass(frozen=True)
class Fault:
    name: str
    inject: Callable[[Any], AbstractContextManager[None]]
    applies: Callable[[Any], bool] = always


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
    half = cos.shape[-1] // 2
    cos, sin = (t[..., :half].repeat_interleave(2, -1).unsqueeze(unsqueeze_dim) for t in (cos, sin))

    def turn(x: Tensor) -> Tensor:
        return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)

    return q * cos + turn(q) * sin, k * cos + turn(k) * sin


def tiled_kv(x: Tensor, repeats: int) -> Tensor:
    """Query head i reads KV head i % kv_heads, where i // repeats is right."""
    return x.repeat(1, repeats, 1, 1)


def plain_frequencies(theta: float, dim: int) -> Tensor:
    return 1.0 / theta ** (torch.arange(0, dim, 2, dtype=torch.float) / dim)


def turn_theta(to: Callable[[float], float]) -> Callable[[Any], None]:
    """Another base of the frequencies, scaled as before."""

    def change(model: Any) -> None:
        frequencies, theta = model.model.rotary_emb.inv_freq, model.config.rope_parameters["rope_theta"]
        dim = 2 * len(frequencies)
        frequencies.mul_(plain_frequencies(to(theta), dim) / plain_frequencies(theta, dim))

    return change


def ignore_rope_scaling(model: Any) -> None:
    frequencies = model.model.rotary_emb.inv_freq
    frequencies.copy_(plain_frequencies(model.config.rope_parameters["rope_theta"], 2 * len(frequencies)))


def set_eps(model: Any) -> None:
    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            module.variance_epsilon = 1e-6


def turn_scale(by: Callable[[Any], float]) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for module in each(model, "self_attn"):
            module.scaling *= by(model.config)

    return change


def widening(config: Any) -> float:
    """head_dim over hidden / heads: 1 for a config that leaves head_dim out."""
    return config.head_dim * config.num_attention_heads / config.hidden_size


def move_window(by: int) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        model.config.sliding_window += by

    return change


def window_everywhere(model: Any) -> None:
    model.config.layer_types[:] = ["sliding_attention"] * len(model.config.layer_types)


def no_window(model: Any) -> None:
    model.config.sliding_window = model.config.max_position_embeddings


def drop_biases(*parts: str) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for part in parts:
            for module in each(model, part):
                module.bias.data.zero_()

    return change


def swap_gate_and_up(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.gate_proj, mlp.up_proj = mlp.up_proj, mlp.gate_proj


def use_gelu(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.act_fn = nn.GELU()


ATTENTION = ("q_proj", "k_proj", "v_proj")
FAULTS = [
    Fault("RoPE off", replace("apply_rotary_pos_emb", no_rope)),
    Fault("RoPE interleaved", replace("apply_rotary_pos_emb", interleaved_rope)),
    Fault("RoPE theta 10,000", edit(turn_theta(lambda _: 10_000.0))),
    Fault("RoPE theta 10 % too large", edit(turn_theta(lambda theta: 1.1 * theta))),
    Fault(
        "llama3 RoPE scaling ignored",
        edit(ignore_rope_scaling),
        lambda config: config.rope_parameters["rope_type"] == "llama3",
    ),
    Fault("norm eps 1e-6", edit(set_eps)),
    Fault("attention scale 5 % too large", edit(turn_scale(lambda _: 1.05))),
    Fault(
        "attention scale by hidden / heads",
        edit(turn_scale(lambda config: widening(config) ** 0.5)),
        lambda config: widening(config) != 1,
    ),
    Fault(
        "KV heads tiled in place of repeated",
        replace("repeat_kv", tiled_kv),
        lambda config: 1 < config.num_key_value_heads < config.num_attention_heads,
    ),
    Fault("window one longer", edit(move_window(1)), windowed),
    Fault("window one shorter", edit(move_window(-1)), windowed),
    Fault("window ignored", edit(no_window), windowed),
    Fault("window on every layer", edit(window_everywhere), windowed),
    Fault("q norm missing", without("q_norm"), lambda config: config.model_type == "qwen3"),
    Fault("k norm missing", without("k_norm"), lambda config: config.model_type == "qwen3"),
    Fault("input norm missing", without("input_layernorm")),
    Fault("post-attention norm missing", without("post_attention_layernorm")),
    Fault("final norm missing", without("model.norm")),
    Fault("q, k, v bias missing", edit(drop_biases(*ATTENTION)), lambda config: config.attention_bias),
    Fault("o bias missing", edit(drop_biases("o_proj")), lambda config: config.attention_bias),
    Fault(
        "feed-forward bias missing",
        edit(drop_biases("gate_proj", "up_proj", "down_proj")),
        lambda config: getattr(config, "mlp_bias", False),
    ),
    Fault("gate and up swapped", edit(swap_gate_and_up)),
    Fault("GELU in place of SiLU", edit(use_gelu)),
]
