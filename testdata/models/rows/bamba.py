"""Bamba: Mamba-2 layers and attention with half of a head rotated."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from faults import Fault, edit, if_config, other_rope, without
from rows import _mamba2
from rows._common import COMMON

BAMBA = {**COMMON, "architectures": ["BambaForCausalLM"], "model_type": "bamba"}


# Its modules have other names, and faults of their own below.
OTHER_NAMES = {"final norm missing"}


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    """The final and the feed-forward norms have other names than Llama's."""
    if name.endswith("layernorm.weight"):
        tied_head = name == "model.final_layernorm.weight" and config.tie_word_embeddings
        return (0.4 if tied_head else 1.3) * (0.4 + 1.2 * torch.rand(shape, generator=random))
    return _mamba2.draw(name, shape, config, random)


MODELS = {
    "bamba-tiny": {  # as 9B: one group, half of a head rotated, 2 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "cannot_have": OTHER_NAMES,
        "config": {**BAMBA, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
                   "attn_layer_indices": [1], "attn_rotary_emb": 6, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "tie_word_embeddings": False, "attention_bias": False,
                   "mlp_bias": False, "rope_theta": 10000.0, "rope_scaling": None, "mamba_n_heads": 6,
                   "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 32, "mamba_d_conv": 4,
                   "mamba_expand": 2, "mamba_chunk_size": 16, "mamba_conv_bias": True, "mamba_proj_bias": False},
    },
    "bamba-tiny-bias": {  # biases, all of a head rotated by the RoPE parameters, a KV head for each query head, 2 taps, tied
        "dtype": "float16", "shards": 2, "draw": draw, "cannot_have": OTHER_NAMES,
        "config": {**BAMBA, "hidden_size": 48, "intermediate_size": 70, "num_hidden_layers": 3,
                   "attn_layer_indices": [0, 2], "num_attention_heads": 3, "num_key_value_heads": 3,
                   "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 30000.0, "partial_rotary_factor": 1.0},
                   "mamba_n_heads": 3, "mamba_d_head": "auto", "mamba_n_groups": 1, "mamba_d_state": 12,
                   "mamba_d_conv": 2, "mamba_expand": 1, "mamba_chunk_size": 32, "mamba_conv_bias": True,
                   "mamba_proj_bias": True},
    },
    "bamba-tiny-groups": {  # 4 groups of 2 heads, linear RoPE, no bias of the convolution, one KV head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "cannot_have": OTHER_NAMES,
        "config": {**BAMBA, "hidden_size": 40, "intermediate_size": 64, "num_hidden_layers": 3,
                   "attn_layer_indices": [0], "num_attention_heads": 5, "num_key_value_heads": 1,
                   "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 9000.0, "factor": 2.0},
                   "mamba_n_heads": 8, "mamba_d_head": 10, "mamba_n_groups": 4, "mamba_d_state": 16,
                   "mamba_d_conv": 3, "mamba_expand": 2, "mamba_chunk_size": 8, "mamba_conv_bias": False,
                   "mamba_proj_bias": False},
    },
}  # fmt: skip


def is_bamba(config: Any) -> bool:
    return config.model_type == "bamba"


def rotates_a_part(model: Any) -> bool:
    return is_bamba(model.config) and model.config.rope_parameters["partial_rotary_factor"] != 1


FAULTS = [
    Fault("Bamba's final norm missing", without("model.final_layernorm"), if_config(is_bamba)),
    Fault("Bamba's feed-forward norm missing", without("pre_ff_layernorm"), if_config(is_bamba)),
    Fault("all of Bamba's heads rotated", edit(other_rope(lambda rope: rope.update(partial_rotary_factor=1.0))), rotates_a_part),
]
