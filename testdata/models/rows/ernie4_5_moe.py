"""ERNIE 4.5 with a mixture of experts."""

from __future__ import annotations

from rows._common import COMMON
from rows._moe import draw, stored_by_expert

ERNIE = {"architectures": ["Ernie4_5_MoeForCausalLM"], "model_type": "ernie4_5_moe", "output_router_logits": False}
STORED = stored_by_expert(others={"mlp.gate.moe_statics.": "mlp.moe_statics."})
MODELS = {
    "ernie4_5-moe-tiny": {  # as 21B-A3B: 2 of 6 experts beside two shared ones, a dense layer, 2 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": STORED,
        "config": {**ERNIE, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True,
                   "rope_theta": 500000.0, "use_bias": False, "moe_num_experts": 6, "moe_k": 2,
                   "moe_intermediate_size": 16, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
                   "moe_layer_end_index": 2, "moe_layer_interval": 1, "moe_norm_min": 1e-12, **COMMON},
    },
    "ernie4_5-moe-tiny-bias": {  # all of 3 experts of 20, none shared, biases, a KV head for each query head, untied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": STORED,
        "cannot_have": {"one expert more", "scores not corrected"},
        "config": {**ERNIE, "hidden_size": 48, "intermediate_size": 56, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}, "use_bias": True,
                   "moe_num_experts": 3, "moe_k": 3, "moe_intermediate_size": 20, "moe_num_shared_experts": 0,
                   "moe_layer_start_index": 0, "moe_layer_end_index": -1, "moe_layer_interval": 1,
                   "moe_norm_min": 1e-12, **COMMON},
    },
    "ernie4_5-moe-tiny-some": {  # 2 of 5 experts in one layer of four, a least divisor that counts, biases, linear RoPE, one KV head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": STORED,
        "config": {**ERNIE, "hidden_size": 40, "intermediate_size": 52, "num_hidden_layers": 4,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 12, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 8000.0}, "use_bias": True,
                   "moe_num_experts": 5, "moe_k": 2, "moe_intermediate_size": 28, "moe_num_shared_experts": 1,
                   "moe_layer_start_index": 1, "moe_layer_end_index": 2, "moe_layer_interval": 2,
                   "moe_norm_min": 0.6, **COMMON},
    },
}  # fmt: skip
