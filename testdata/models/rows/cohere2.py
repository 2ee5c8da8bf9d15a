"""Cohere: Command R and Aya. Cohere 2: Command R7B and Command A."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from faults import Fault, each, edit, if_config
from rows._common import COMMON

S, F = "sliding_attention", "full_attention"
OWN = {key: value for key, value in COMMON.items() if key != "rms_norm_eps"}
COHERE2 = {"architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2", "rotary_pct": 1.0, **OWN}
COHERE = {"architectures": ["CohereForCausalLM"], "model_type": "cohere", **OWN}
MODELS = {
    "cohere-tiny": {  # as Aya Expanse 8B: 4 query heads a KV head, tied by default
        "dtype": "bfloat16", "shards": 1,
        "config": {**COHERE, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "rope_theta": 10000.0,
                   "layer_norm_eps": 0.02, "logit_scale": 0.6, "use_qk_norm": False},
    },
    "cohere-tiny-bias": {  # biases of attention, another base, a KV head for each query head, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**COHERE, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "rope_theta": 4000000.0, "attention_bias": True,
                   "layer_norm_eps": 0.03, "logit_scale": 1.3, "tie_word_embeddings": True},
    },
    "cohere-tiny-norms": {  # as Command R+: a norm for each query and key head, 3 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**COHERE, "hidden_size": 60, "intermediate_size": 84, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "rope_theta": 75000.0, "use_qk_norm": True,
                   "layer_norm_eps": 0.02, "logit_scale": 0.7, "tie_word_embeddings": True},
    },
    "cohere-tiny-yarn": {  # YaRN, GELU without approximation, 5 query heads a KV head, an odd width, untied
        "dtype": "float16", "shards": 2,
        "config": {**COHERE, "hidden_size": 60, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 3000.0, "factor": 3.0, "original_max_position_embeddings": 40},
                   "layer_norm_eps": 0.02, "logit_scale": 0.8, "tie_word_embeddings": False, "hidden_act": "gelu"},
    },
    "cohere2-tiny": {  # as R7B: windows in three of four layers by default, 4 query heads a KV head, tied by default
        "dtype": "bfloat16", "shards": 1,
        "config": {**COHERE2, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 4,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "sliding_window": 9, "rope_theta": 50000.0,
                   "layer_norm_eps": 0.02, "logit_scale": 0.6},
    },
    "cohere2-tiny-bias": {  # biases of attention, every other layer without a window, linear RoPE, a KV head for each query head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**COHERE2, "hidden_size": 60, "intermediate_size": 84, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "sliding_window": 19, "sliding_window_pattern": 2,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 5000.0, "factor": 3.0},
                   "attention_bias": True, "layer_norm_eps": 0.03, "logit_scale": 1.4, "tie_word_embeddings": False},
    },
    "cohere2-tiny-list": {  # windows by a list, YaRN, GELU without approximation, 5 query heads a KV head, an odd width, tied
        "dtype": "float16", "shards": 2,
        "config": {**COHERE2, "hidden_size": 60, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "sliding_window": 7, "layer_types": [F, S, S],
                   "rope_theta": 3000.0, "rope_scaling": {"rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": 40},
                   "layer_norm_eps": 0.02, "logit_scale": 0.8, "tie_word_embeddings": True, "hidden_act": "gelu"},
    },
}  # fmt: skip


def of_cohere(config: Any) -> bool:
    return config.model_type in ("cohere", "cohere2")


def keep_means(model: Any) -> None:
    """RMS norms in place of LayerNorms."""
    for norm in [*each(model, "input_layernorm"), model.model.norm]:

        def forward(x: Tensor, norm: Any = norm) -> Tensor:
            return x * (x.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).rsqrt() * norm.weight

        norm.forward = forward


def one_after_the_other(norm: str) -> Callable[[Any], None]:
    """The feed-forward block reads what attention has added to."""

    def change(model: Any) -> None:
        for layer in model.model.layers:

            def forward(hidden_states: Tensor, layer: Any = layer, **others: Any) -> Tensor:
                normed = getattr(layer, norm)
                x = hidden_states + layer.self_attn(hidden_states=normed(hidden_states), **others)[0]
                return x + layer.mlp(normed(x))

            layer.forward = forward

    return change


def rotate_everywhere(model: Any) -> None:
    for attention in each(model, "self_attn"):
        attention.sliding_window = model.config.sliding_window


def share_head_norms(model: Any) -> None:
    """The weights of the first head for all heads."""
    for norm in [*each(model, "q_norm"), *each(model, "k_norm")]:
        norm.weight.data = norm.weight.data[:1].expand_as(norm.weight.data).contiguous()


FAULTS = [
    Fault("one norm for all heads", edit(share_head_norms), if_config(lambda config: getattr(config, "use_qk_norm", False))),
    Fault("means are not taken away", edit(keep_means), if_config(of_cohere)),
    Fault("blocks one after the other", edit(one_after_the_other("input_layernorm")), if_config(lambda config: config.model_type in ("cohere", "cohere2", "phi") or getattr(config, "use_parallel_residual", False))),
    Fault("positions in full layers", edit(rotate_everywhere), if_config(lambda config: config.model_type == "cohere2")),
    Fault("logit scale missing", edit(lambda model: setattr(model, "logit_scale", 1.0)), if_config(of_cohere)),
]
