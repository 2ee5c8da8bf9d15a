"""Llama."""

from rows._common import COMMON

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
# `config.json` as checkpoints in the wild write it (rope_theta, rope_scaling), except for one in the newer spelling.
MODELS = {
    "llama-tiny": {  # 2 query heads a KV head, llama3 rope scaling, no head_dim given
        "dtype": "float32", "shards": 1, "seed": 0,
        "config": {**LLAMA, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "attention_bias": False, "mlp_bias": False, "rope_theta": 500000.0,
                   "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, **COMMON},
    },
    "llama-tiny-bias": {  # 3 query heads a KV head, a head wider than hidden / heads, biases, tied
        "dtype": "float16", "shards": 1, "seed": 1,
        "config": {**LLAMA, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 24, "tie_word_embeddings": True,
                   "attention_bias": True, "mlp_bias": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}, **COMMON},
    },
    "llama-tiny-dynamic": {  # RoPE's base grows with a prompt that is longer than the context
        "dtype": "bfloat16", "shards": 1, "in_pieces": False,
        "config": {**LLAMA, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 3, "tie_word_embeddings": True,
                   "attention_bias": False, "mlp_bias": False, "rope_theta": 10000.0,
                   "rope_scaling": {"type": "dynamic", "factor": 5.0}, **COMMON, "max_position_embeddings": 24},
    },
}  # fmt: skip
