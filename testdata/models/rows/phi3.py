"""Phi-3, Phi-3.5, Phi-4-mini."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Size, Tensor, nn

from faults import Fault, each, edit, if_config, if_part, replace
from rows._common import COMMON

PHI3 = {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3"}


def draw(name: str, shape: Size, config: Any, random: Generator) -> Tensor | None:
    """Scores that spread: the fused projection is not known by the names of its parts."""
    if "qkv_proj" in name:
        return 1.3 * torch.randn(shape, generator=random) / math.sqrt(shape[-1])
    return None


MODELS = {
    "phi3-tiny": {  # as Phi-4-mini: part of a head turns, longrope in the older spelling, a window beyond the context, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "in_pieces": False,
        "cannot_have": {"window one longer", "window one shorter", "window ignored"},
        "config": {**PHI3, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "partial_rotary_factor": 0.75, "rope_theta": 10000.0, "original_max_position_embeddings": 66,
                   "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5],
                                    "long_factor": [1.0, 2.0, 4.0, 8.0, 12.0, 16.0]},
                   "resid_pdrop": 0.0, "embd_pdrop": 0.0, "sliding_window": 4096, **COMMON},
    },
    "phi3-tiny-window": {  # as Phi-3-mini-4k: windowed, plain RoPE; half a head turns, a KV head for each query head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**PHI3, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": False,
                   "partial_rotary_factor": 0.5, "rope_theta": 20000.0, "rope_scaling": None,
                   "resid_pdrop": 0.0, "embd_pdrop": 0.0, "sliding_window": 9, **COMMON},
    },
    "phi3-tiny-long": {  # prompts up to 203 tokens, longrope with a part of a head, its factor given, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "in_pieces": False, "lengths": (1, 40, 61, 203),
        "cannot_have": {"long factors 10 tokens late"},
        "config": {**PHI3, "hidden_size": 60, "intermediate_size": 84, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "partial_rotary_factor": 0.5, "rope_theta": 10000.0, "original_max_position_embeddings": 60,
                   "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.2, 1.5],
                                    "long_factor": [1.1, 2.5, 6.0], "attention_factor": 1.2},
                   "resid_pdrop": 0.0, "embd_pdrop": 0.0, "sliding_window": None,
                   **COMMON, "max_position_embeddings": 256},
    },
}  # fmt: skip


def of_phi(config: Any) -> bool:
    return config.model_type == "phi3"


def stretched(config: Any) -> bool:
    return of_phi(config) and config.rope_parameters["rope_type"] == "longrope"


def swap_halves(part: str) -> Callable[[Any], None]:
    """The two halves of a fused projection's rows, or of its first rows (queries and keys)."""

    def change(model: Any) -> None:
        for linear in each(model, part):
            linear.weight.data = linear.weight.data.roll(len(linear.weight) // 2, 0)

    return change


def rotate_the_end(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)

    def turn(x: Tensor) -> Tensor:
        still, turns = x[..., : -cos.shape[-1]], x[..., -cos.shape[-1] :]
        first, second = turns.chunk(2, -1)
        return torch.cat((still, turns * cos + torch.cat((-second, first), -1) * sin), -1)

    return turn(q), turn(k)


def use_gelu(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.activation_fn = nn.GELU()


def swap_factors(model: Any) -> None:
    rope = model.config.rope_parameters
    rope["long_factor"], rope["short_factor"] = rope["short_factor"], rope["long_factor"]
    model.model.rotary_emb = type(model.model.rotary_emb)(model.config)


def move_switch(by: int) -> Callable[[Any], None]:
    """The longest prompt of short factors."""

    def change(model: Any) -> None:
        model.config.original_max_position_embeddings += by
        model.config.rope_parameters["original_max_position_embeddings"] += by

    return change


FAULTS = [
    Fault("queries, keys and values out of order", edit(swap_halves("qkv_proj")), if_config(of_phi)),
    Fault("fused gate and up out of order", edit(swap_halves("gate_up_proj")), if_part("gate_up_proj")),
    Fault("GELU in place of SiLU", edit(use_gelu), if_part("gate_up_proj")),
    Fault("the end of a head turns", replace("apply_rotary_pos_emb", rotate_the_end), if_config(of_phi)),
    Fault("short and long factors swapped", edit(swap_factors), if_config(stretched)),
    Fault("long factors 10 tokens late", edit(move_switch(10)), if_config(stretched)),
]
