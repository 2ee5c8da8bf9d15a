"""StableLM."""

from typing import Any

import torch
from torch import Generator, Size, Tensor

from faults import Fault, drop_biases, each, edit, if_config, if_part, without
from rows._common import COMMON

OWN = {key: value for key, value in COMMON.items() if key != "rms_norm_eps"}
STABLELM = {"architectures": ["StableLmForCausalLM"], "model_type": "stablelm", **OWN}


def draw(name: str, shape: Size, config: Any, random: Generator) -> Tensor | None:
    if "_layernorm.norms." in name:
        return 1.6 * (0.4 + 1.2 * torch.rand(shape, generator=random))
    return None


MODELS = {
    "stablelm-tiny": {  # as 2 1.6B: biases of queries, keys and values, half of a head turns, a KV head for each query head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**STABLELM, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": False,
                   "partial_rotary_factor": 0.5, "rope_theta": 10000.0, "use_qkv_bias": True, "layer_norm_eps": 0.02,
                   "use_parallel_residual": False},
    },
    "stablelm-tiny-norms": {  # as 2 12B: parallel blocks, a norm for each query and key head, 3 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**STABLELM, "hidden_size": 96, "intermediate_size": 100, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "partial_rotary_factor": 0.25, "rope_theta": 10000.0, "layer_norm_eps": 0.02,
                   "qk_layernorm": True, "use_parallel_residual": True},
    },
    "stablelm-tiny-parallel": {  # parallel blocks, a quarter of a head turns by default, no biases, 2 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 2,
        "config": {**STABLELM, "hidden_size": 64, "intermediate_size": 75, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "layer_norm_eps": 0.03, "use_parallel_residual": True},
    },
    "stablelm-tiny-whole": {  # all of a head turns, linear RoPE, GELU without approximation, 5 query heads a KV head, tied
        "dtype": "float16", "shards": 1,
        "config": {**STABLELM, "hidden_size": 60, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 4000.0, "factor": 2.0, "partial_rotary_factor": 1.0},
                   "use_qkv_bias": False, "layer_norm_eps": 0.02, "hidden_act": "gelu"},
    },
}  # fmt: skip


def share_head_norms(model: Any) -> None:
    """The norm of the first head for all heads."""
    for norm in [*each(model, "q_layernorm"), *each(model, "k_layernorm")]:
        for head in norm.norms:
            head.weight.data = norm.norms[0].weight.data


FAULTS = [
    *(Fault(f"{part} missing", without(part), if_part(part)) for part in ("q_layernorm", "k_layernorm")),
    Fault("one norm for all of StableLM's heads", edit(share_head_norms),
          if_config(lambda config: config.model_type == "stablelm" and config.qk_layernorm)),
    Fault("norm biases missing, in StableLM", edit(drop_biases("input_layernorm", "norm")),
          if_config(lambda config: config.model_type == "stablelm")),
]  # fmt: skip
