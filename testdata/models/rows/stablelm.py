"""StableLM."""

from faults import Fault, drop_biases, edit, if_config
from rows._common import COMMON

OWN = {key: value for key, value in COMMON.items() if key != "rms_norm_eps"}
STABLELM = {"architectures": ["StableLmForCausalLM"], "model_type": "stablelm", **OWN}
MODELS = {
    "stablelm-tiny": {  # as 2 1.6B: biases of queries, keys and values, half of a head turns, a KV head for each query head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**STABLELM, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": False,
                   "partial_rotary_factor": 0.5, "rope_theta": 10000.0, "use_qkv_bias": True, "layer_norm_eps": 0.02,
                   "use_parallel_residual": False},
    },
    "stablelm-tiny-parallel": {  # parallel blocks, a quarter of a head turns by default, no biases, 2 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 2,
        "config": {**STABLELM, "hidden_size": 64, "intermediate_size": 75, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "layer_norm_eps": 0.03, "use_parallel_residual": True},
    },
    "stablelm-tiny-whole": {  # all of a head turns, linear RoPE, GELU without approximation, 5 query heads a KV head, tied
        "dtype": "float16", "shards": 1,
        "config": {**STABLELM, "hidden_size": 60, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 4000.0, "factor": 2.0, "partial_rotary_factor": 1.0},
                   "use_qkv_bias": False, "layer_norm_eps": 0.02, "hidden_act": "gelu"},
    },
}  # fmt: skip

FAULTS = [
    Fault("norm biases missing, in StableLM", edit(drop_biases("input_layernorm", "norm")),
          if_config(lambda config: config.model_type == "stablelm")),
]  # fmt: skip
