"""Qwen3 with a mixture of experts."""

from __future__ import annotations

from faults import Fault, edit
from rows._common import COMMON
from rows._moe import change_routers, draw, has_experts, has_routers, next_expert, stored_by_expert, swap_halves

QWEN3_MOE = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe"}


FAULTS = [
    Fault("one expert more", change_routers(top_k=lambda k: k + 1), has_routers("top_k")),
    Fault("one expert fewer", change_routers(top_k=lambda k: k - 1), has_routers("top_k")),
    Fault("experts' shares normed the other way", change_routers(norm_topk_prob=lambda norm: not norm), has_routers("norm_topk_prob")),
    Fault("experts' halves swapped", edit(swap_halves), has_experts),
    Fault("down projection of another expert", edit(next_expert), has_experts),
]
MODELS = {
    "qwen3-moe-tiny": {  # 4 query heads a KV head, 2 of 8 experts with shares that sum to 1, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "config": {**QWEN3_MOE, "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": False,
                   "attention_bias": False, "rope_theta": 1000000.0, "rope_scaling": None,
                   "use_sliding_window": False, "sliding_window": None, "max_window_layers": 2,
                   "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": True,
                   "decoder_sparse_step": 1, "mlp_only_layers": [], "output_router_logits": False,
                   "router_aux_loss_coef": 0.001, **COMMON},
    },
    "qwen3-moe-tiny-mixed": {  # dense layers by step and by name, 3 of 5 experts with shares as they are, windows, biases, tied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": stored_by_expert(),
        "config": {**QWEN3_MOE, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 6,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 16, "tie_word_embeddings": True,
                   "attention_bias": True, "rope_theta": 5000.0, "rope_scaling": None,
                   "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1,
                   "num_experts": 5, "num_experts_per_tok": 3, "moe_intermediate_size": 16, "norm_topk_prob": False,
                   "decoder_sparse_step": 2, "mlp_only_layers": [3], "output_router_logits": False,
                   "router_aux_loss_coef": 0.001, **COMMON},
    },
    "qwen3-moe-tiny-odd": {  # 3 of 7 experts of 20 in two layers of three, GELU without approximation, 5 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "config": {**QWEN3_MOE, "hidden_size": 40, "intermediate_size": 48, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 12, "tie_word_embeddings": True,
                   "attention_bias": False, "rope_theta": 9000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0},
                   "use_sliding_window": False, "sliding_window": None, "max_window_layers": 3,
                   "num_experts": 7, "num_experts_per_tok": 3, "moe_intermediate_size": 20, "norm_topk_prob": True,
                   "decoder_sparse_step": 1, "mlp_only_layers": [0], "output_router_logits": False,
                   "router_aux_loss_coef": 0.001, **COMMON, "hidden_act": "gelu"},
    },
}  # fmt: skip
