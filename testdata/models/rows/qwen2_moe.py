"""Qwen2 with a mixture of experts, and an expert that all rows share."""

from __future__ import annotations

from typing import Any

import torch

from faults import Fault, each, edit
from rows._common import COMMON
from rows._moe import draw, stored_by_expert

QWEN2_MOE = {"architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "output_router_logits": False,
             "router_aux_loss_coef": 0.001}  # fmt: skip
SHARED = ("shared_expert", "shared_experts", "shared_mlp")


def no_shared(model: Any) -> None:
    for shared in (module for part in SHARED for module in each(model, part)):
        down = shared.down_proj if hasattr(shared, "down_proj") else shared.output_linear
        down.weight.data.zero_()


def open_gates(model: Any) -> None:
    for gate in each(model, "shared_expert_gate"):
        gate.forward = lambda x: torch.full((*x.shape[:-1], 1), 100.0)


FAULTS = [
    Fault("shared expert missing", edit(no_shared), lambda model: any(each(model, part) for part in SHARED)),
    Fault("shared expert without gate", edit(open_gates), lambda model: bool(each(model, "shared_expert_gate"))),
]
MODELS = {
    "qwen2-moe-tiny": {  # 2 of 6 experts with weights as they are, 2 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "config": {**QWEN2_MOE, "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "rope_theta": 1000000.0, "use_sliding_window": False, "sliding_window": 32, "max_window_layers": 2,
                   "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                   "shared_expert_intermediate_size": 64, "norm_topk_prob": False, "decoder_sparse_step": 1, **COMMON},
    },
    "qwen2-moe-tiny-mixed": {  # all of 3 experts, normed, in two layers of five; windows by default, no biases, tied
        "dtype": "float16", "shards": 2, "seed": 1, "draw": draw, "tensors": stored_by_expert(),
        "cannot_have": {"one expert more", "experts' shares normed the other way"},
        "config": {**QWEN2_MOE, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 5,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 16, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}, "qkv_bias": False,
                   "use_sliding_window": True, "sliding_window": 9, "max_window_layers": 3,
                   "num_experts": 3, "num_experts_per_tok": 3, "moe_intermediate_size": 48,
                   "shared_expert_intermediate_size": 16, "norm_topk_prob": True, "decoder_sparse_step": 2,
                   "mlp_only_layers": [0], **COMMON},
    },
    "qwen2-moe-tiny-one": {  # one expert of 20 beside a shared one of 36, GELU without approximation, 5 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "cannot_have": {"one expert more", "one expert fewer", "experts' shares normed the other way",
                        "down projection of another expert"},
        "config": {**QWEN2_MOE, "hidden_size": 40, "intermediate_size": 48, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "rope_theta": 9000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0},
                   "use_sliding_window": False, "max_window_layers": 3, "num_experts": 1, "num_experts_per_tok": 1,
                   "moe_intermediate_size": 20, "shared_expert_intermediate_size": 36, "norm_topk_prob": False,
                   "decoder_sparse_step": 1, "mlp_only_layers": [], **COMMON, "hidden_act": "gelu"},
    },
}  # fmt: skip
