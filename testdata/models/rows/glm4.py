"""GLM-4-0414, and GLM before it."""

from faults import Fault, if_part, without
from rows._common import COMMON

GLM4 = {"architectures": ["Glm4ForCausalLM"], "model_type": "glm4"}
GLM = {"architectures": ["GlmForCausalLM"], "model_type": "glm"}
MODELS = {
    "glm-tiny": {  # as GLM-4 9B: half a head turns by default, biases of queries, keys and values by default; 8 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**GLM, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 12, "tie_word_embeddings": False,
                   "rope_theta": 10000.0, **COMMON},
    },
    "glm-tiny-plain": {  # as GLM-Edge: no biases, tied; three quarters of a head turn, linear RoPE, a KV head for each query head
        "dtype": "float16", "shards": 2,
        "config": {**GLM, "hidden_size": 48, "intermediate_size": 75, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 16, "tie_word_embeddings": True,
                   "attention_bias": False,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 4000.0, "factor": 2.0, "partial_rotary_factor": 0.75}, **COMMON},
    },
    "glm-tiny-whole": {  # all of a head turns, YaRN, GELU by tanh, 5 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**GLM, "hidden_size": 40, "intermediate_size": 90, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 10, "tie_word_embeddings": False,
                   "attention_bias": True, "rope_theta": 3000.0, "partial_rotary_factor": 1.0,
                   "rope_scaling": {"type": "yarn", "factor": 3.0, "original_max_position_embeddings": 40},
                   **COMMON, "hidden_act": "gelu_pytorch_tanh"},
    },
    "glm4-tiny": {  # as 9B: half a head turns by default, biases of queries, keys and values by default; 3 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**GLM4, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": False,
                   "rope_theta": 10000.0, **COMMON},
    },
    "glm4-tiny-plain": {  # a quarter of a head turns, no biases, a KV head for each query head, YaRN, an odd width, tied
        "dtype": "float16", "shards": 2,
        "config": {**GLM4, "hidden_size": 64, "intermediate_size": 75, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 24, "tie_word_embeddings": True,
                   "attention_bias": False,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 3000.0, "factor": 3.0, "partial_rotary_factor": 0.25,
                                       "original_max_position_embeddings": 40}, **COMMON},
    },
    "glm4-tiny-whole": {  # all of a head turns, one KV head, linear RoPE, GELU by tanh, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**GLM4, "hidden_size": 40, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 10, "tie_word_embeddings": False,
                   "attention_bias": True, "rope_theta": 4000.0, "partial_rotary_factor": 1.0,
                   "rope_scaling": {"type": "linear", "factor": 2.0}, **COMMON, "hidden_act": "gelu_pytorch_tanh"},
    },
}  # fmt: skip

FAULTS = [
    Fault(f"{norm} missing", without(norm), if_part(norm)) for norm in ("post_self_attn_layernorm", "post_mlp_layernorm")
]
