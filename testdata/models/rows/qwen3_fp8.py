"""Qwen3 in 8-bit floats, as its publisher quantises it."""

from rows._common import COMMON
from rows._fp8 import fp8
from rows.qwen3 import QWEN3

MODELS = {
    "qwen3-tiny-fp8": {  # a factor for each 16 by 32 weights
        "dtype": "bfloat16", "shards": 1, "tensors": fp8((16, 32), ()),
        "config": {**QWEN3, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "tie_word_embeddings": True,
                   "attention_bias": False, "rope_theta": 1000000.0, "rope_scaling": None,
                   "use_sliding_window": False, "sliding_window": None, "max_window_layers": 2,
                   "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                                           "weight_block_size": [16, 32]}, **COMMON},
    },
}  # fmt: skip
