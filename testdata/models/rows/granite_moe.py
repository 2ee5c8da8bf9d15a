"""Granite with a mixture of experts."""

from __future__ import annotations

from rows._common import COMMON
from rows._moe import draw, renamed

GRANITE_MOE = {"output_router_logits": False, "router_aux_loss_coef": 0.001}
STORED = renamed({"block_sparse_moe.experts.gate_up_proj": "block_sparse_moe.input_linear.weight",
                  "block_sparse_moe.experts.down_proj": "block_sparse_moe.output_linear.weight",
                  "block_sparse_moe.router.weight": "block_sparse_moe.router.layer.weight"})  # fmt: skip
MODELS = {
    "granite-moe-tiny": {  # as 3.1 3B-A800M: 3 of 8 experts, 2 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1, "embedding_scale": 3.0, "draw": draw, "tensors": STORED,
        "config": {**GRANITE_MOE, "architectures": ["GraniteMoeForCausalLM"], "model_type": "granitemoe",
                   "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "tie_word_embeddings": True, "attention_bias": False,
                   "rope_theta": 10000.0, "rope_scaling": None, "embedding_multiplier": 3.0,
                   "attention_multiplier": 0.4, "residual_multiplier": 0.6, "logits_scaling": 1.7,
                   "num_local_experts": 8, "num_experts_per_tok": 3, **COMMON},
    },
    "granite-moe-tiny-bias": {  # all of 3 experts of 20, biases, llama3 RoPE, untied
        "dtype": "float16", "shards": 2, "embedding_scale": 0.5, "draw": draw, "tensors": STORED,
        "cannot_have": {"one expert more"},
        "config": {**GRANITE_MOE, "architectures": ["GraniteMoeForCausalLM"], "model_type": "granitemoe",
                   "hidden_size": 48, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 3,
                   "num_key_value_heads": 3, "tie_word_embeddings": False, "attention_bias": True, "rope_theta": 9000.0,
                   "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 3.0, "original_max_position_embeddings": 48},
                   "embedding_multiplier": 0.5, "attention_multiplier": 0.3, "residual_multiplier": 1.3,
                   "logits_scaling": 0.7, "num_local_experts": 3, "num_experts_per_tok": 3, **COMMON},
    },
    "granite-moe-tiny-shared": {  # 1 of 4 experts beside a shared one, 4 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1, "embedding_scale": 1.5, "draw": draw, "tensors": STORED,
        "cannot_have": {"one expert fewer"},
        "config": {**GRANITE_MOE, "architectures": ["GraniteMoeSharedForCausalLM"], "model_type": "granitemoeshared",
                   "hidden_size": 64, "intermediate_size": 32, "shared_intermediate_size": 48, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}, "embedding_multiplier": 1.5,
                   "attention_multiplier": 0.5, "residual_multiplier": 0.8, "logits_scaling": 0.9,
                   "num_local_experts": 4, "num_experts_per_tok": 1, **COMMON},
    },
}  # fmt: skip
