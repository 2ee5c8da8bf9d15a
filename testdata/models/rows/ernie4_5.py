"""ERNIE 4.5, dense."""

from rows._common import COMMON

ERNIE = {"architectures": ["Ernie4_5ForCausalLM"], "model_type": "ernie4_5"}
MODELS = {
    "ernie4_5-tiny": {  # as 0.3B: 8 query heads a KV head, heads wider than hidden / heads, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**ERNIE, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": True,
                   "use_bias": False, **COMMON},
    },
    "ernie4_5-tiny-bias": {  # biases of all projections, a KV head for each query head, linear RoPE, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**ERNIE, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 20, "tie_word_embeddings": False,
                   "use_bias": True, "rope_theta": 3000.0, "rope_scaling": {"type": "linear", "factor": 3.0}, **COMMON},
    },
    "ernie4_5-tiny-yarn": {  # YaRN, ReLU, 3 query heads a KV head, an odd width, tied by default
        "dtype": "float16", "shards": 2,
        "config": {**ERNIE, "hidden_size": 60, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 6000.0, "factor": 4.0,
                                       "original_max_position_embeddings": 32}, **COMMON, "hidden_act": "relu"},
    },
}  # fmt: skip
