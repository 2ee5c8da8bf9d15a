"""Seed-OSS."""

from rows._common import COMMON

SEED_OSS = {"architectures": ["SeedOssForCausalLM"], "model_type": "seed_oss", "residual_dropout": 0.1}
MODELS = {
    "seed-oss-tiny": {  # as 36B: biases of queries, keys and values by default, wide heads, 5 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**SEED_OSS, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": False,
                   "rope_theta": 10000000.0, "rope_scaling": {"rope_type": "default"}, **COMMON, "attention_dropout": 0.1},
    },
    "seed-oss-tiny-bias": {  # biases of all projections, a KV head for each query head, linear RoPE, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**SEED_OSS, "hidden_size": 60, "intermediate_size": 84, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 20, "tie_word_embeddings": True,
                   "attention_bias": True, "attention_out_bias": True, "mlp_bias": True,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 20000.0, "factor": 2.0}, **COMMON},
    },
    "seed-oss-tiny-yarn": {  # a bias after attention alone, YaRN, ReLU, an odd width, untied
        "dtype": "float16", "shards": 2,
        "config": {**SEED_OSS, "hidden_size": 64, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 10, "tie_word_embeddings": False,
                   "attention_bias": False, "attention_out_bias": True, "rope_theta": 5000.0,
                   "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
                   **COMMON, "hidden_act": "relu"},
    },
}  # fmt: skip
