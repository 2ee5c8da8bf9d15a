"""Mistral and Ministral 3."""

from typing import Any

import torch
from torch import Tensor

from faults import Fault, if_config, replace
from rows._common import COMMON

MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
MINISTRAL3 = {"architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3"}
MODELS = {
    "mistral-tiny": {  # as 7B v0.1: every layer windowed, no head_dim given
        "dtype": "bfloat16", "shards": 1,
        "config": {**MISTRAL, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 8, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "rope_theta": 10000.0, "sliding_window": 9, **COMMON},
    },
    "mistral-tiny-full": {  # as v0.3 and NeMo: no window, a head apart from hidden / heads; tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**MISTRAL, "hidden_size": 48, "intermediate_size": 112, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 24, "tie_word_embeddings": True,
                   "rope_theta": 1000000.0, "sliding_window": None, **COMMON},
    },
    "ministral3-tiny": {  # as 3B: yarn without a factor on sine and cosine, queries that grow with the position, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**MINISTRAL3, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "tie_word_embeddings": True,
                   "sliding_window": None,
                   "rope_parameters": {"rope_type": "yarn", "type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,
                                       "original_max_position_embeddings": 8, "max_position_embeddings": 128,
                                       "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                                       "llama_4_scaling_beta": 0.1}, **COMMON},
    },
    "ministral3-tiny-window": {  # every layer windowed, yarn with its factor and unlike betas, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**MINISTRAL3, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": False,
                   "sliding_window": 11,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0,
                                       "original_max_position_embeddings": 32, "beta_fast": 4.0, "beta_slow": 0.5,
                                       "llama_4_scaling_beta": 0.4}, **COMMON},
    },
}  # fmt: skip


def of_ministral(config: Any) -> bool:
    return config.model_type == "ministral3"


def no_query_scale(positions: Tensor, beta: float, context: int) -> Tensor:
    return torch.ones(positions.shape)[:, None, :, None]


def smooth_query_scale(positions: Tensor, beta: float, context: int) -> Tensor:
    return (1 + beta * torch.log1p(positions / context))[:, None, :, None]


FAULTS = [
    Fault("queries do not grow", replace("get_llama_4_attn_scale", no_query_scale), if_config(of_ministral)),
    Fault("queries grow smoothly", replace("get_llama_4_attn_scale", smooth_query_scale), if_config(of_ministral)),
]
