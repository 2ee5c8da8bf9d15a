"""Nemotron-H: one block a layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from faults import Fault, each, edit, without
from rows import _mamba2
from rows._common import COMMON

NEMOTRON_H = {**{key: value for key, value in COMMON.items() if key != "hidden_act"},
              "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "mlp_hidden_act": "relu2",
              "mamba_hidden_act": "silu", "layer_norm_epsilon": 0.01, "residual_in_fp32": False, "expand": 2,
              "time_step_min": 1e-6, "rescale_prenorm_residual": True}  # fmt: skip

# Its modules have other names, and faults of their own below.
OTHER_NAMES = {"attention scale by hidden / heads", "final norm missing"}


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    """The embedding and the norms have other names than Llama's."""
    if name.endswith("embeddings.weight"):
        return torch.randn(shape, generator=random)
    if name.endswith("norm_f.weight"):
        return 1.3 * (0.4 + 1.2 * torch.rand(shape, generator=random))
    return _mamba2.draw(name, shape, config, random)


def published(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
    return {name.replace("model.", "backbone.", 1): tensor for name, tensor in weights.items()}


MODELS = {
    "nemotron-h-tiny": {  # as Nano 9B v2: a pattern, groups, squared ReLU, 2 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "cannot_have": OTHER_NAMES, "tensors": published,
        "config": {**NEMOTRON_H, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 6,
                   "hybrid_override_pattern": "M-M*-M", "num_attention_heads": 4, "num_key_value_heads": 2,
                   "head_dim": 16, "attention_head_dim": 16, "tie_word_embeddings": False, "attention_bias": False,
                   "mlp_bias": False, "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2,
                   "ssm_state_size": 32, "conv_kernel": 4, "chunk_size": 16, "use_conv_bias": True,
                   "use_bias": False, "mamba_proj_bias": False, "time_step_limit": [0.0, float("inf")]},
    },
    "nemotron-h-tiny-bias": {  # biases, a head size that is no multiple of 16, 3 taps, one KV head, SiLU, untied
        "dtype": "float16", "shards": 2, "draw": draw, "cannot_have": OTHER_NAMES, "tensors": published,
        "config": {**NEMOTRON_H, "hidden_size": 40, "intermediate_size": 70, "num_hidden_layers": 5,
                   "hybrid_override_pattern": "-*MM-", "num_attention_heads": 5, "num_key_value_heads": 1,
                   "head_dim": 12, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": True,
                   "mlp_hidden_act": "silu", "mamba_num_heads": 4, "mamba_head_dim": 20, "n_groups": 1,
                   "ssm_state_size": 24, "conv_kernel": 3, "chunk_size": 8, "use_conv_bias": True,
                   "use_bias": True},
    },
    "nemotron-h-tiny-list": {  # a list of blocks, a group for each head, no bias of the convolution, a KV head for each query head
        "dtype": "bfloat16", "shards": 1, "draw": draw, "cannot_have": OTHER_NAMES,
        "config": {**NEMOTRON_H, "hidden_size": 32, "intermediate_size": 64,
                   "layers_block_type": ["full_attention", "mlp", "linear_attention", "linear_attention"],
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 16,
                   "tie_word_embeddings": False, "mlp_bias": False, "mamba_num_heads": 3, "mamba_head_dim": 16,
                   "mamba_n_groups": 3, "ssm_state_size": 16, "mamba_d_conv": 2, "mamba_chunk_size": 32,
                   "mamba_conv_bias": False, "use_bias": False},
    },
}  # fmt: skip


def of_family(model: Any) -> bool:
    return model.config.model_type == "nemotron_h"


def squares(model: Any) -> bool:
    return of_family(model) and model.config.mlp_hidden_act == "relu2"


def not_squared(model: Any) -> None:
    for module in each(model, "mixer"):
        if hasattr(module, "up_proj"):
            module.act_fn = nn.ReLU()


def swap_norms(model: Any) -> None:
    """Each layer's norm is the next one's."""
    norms = [layer.norm for layer in model.model.layers]
    for layer, norm in zip(model.model.layers, norms[1:] + norms[:1]):
        layer.norm = norm


def scale_attention(model: Any) -> None:
    for mixer in each(model, "mixer"):
        if hasattr(mixer, "scaling"):
            mixer.scaling *= 1.05


FAULTS = [
    Fault("Nemotron-H's final norm missing", without("model.norm_f"), of_family),
    Fault("Nemotron-H's attention scale 5 % too large", edit(scale_attention), of_family),
    Fault("Nemotron-H's feed-forward blocks not squared", edit(not_squared), squares),
    Fault("Nemotron-H's norms one layer late", edit(swap_norms), of_family),
]
