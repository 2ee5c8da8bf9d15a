"""MiniMax-M2."""

from __future__ import annotations

from rows._common import COMMON
from rows._moe import draw, stored_by_expert

MINIMAX_M2 = {"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "output_router_logits": False}
STORED = stored_by_expert(
    "block_sparse_moe.experts", ("w1", "w3", "w2"),
    {"mlp.gate.": "block_sparse_moe.gate.", "mlp.e_score_correction_bias": "block_sparse_moe.e_score_correction_bias"},
)  # fmt: skip
MODELS = {
    "minimax-m2-tiny": {  # as M2: 3 of 8 experts, half a head rotated by `rotary_dim`, 3 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": STORED,
        "config": {**MINIMAX_M2, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 8, "tie_word_embeddings": False,
                   "rope_theta": 5000000, "rotary_dim": 4, "num_local_experts": 8, "num_experts_per_tok": 3,
                   "scoring_func": "sigmoid", "use_qk_norm": True, "qk_norm_type": "per_layer",
                   "use_routing_bias": True, "shared_intermediate_size": 0, **COMMON},
    },
    "minimax-m2-tiny-factor": {  # all of 4 experts of 20, three quarters of a head rotated, a KV head for each query head, tied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": STORED,
        "cannot_have": {"one expert more", "scores not corrected"},
        "config": {**MINIMAX_M2, "hidden_size": 40, "intermediate_size": 20, "num_hidden_layers": 3,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 16, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0, "partial_rotary_factor": 0.75},
                   "num_local_experts": 4, "num_experts_per_tok": 4, **COMMON},
    },
    "minimax-m2-tiny-one": {  # 1 of 5 experts, all of a head rotated, linear RoPE, one KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": STORED,
        "cannot_have": {"one expert fewer", "corrected scores as weights"},
        "config": {**MINIMAX_M2, "hidden_size": 48, "intermediate_size": 36, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 12, "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 9000.0},
                   "num_local_experts": 5, "num_experts_per_tok": 1, **COMMON},
    },
}  # fmt: skip
