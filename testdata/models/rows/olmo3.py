"""OLMo 3."""

from typing import Any

from faults import Fault, edit, if_config
from rows._common import COMMON

OLMO3 = {"architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3"}
S, F = "sliding_attention", "full_attention"
MODELS = {
    "olmo3-tiny": {  # as 7B: three of four layers windowed, yarn in the older spelling with the factor that follows from it
        "dtype": "bfloat16", "shards": 1,
        "config": {**OLMO3, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 4,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "tie_word_embeddings": False,
                   "attention_bias": False, "sliding_window": 9, "layer_types": [S, S, S, F], "rope_theta": 500000,
                   "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "attention_factor": 1.2079441541679836,
                                    "beta_fast": 32.0, "beta_slow": 1.0,
                                    "original_max_position_embeddings": 16}, **COMMON},
    },
    "olmo3-tiny-types": {  # a base for each kind of layer, unlike betas, another pattern, 3 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**OLMO3, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "attention_bias": False, "sliding_window": 6, "layer_types": [F, S, F],
                   "rope_parameters": {
                       F: {"rope_type": "yarn", "rope_theta": 3000.0, "factor": 4.0, "beta_fast": 6.0,
                           "beta_slow": 0.5, "original_max_position_embeddings": 32},
                       S: {"rope_type": "default", "rope_theta": 200.0}}, **COMMON},
    },
    "olmo3-tiny-plain": {  # as 7B before its context grew: no scaling, the pattern left out, biases
        "dtype": "bfloat16", "shards": 1,
        "config": {**OLMO3, "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 5,
                   "num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": False,
                   "attention_bias": True, "sliding_window": 5,
                   "rope_parameters": {F: {"rope_type": "default", "rope_theta": 400.0},
                                       S: {"rope_type": "default", "rope_theta": 400.0}}, **COMMON},
    },
}  # fmt: skip


def scaled(config: Any) -> bool:
    return config.model_type == "olmo3" and config.rope_parameters[F]["rope_type"] == "yarn"


def turn(model: Any, of: str, like: str) -> None:
    """Layers of one kind turn as those of the other."""
    rope = model.model.rotary_emb
    setattr(rope, f"{of}_inv_freq", getattr(rope, f"{like}_inv_freq").clone())
    setattr(rope, f"{of}_attention_scaling", getattr(rope, f"{like}_attention_scaling"))


def no_factor(model: Any) -> None:
    model.model.rotary_emb.full_attention_attention_scaling = 1.0


FAULTS = [
    Fault("full layers turn as sliding ones", edit(lambda model: turn(model, F, S)), if_config(scaled)),
    Fault("sliding layers turn as full ones", edit(lambda model: turn(model, S, F)), if_config(scaled)),
    Fault("factor on sine and cosine missing", edit(no_factor), if_config(scaled)),
]
