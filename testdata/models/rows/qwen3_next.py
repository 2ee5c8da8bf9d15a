"""Qwen3-Next, and Qwen3.5 with a mixture of experts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rows import _moe, qwen3_5
from rows._common import COMMON
from rows._moe import stored_by_expert


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    drawn = _moe.draw(name, shape, config, random)
    return qwen3_5.draw(name, shape, config, random) if drawn is None else drawn


NEXT = {**COMMON, "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "output_router_logits": False}
MOE = {**COMMON, "architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text", "attn_output_gate": True}
MODELS = {
    "qwen3-next-tiny": {  # 2 value heads a key head, 3 of 6 experts, 2 query heads a KV head, layers by full_attention_interval, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "config": {**NEXT, "attention_bias": False, "full_attention_interval": 3, "head_dim": 32,
                   "hidden_size": 32, "intermediate_size": 48, "linear_conv_kernel_dim": 4,
                   "linear_key_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
                   "linear_value_head_dim": 16, "num_attention_heads": 2, "num_hidden_layers": 3,
                   "num_key_value_heads": 1, "tie_word_embeddings": False, "rope_theta": 10000000,
                   "rope_scaling": None, "partial_rotary_factor": 0.25, "num_experts": 6, "num_experts_per_tok": 3,
                   "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "norm_topk_prob": True,
                   "decoder_sparse_step": 1, "mlp_only_layers": []},
    },
    "qwen3-next-tiny-mixed": {  # a dense layer, weights as they are, 3 value heads a key head, tied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": stored_by_expert(),
        "config": {**NEXT, "attention_bias": False, "layer_types": ["linear_attention", "full_attention", "linear_attention"],
                   "head_dim": 16, "hidden_size": 40, "intermediate_size": 56, "linear_conv_kernel_dim": 3,
                   "linear_key_head_dim": 8, "linear_num_key_heads": 1, "linear_num_value_heads": 3,
                   "linear_value_head_dim": 12, "num_attention_heads": 4, "num_hidden_layers": 3,
                   "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 50000.0, "partial_rotary_factor": 0.5},
                   "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 20,
                   "shared_expert_intermediate_size": 36, "norm_topk_prob": False, "decoder_sparse_step": 1,
                   "mlp_only_layers": [1]},
    },
    "qwen3-next-tiny-odd": {  # a value head a key head, all of 3 experts, biases, all of a head rotated, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "cannot_have": {"one expert more", "experts' shares normed the other way"},
        "config": {**NEXT, "attention_bias": True, "layer_types": ["full_attention", "linear_attention"],
                   "head_dim": 24, "hidden_size": 36, "intermediate_size": 40, "linear_conv_kernel_dim": 4,
                   "linear_key_head_dim": 20, "linear_num_key_heads": 3, "linear_num_value_heads": 3,
                   "linear_value_head_dim": 24, "num_attention_heads": 3, "num_hidden_layers": 2,
                   "num_key_value_heads": 3, "tie_word_embeddings": True, "rope_theta": 20000,
                   "partial_rotary_factor": 1.0, "num_experts": 3, "num_experts_per_tok": 3,
                   "moe_intermediate_size": 28, "shared_expert_intermediate_size": 16, "norm_topk_prob": True,
                   "decoder_sparse_step": 1},
    },
    "qwen3_5-moe-tiny": {  # 2 value heads a key head, 3 of 6 experts, 2 query heads a KV head, untied; experts in two tensors
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**MOE, "attention_bias": False, "full_attention_interval": 3, "head_dim": 32, "hidden_size": 32,
                   "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_num_key_heads": 2,
                   "linear_num_value_heads": 4, "linear_value_head_dim": 16, "num_attention_heads": 2,
                   "num_hidden_layers": 3, "num_key_value_heads": 1, "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 10000000,
                                       "partial_rotary_factor": 0.25, "mrope_interleaved": True,
                                       "mrope_section": [11, 11, 10]},
                   "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 32,
                   "shared_expert_intermediate_size": 32},
    },
    "qwen3_5-moe-tiny-odd": {  # a value head a key head, all of 3 experts of 28, biases, all of a head rotated, tied; a tensor an expert
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": stored_by_expert(), "cannot_have": {"one expert more"},
        "config": {**MOE, "attention_bias": True, "layer_types": ["full_attention", "linear_attention"],
                   "head_dim": 24, "hidden_size": 36, "linear_conv_kernel_dim": 3, "linear_key_head_dim": 20,
                   "linear_num_key_heads": 3, "linear_num_value_heads": 3, "linear_value_head_dim": 24,
                   "num_attention_heads": 3, "num_hidden_layers": 2, "num_key_value_heads": 3,
                   "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 50000, "partial_rotary_factor": 1.0,
                                       "mrope_interleaved": True, "mrope_section": [4, 4, 4]},
                   "num_experts": 3, "num_experts_per_tok": 3, "moe_intermediate_size": 28,
                   "shared_expert_intermediate_size": 20},
    },
    "qwen3_5-moe-tiny-vision": {  # nested under text_config, with a head that predicts ahead; 1 of 4 experts, 3 value heads a key head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": qwen3_5.in_multimodal_layout,
        "cannot_have": {"one expert fewer"},
        "config": {"architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe",
                   "tie_word_embeddings": True, "image_token_id": 310, "video_token_id": 311,
                   "vision_start_token_id": 312, "vision_end_token_id": 313,
                   "vision_config": {"model_type": "qwen3_5_moe", "depth": 1, "hidden_size": 8, "num_heads": 2,
                                     "intermediate_size": 16, "out_hidden_size": 32, "patch_size": 2},
                   "text_config": {**COMMON, "model_type": "qwen3_5_moe_text", "attention_bias": False, "head_dim": 16,
                                   "hidden_size": 32, "full_attention_interval": 2, "linear_conv_kernel_dim": 4,
                                   "linear_key_head_dim": 8, "linear_num_key_heads": 1, "linear_num_value_heads": 3,
                                   "linear_value_head_dim": 16, "num_attention_heads": 4, "num_hidden_layers": 2,
                                   "num_key_value_heads": 2, "tie_word_embeddings": True,
                                   "rope_parameters": {"rope_type": "default", "rope_theta": 10000,
                                                       "partial_rotary_factor": 0.5, "mrope_interleaved": True,
                                                       "mrope_section": [2, 1, 1]},
                                   "num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 24,
                                   "shared_expert_intermediate_size": 40}},
    },
}  # fmt: skip
