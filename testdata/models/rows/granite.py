"""Granite."""

from collections.abc import Callable
from typing import Any

from faults import Fault, each, edit, if_config
from rows._common import COMMON

GRANITE = {"architectures": ["GraniteForCausalLM"], "model_type": "granite"}
MODELS = {
    "granite-tiny": {  # as 3.x 2B: all four multipliers, tied
        "dtype": "bfloat16", "shards": 1, "embedding_scale": 3.0,
        "config": {**GRANITE, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "attention_bias": False, "mlp_bias": False, "rope_theta": 5000000.0, "rope_scaling": None,
                   "embedding_multiplier": 3.0, "attention_multiplier": 0.4, "residual_multiplier": 0.6,
                   "logits_scaling": 1.7, **COMMON},
    },
    "granite-tiny-bias": {  # biases, untied, multipliers below one, a KV head for each query head
        "dtype": "bfloat16", "shards": 1, "embedding_scale": 0.5,
        "config": {**GRANITE, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": False,
                   "attention_bias": True, "mlp_bias": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0},
                   "embedding_multiplier": 0.5, "attention_multiplier": 0.3, "residual_multiplier": 1.3,
                   "logits_scaling": 0.7, **COMMON},
    },
    "granite-tiny-relu": {  # ReLU, 7 query heads a KV head, llama3 RoPE, biases of the feed-forward blocks alone, an odd width, tied
        "dtype": "float16", "shards": 2, "embedding_scale": 1.5,
        "config": {**GRANITE, "hidden_size": 56, "intermediate_size": 90, "num_hidden_layers": 3,
                   "num_attention_heads": 7, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "attention_bias": False, "mlp_bias": True, "rope_theta": 9000.0,
                   "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 3.0, "original_max_position_embeddings": 48},
                   "embedding_multiplier": 1.5, "attention_multiplier": 0.5, "residual_multiplier": 0.8,
                   "logits_scaling": 0.9, **COMMON, "hidden_act": "relu", "rms_norm_eps": 0.03},
    },
}  # fmt: skip


def of_granite(config: Any) -> bool:
    return config.model_type in ("granite", "granitemoe", "granitemoeshared")


def set_residual(to: Callable[[float], float]) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for layer in model.model.layers:
            layer.residual_multiplier = to(layer.residual_multiplier)

    return change


def scale_by_head(model: Any) -> None:
    for attention in each(model, "self_attn"):
        attention.scaling = attention.head_dim**-0.5


FAULTS = [
    Fault("embedding multiplier missing", edit(lambda model: setattr(model.model, "embedding_multiplier", 1)), if_config(of_granite)),
    Fault("logits scaling missing", edit(lambda model: setattr(model.config, "logits_scaling", 1)), if_config(of_granite)),
    Fault(
        "logits multiplied by their scaling",
        edit(lambda model: setattr(model.config, "logits_scaling", 1 / model.config.logits_scaling)),
        if_config(of_granite),
    ),
    Fault("residual multiplier missing", edit(set_residual(lambda _: 1)), if_config(of_granite)),
    Fault("attention scale by the head", edit(scale_by_head), if_config(of_granite)),
]
