"""Qwen2 and Qwen2.5."""

from rows._common import COMMON

QWEN2 = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
MODELS = {
    "qwen2-tiny": {  # as Qwen2.5-0.5B: a window that is written down and switched off, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**QWEN2, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "rope_theta": 1000000.0, "use_sliding_window": False, "sliding_window": 16,
                   "max_window_layers": 1, **COMMON},
    },
    "qwen2-tiny-yarn": {  # as Qwen2.5-7B with its long context switched on: yarn, upper layers windowed, one KV head
        "dtype": "bfloat16", "shards": 1,
        "config": {**QWEN2, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 3, "num_key_value_heads": 1, "tie_word_embeddings": False,
                   "rope_theta": 20000.0, "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 2,
                   "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}, **COMMON},
    },
    "qwen2-tiny-list": {  # `layer_types`: the first and the last of four layers windowed; llama3 RoPE, GELU, an odd width, tied
        "dtype": "float16", "shards": 2,
        "config": {**QWEN2, "hidden_size": 60, "intermediate_size": 91, "num_hidden_layers": 4,
                   "num_attention_heads": 6, "num_key_value_heads": 3, "tie_word_embeddings": True,
                   "rope_theta": 15000.0, "use_sliding_window": True, "sliding_window": 12,
                   "layer_types": ["sliding_attention", "full_attention", "full_attention", "sliding_attention"],
                   "rope_scaling": {"rope_type": "llama3", "factor": 5.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 50},
                   **COMMON, "hidden_act": "gelu_pytorch_tanh"},
    },
}  # fmt: skip
