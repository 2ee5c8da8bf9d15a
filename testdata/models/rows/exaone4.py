"""EXAONE 4."""

from typing import Any

from faults import Fault, each, edit, if_config
from rows._common import COMMON

S, F = "sliding_attention", "full_attention"
EXAONE4 = {"architectures": ["Exaone4ForCausalLM"], "model_type": "exaone4"}
MODELS = {
    "exaone4-tiny": {  # as 32B: windows by a pattern, no positions in the other layers; 2 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**EXAONE4, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 4,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "sliding_window": 9, "sliding_window_pattern": 2, "rope_theta": 1000000.0, **COMMON},
    },
    "exaone4-tiny-full": {  # as 1.2B: no windows, llama3 RoPE in all layers, a KV head for each query head, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**EXAONE4, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "tie_word_embeddings": True,
                   "sliding_window": None, "sliding_window_pattern": None, "layer_types": [F, F], "rope_theta": 20000.0,
                   "rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, **COMMON},
    },
    "exaone4-tiny-list": {  # windows by a list beside a pattern that is a text, YaRN, 5 query heads a KV head, an odd width, tied
        "dtype": "float16", "shards": 2,
        "config": {**EXAONE4, "hidden_size": 60, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "tie_word_embeddings": True, "head_dim": 14,
                   "sliding_window": 21, "sliding_window_pattern": "LLLG", "layer_types": [S, F, S],
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 4000.0, "factor": 3.0,
                                       "original_max_position_embeddings": 40}, **COMMON, "hidden_act": "gelu"},
    },
}  # fmt: skip


def rotate_everywhere(model: Any) -> None:
    for attention in each(model, "self_attn"):
        attention.is_sliding = True


def norm_before(model: Any) -> None:
    for layer in model.model.layers:
        for block, norm in ((layer.self_attn, layer.post_attention_layernorm), (layer.mlp, layer.post_feedforward_layernorm)):
            block.register_forward_pre_hook(
                lambda _, args, kwargs, norm=norm: (tuple(map(norm._first, args)), {**kwargs, **({"hidden_states": norm._first(kwargs["hidden_states"])} if "hidden_states" in kwargs else {})}),
                with_kwargs=True,
            )
            norm._first = type(norm).forward.__get__(norm)
            norm.forward = lambda x: x


def of_exaone(config: Any) -> bool:
    return config.model_type == "exaone4"


FAULTS = [
    Fault("positions in full layers", edit(rotate_everywhere), if_config(lambda config: of_exaone(config) and config.sliding_window)),
    Fault("norms before the blocks", edit(norm_before), if_config(of_exaone)),
]
