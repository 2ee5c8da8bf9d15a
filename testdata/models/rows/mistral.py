"""Mistral and Ministral 3."""

from typing import Any

import torch
from torch import Tensor

from faults import Fault, if_config, replace
from rows._common import COMMON

MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
MINISTRAL3 = {"architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3"}
VISION = {"model_type": "pixtral", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
          "num_attention_heads": 2, "head_dim": 4, "image_size": 4, "patch_size": 4}  # fmt: skip


def inside_mistral3(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
    """The layout of a checkpoint of Mistral 3, with tensors of its other parts."""
    renamed = {f"language_model.{name}": weight for name, weight in weights.items()}
    others = ("vision_tower.ln_pre.weight", "multi_modal_projector.linear_1.weight")
    return renamed | {name: torch.randn(3, 5, generator=random).to(torch.bfloat16) for name in others}


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
    "mistral-tiny-quick": {  # GELU by a sigmoid, llama3 RoPE, 4 query heads a KV head, a long window, an odd width, tied
        "dtype": "float16", "shards": 2,
        "config": {**MISTRAL, "hidden_size": 44, "intermediate_size": 77, "num_hidden_layers": 3,
                   "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 14, "tie_word_embeddings": True,
                   "rope_theta": 6000.0, "sliding_window": 21,
                   "rope_scaling": {"rope_type": "llama3", "factor": 6.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 5.0, "original_max_position_embeddings": 40},
                   **COMMON, "hidden_act": "quick_gelu"},
    },
    "mistral-tiny-vision": {  # inside Mistral 3, which ties by default, with a head of its own in the file; `model_type` left out
        "dtype": "bfloat16", "shards": 1, "tied": False, "tensors": inside_mistral3,
        "config": {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
                   "vision_config": VISION,
                   "text_config": {"hidden_size": 40, "intermediate_size": 64, "num_hidden_layers": 2,
                                   "num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": 18,
                                   "rope_theta": 70000.0, "sliding_window": None, **COMMON, "hidden_act": "gelu_pytorch_tanh"}},
    },
    "ministral3-tiny-vision": {  # inside Mistral 3, whose outer word on the head goes before the inner one; unlike mscales
        "dtype": "bfloat16", "shards": 1, "tied": True, "tensors": inside_mistral3,
        "config": {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
                   "tie_word_embeddings": True, "vision_config": VISION,
                   "text_config": {**MINISTRAL3, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 3,
                                   "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 10,
                                   "tie_word_embeddings": False, "sliding_window": None,
                                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 40000.0, "factor": 8.0,
                                                       "original_max_position_embeddings": 16, "beta_fast": 16.0,
                                                       "beta_slow": 2.0, "mscale": 1.4, "mscale_all_dim": 0.6,
                                                       "llama_4_scaling_beta": 0.2}, **COMMON}},
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
