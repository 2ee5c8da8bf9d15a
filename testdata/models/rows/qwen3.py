"""Qwen3."""

from rows._common import COMMON

QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
MODELS = {
    "qwen3-tiny": {  # 4 query heads a KV head, heads * head_dim wider than hidden
        "dtype": "bfloat16", "shards": 1, "seed": 2,
        "config": {**QWEN3, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3,
                   "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": False,
                   "attention_bias": False, "rope_theta": 1000000.0, "rope_scaling": None,
                   "use_sliding_window": False, "sliding_window": None, "max_window_layers": 3, **COMMON},
    },
    "qwen3-tiny-window": {  # a KV head for each query head, the upper layers windowed, biases, tied, sharded
        "dtype": "float32", "shards": 2, "seed": 3,
        "config": {**QWEN3, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 4,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 32, "tie_word_embeddings": True,
                   "attention_bias": True, "rope_theta": 5000.0, "rope_scaling": None,
                   "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1, **COMMON},
    },
    "qwen3-tiny-yarn": {  # as DeepSeek-R1-0528-Qwen3-8B: YaRN beside keys that transformers passes over; one KV head, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**QWEN3, "hidden_size": 40, "intermediate_size": 70, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 1, "head_dim": 10, "tie_word_embeddings": True,
                   "attention_bias": False, "rope_theta": 30000.0,
                   "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
                                    "attn_factor": 0.8782488562869419, "finetuned": True},
                   "use_sliding_window": False, "sliding_window": None, "max_window_layers": 3, **COMMON},
    },
}  # fmt: skip
