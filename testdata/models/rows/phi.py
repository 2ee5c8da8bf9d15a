"""Phi-1, Phi-1.5, Phi-2."""

import math
from typing import Any

import torch
from torch import Generator, Size, Tensor, nn

from faults import Fault, drop_biases, each, edit, if_config, if_part, without
from rows._common import COMMON

OWN = {key: value for key, value in COMMON.items() if key != "rms_norm_eps"}
PHI = {"architectures": ["PhiForCausalLM"], "model_type": "phi", **OWN}


def draw(name: str, shape: Size, config: Any, random: Generator) -> Tensor | None:
    """Blocks whose activation is far from linear."""
    if "fc1.weight" in name:
        return 1.5 * torch.randn(shape, generator=random) / math.sqrt(shape[-1])
    if name.endswith(("q_layernorm.weight", "k_layernorm.weight")):
        return 1.6 * (0.4 + 1.2 * torch.rand(shape, generator=random))
    return None


MODELS = {
    "phi-tiny": {  # as Phi-2: two fifths of a head turn, a KV head for each query head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**PHI, "hidden_size": 60, "intermediate_size": 240, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": False,
                   "partial_rotary_factor": 0.4, "rope_theta": 10000.0, "rope_scaling": None, "layer_norm_eps": 0.02,
                   "hidden_act": "gelu_new", "qk_layernorm": False},
    },
    "phi-tiny-gqa": {  # half of a head turns by default, linear RoPE, ReLU, 3 query heads a KV head, tied with a bias
        "dtype": "float16", "shards": 2, "draw": draw,
        "config": {**PHI, "hidden_size": 48, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "rope_theta": 4000.0, "rope_scaling": {"type": "linear", "factor": 2.0}, "layer_norm_eps": 0.03,
                   "hidden_act": "relu"},
    },
    "phi-tiny-norms": {  # a norm with a bias for all query heads, and one for all key heads; 2 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**PHI, "hidden_size": 64, "intermediate_size": 120, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "partial_rotary_factor": 0.5, "rope_theta": 20000.0, "layer_norm_eps": 0.02,
                   "hidden_act": "gelu_new", "qk_layernorm": True},
    },
    "phi-tiny-whole": {  # all of a head turns, YaRN, GELU without approximation, one KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**PHI, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 3000.0, "factor": 3.0, "partial_rotary_factor": 1.0,
                                       "original_max_position_embeddings": 40}, "layer_norm_eps": 0.02, "hidden_act": "gelu"},
    },
}  # fmt: skip


def of_phi(config: Any) -> bool:
    return config.model_type == "phi"


def of_torch_norms(config: Any) -> bool:
    return config.model_type in ("phi", "stablelm")


def keep_means(model: Any) -> None:
    """RMS norms in place of LayerNorms."""
    for norm in [m for m in model.modules() if isinstance(m, nn.LayerNorm)]:

        def forward(x: Tensor, norm: Any = norm) -> Tensor:
            normed = x * (x.pow(2).mean(-1, keepdim=True) + norm.eps).rsqrt() * norm.weight
            return normed if norm.bias is None else normed + norm.bias

        norm.forward = forward


def use_silu(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.activation_fn = nn.SiLU()


FAULTS = [
    Fault("means are not taken away, in Phi and StableLM", edit(keep_means), if_config(of_torch_norms)),
    Fault("norm biases missing, in Phi", edit(drop_biases("input_layernorm", "final_layernorm")), if_config(of_phi)),
    Fault("last norm missing", without("final_layernorm"), if_part("final_layernorm")),
    *(Fault(f"{part} bias missing", edit(drop_biases(part)), if_config(of_phi)) for part in ("dense", "fc1", "fc2", "lm_head")),
    Fault("biases of query and key norms missing", edit(drop_biases("q_layernorm", "k_layernorm")), if_config(lambda config: of_phi(config) and config.qk_layernorm)),
    Fault("SiLU in place of Phi's activation", edit(use_silu), if_config(of_phi)),
]
