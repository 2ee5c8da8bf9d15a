"""Granite 4: Mamba-2 layers and attention with Granite's factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from faults import Fault, each, edit
from rows import _mamba2, _moe
from rows._common import COMMON
from rows.granite_moe import STORED


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    """Of Mamba-2 layers and of experts."""
    found = _mamba2.draw(name, shape, config, random)
    return _moe.draw(name, shape, config, random) if found is None else found


HYBRID = {**COMMON, "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid",
          "num_experts_per_tok": 0, "num_local_experts": 0}  # fmt: skip
MODELS = {
    "granite-hybrid-tiny": {  # as H Micro: no positions, one group, dense, tied
        "dtype": "bfloat16", "shards": 1, "embedding_scale": 3.0, "draw": _mamba2.draw,
        "config": {**HYBRID, "hidden_size": 48, "intermediate_size": 80, "shared_intermediate_size": 80,
                   "num_hidden_layers": 4, "layer_types": ["mamba", "mamba", "attention", "mamba"],
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "attention_bias": False, "position_embedding_type": "nope", "rope_theta": 10000,
                   "mamba_n_heads": 6, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 32,
                   "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 16, "mamba_conv_bias": True,
                   "mamba_proj_bias": False, "embedding_multiplier": 3.0, "attention_multiplier": 0.4,
                   "residual_multiplier": 0.6, "logits_scaling": 1.7},
    },
    "granite-hybrid-tiny-dense": {  # as Micro: attention with positions in every layer, a KV head for each query head
        "dtype": "bfloat16", "shards": 1, "embedding_scale": 0.7,
        "config": {**HYBRID, "hidden_size": 48, "intermediate_size": 72, "shared_intermediate_size": 72,
                   "num_hidden_layers": 3, "layer_types": ["attention"] * 3,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": True,
                   "attention_bias": False, "position_embedding_type": "rope", "rope_theta": 20000.0,
                   "mamba_n_heads": 6, "mamba_d_head": 16, "embedding_multiplier": 0.7,
                   "attention_multiplier": 0.3, "residual_multiplier": 1.2, "logits_scaling": 0.8},
    },
    "granite-hybrid-tiny-experts": {  # as H Tiny: 2 of 5 experts of width 20 beside a shared one, no positions, tied
        "dtype": "bfloat16", "shards": 1, "embedding_scale": 2.0, "draw": draw, "tensors": STORED,
        "config": {**HYBRID, "hidden_size": 48, "intermediate_size": 20, "shared_intermediate_size": 28,
                   "num_local_experts": 5, "num_experts_per_tok": 2,
                   "num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"],
                   "num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "attention_bias": False, "position_embedding_type": "nope", "rope_theta": 10000,
                   "mamba_n_heads": 6, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 16,
                   "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 16, "mamba_conv_bias": True,
                   "mamba_proj_bias": False, "embedding_multiplier": 2.0, "attention_multiplier": 0.4,
                   "residual_multiplier": 0.8, "logits_scaling": 1.3},
    },
    "granite-hybrid-tiny-groups": {  # 3 groups, head sizes that are no multiple of 16, 3 taps, biases, positions, untied
        "dtype": "float16", "shards": 2, "embedding_scale": 1.5, "draw": _mamba2.draw,
        "config": {**HYBRID, "hidden_size": 40, "intermediate_size": 56, "shared_intermediate_size": 70,
                   "num_hidden_layers": 3, "layer_types": ["full_attention", "linear_attention", "linear_attention"],
                   "num_attention_heads": 5, "num_key_value_heads": 1, "tie_word_embeddings": False,
                   "attention_bias": True, "position_embedding_type": "rope",
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 9000.0, "factor": 2.0},
                   "mamba_n_heads": 6, "mamba_d_head": "auto", "mamba_n_groups": 3, "mamba_d_state": 20,
                   "mamba_d_conv": 3, "mamba_expand": 3, "mamba_chunk_size": 8, "mamba_conv_bias": False,
                   "mamba_proj_bias": True, "time_step_limit": [0.0, {"__float__": "Infinity"}],
                   "embedding_multiplier": 1.5, "attention_multiplier": 0.5, "residual_multiplier": 0.9,
                   "logits_scaling": 0.9},
    },
}  # fmt: skip


def of_family(model: Any) -> bool:
    return model.config.model_type == "granitemoehybrid"


def set_residual(to: Callable[[float], float]) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for layer in model.model.layers:
            layer.residual_multiplier = to(layer.residual_multiplier)

    return change


def scale_by_head(model: Any) -> None:
    for attention in each(model, "self_attn"):
        if attention is not None:
            attention.scaling = attention.head_dim**-0.5


FAULTS = [
    *_mamba2.FAULTS,
    Fault("Granite 4's embedding multiplier missing", edit(lambda model: setattr(model.model, "embedding_multiplier", 1)), of_family),
    Fault("Granite 4's logits scaling missing", edit(lambda model: setattr(model.config, "logits_scaling", 1)), of_family),
    Fault("Granite 4's residual multiplier missing", edit(set_residual(lambda _: 1)), of_family),
    Fault("Granite 4's attention scale by the head", edit(scale_by_head), of_family),
]
