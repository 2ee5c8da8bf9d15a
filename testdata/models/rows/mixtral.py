"""Mixtral."""

from __future__ import annotations

from rows._common import COMMON
from rows._moe import draw, stored_by_expert

MIXTRAL = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "output_router_logits": False,
           "router_aux_loss_coef": 0.02}  # fmt: skip
STORED = stored_by_expert("block_sparse_moe.experts", ("w1", "w3", "w2"), {"mlp.gate.": "block_sparse_moe.gate."})
MODELS = {
    "mixtral-tiny": {  # 2 of 4 experts, 4 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": STORED,
        "config": {**MIXTRAL, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": False,
                   "rope_theta": 1000000.0, "sliding_window": None, "num_local_experts": 4, "num_experts_per_tok": 2,
                   **COMMON},
    },
    "mixtral-tiny-fused": {  # tensors as transformers has them in memory: two for all experts; 3 of 5 experts of 24, 2 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**MIXTRAL, "hidden_size": 48, "intermediate_size": 24, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "rope_theta": 30000.0, "sliding_window": None, "num_local_experts": 5, "num_experts_per_tok": 3,
                   "output_router_logits": False, "router_aux_loss_coef": 0.02, **COMMON},
    },
    "mixtral-tiny-one": {  # one expert, heads wider than hidden / heads, linear RoPE, GELU without approximation, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": STORED,
        "cannot_have": {"one expert more", "one expert fewer", "down projection of another expert"},
        "config": {**MIXTRAL, "hidden_size": 40, "intermediate_size": 52, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 16, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 8000.0, "factor": 2.0},
                   "sliding_window": None, "num_local_experts": 1, "num_experts_per_tok": 1,
                   **COMMON, "hidden_act": "gelu"},
    },
    "mixtral-tiny-window": {  # all of 3 experts of 20, every layer windowed, 3 query heads a KV head, untied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": STORED, "cannot_have": {"one expert more"},
        "config": {**MIXTRAL, "hidden_size": 48, "intermediate_size": 20, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "rope_theta": 10000.0, "sliding_window": 12, "num_local_experts": 3, "num_experts_per_tok": 3,
                   **COMMON},
    },
}  # fmt: skip
