"""SmolLM3."""

from collections.abc import Callable
from typing import Any

from faults import Fault, each, edit, if_config
from rows._common import COMMON

SMOLLM3 = {"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3"}
MODELS = {
    "smollm3-tiny": {  # as 3B: each fourth layer without positions, by a list; tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**SMOLLM3, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 4,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "attention_bias": False, "mlp_bias": False, "rope_theta": 5000000.0, "rope_scaling": None,
                   "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0], "layer_types": ["full_attention"] * 4,
                   "use_sliding_window": False, "sliding_window": None, **COMMON},
    },
    "smollm3-tiny-window": {  # each second layer without positions, by an interval, and windowed; linear RoPE, biases, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**SMOLLM3, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "attention_bias": True, "mlp_bias": True, "no_rope_layer_interval": 2,
                   "rope_theta": 20000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.5},
                   "use_sliding_window": True, "sliding_window": 6, **COMMON},
    },
    "smollm3-tiny-list": {  # the first of three layers without positions, the second windowed, by lists; YaRN, ReLU, an odd width, untied
        "dtype": "float16", "shards": 2,
        "config": {**SMOLLM3, "hidden_size": 50, "intermediate_size": 83, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 5, "tie_word_embeddings": False,
                   "attention_bias": True, "mlp_bias": False, "rope_theta": 7000.0,
                   "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
                   "no_rope_layers": [0, 1, 1], "layer_types": ["full_attention", "sliding_attention", "full_attention"],
                   "use_sliding_window": True, "sliding_window": 17, **COMMON, "hidden_act": "relu"},
    },
}  # fmt: skip


def rope_where(rotates: Callable[[int], int]) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for attention in each(model, "self_attn"):
            attention.use_rope = rotates(attention.use_rope)

    return change


def of_smollm(config: Any) -> bool:
    return config.model_type == "smollm3"


FAULTS = [
    Fault("RoPE in every layer", edit(rope_where(lambda _: 1)), if_config(of_smollm)),
    Fault("RoPE in the other layers", edit(rope_where(lambda use: 1 - use)), if_config(of_smollm)),
]
