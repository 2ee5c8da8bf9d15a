"""LFM2 with a mixture of experts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rows import _moe, lfm2
from rows._moe import stored_by_expert

LFM2_MOE = {**lfm2.LFM2, "architectures": ["Lfm2MoeForCausalLM"], "model_type": "lfm2_moe"}
STORED = stored_by_expert("feed_forward.experts", ("w1", "w3", "w2"))


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    drawn = _moe.draw(name, shape, config, random)
    return lfm2.draw(name, shape, config, random) if drawn is None else drawn


MODELS = {
    "lfm2-moe-tiny": {  # as 8B-A1B: 2 of 6 experts, two dense layers, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": STORED,
        "config": {**LFM2_MOE, "conv_L_cache": 3, "conv_bias": False, "hidden_size": 32, "intermediate_size": 64,
                   "layer_types": ["conv", "conv", "full_attention", "conv"], "moe_intermediate_size": 32,
                   "num_attention_heads": 4, "num_dense_layers": 2, "num_experts": 6, "num_experts_per_tok": 2,
                   "num_hidden_layers": 4, "num_key_value_heads": 1, "norm_topk_prob": True,
                   "routed_scaling_factor": 1.0, "rope_theta": 1000000.0, "tie_embedding": True,
                   "use_expert_bias": True},
    },
    "lfm2-moe-tiny-all": {  # all of 3 experts of 20, weights as they are, scaled; biases around the convolution, untied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": STORED,
        "cannot_have": {"one expert more", "scores not corrected"},
        "config": {**LFM2_MOE, "conv_L_cache": 4, "conv_bias": True, "hidden_size": 40, "intermediate_size": 72,
                   "layer_types": ["full_attention", "conv", "full_attention"], "moe_intermediate_size": 20,
                   "num_attention_heads": 2, "num_dense_layers": 0, "num_experts": 3, "num_experts_per_tok": 3,
                   "num_hidden_layers": 3, "num_key_value_heads": 2, "norm_topk_prob": False,
                   "routed_scaling_factor": 0.8, "tie_word_embeddings": False, "use_expert_bias": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 30000.0}},
    },
    "lfm2-moe-tiny-plain": {  # 3 of 5 experts, no corrections, 2 taps, linear RoPE, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": STORED,
        "config": {**LFM2_MOE, "conv_L_cache": 2, "conv_bias": False, "hidden_size": 36, "intermediate_size": 50,
                   "layer_types": ["conv", "full_attention", "conv"], "moe_intermediate_size": 28,
                   "num_attention_heads": 3, "num_dense_layers": 1, "num_experts": 5, "num_experts_per_tok": 3,
                   "num_hidden_layers": 3, "num_key_value_heads": 3, "norm_topk_prob": True,
                   "routed_scaling_factor": 1.0, "tie_word_embeddings": True, "use_expert_bias": False,
                   "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 8000.0}},
    },
}  # fmt: skip
