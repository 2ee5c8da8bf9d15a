"""DeepSeek-V2, V3 and GLM-4.7-Flash: latent attention, and a router with groups and corrections."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from faults import Fault, each, edit, replace
from rows._common import COMMON
from rows._moe import draw, stored_by_expert

DEEPSEEK_V2 = {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2"}
DEEPSEEK_V3 = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3"}
GLM4_MOE_LITE = {"architectures": ["Glm4MoeLiteForCausalLM"], "model_type": "glm4_moe_lite"}


def with_a_layer_ahead(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
    """Published checkpoints have a layer that predicts ahead behind the last one."""
    stored = stored_by_expert()(weights, random)
    last = 1 + max(int(name.split(".")[2]) for name in stored if name.startswith("model.layers."))
    ahead = {"model.layers.%d.eh_proj.weight" % last: torch.randn((8, 16), generator=random).to(torch.bfloat16)}
    return stored | ahead


def has_latents(model: Any) -> bool:
    return bool(each(model, "kv_b_proj"))


def other_parts(model: Any) -> None:
    """The two parts of the heads' keys and values in the other order."""
    for attention in each(model, "self_attn"):
        width = attention.qk_nope_head_dim + attention.v_head_dim
        rows = attention.kv_b_proj.weight.data.unflatten(0, (-1, width))
        attention.kv_b_proj.weight.data = rows.roll(attention.v_head_dim, 1).flatten(0, 1)


def norms_by_config(model: Any) -> None:
    for norm in each(model, "kv_a_layernorm") + each(model, "q_a_layernorm"):
        norm.variance_epsilon = model.config.rms_norm_eps


def turned_otherwise(model: Any) -> None:
    model.config.rope_interleave = not model.config.rope_interleave


def is_interleaved(model: Any) -> bool:
    return has_latents(model) and getattr(model.config, "rope_interleave", False)


def unturned(q: Tensor, k: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
    return q, k


def scaled_by_yarn(model: Any) -> bool:
    return has_latents(model) and bool((model.config.rope_parameters or {}).get("mscale_all_dim"))


def plain_scale(model: Any) -> None:
    for attention in each(model, "self_attn"):
        attention.scaling = attention.qk_head_dim**-0.5


# Faults in the function for pairs that are half a head apart, which pairs of neighbours do not use.
INTERLEAVED = {"RoPE off", "RoPE interleaved"}
FAULTS = [
    Fault("RoPE of neighbours off", replace("apply_rotary_pos_emb_interleave", unturned), is_interleaved),
    Fault("RoPE of complex numbers off", replace("apply_rotary_emb", unturned), lambda model: model.config.model_type == "deepseek_v2"),
    Fault("keys and values of a head swapped", edit(other_parts), has_latents),
    Fault("latent norms with the other eps", edit(norms_by_config), has_latents),
    Fault("pairs of RoPE in the other order", edit(turned_otherwise), lambda model: has_latents(model) and hasattr(model.config, "rope_interleave")),
    Fault("YaRN's factor on scores missing", edit(plain_scale), scaled_by_yarn),
]
MODELS = {
    "deepseek-v2-tiny": {  # as V2-Lite: one query projection, YaRN with equal factors, 2 of 6 experts, two shared ones, a dense layer, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "config": {**DEEPSEEK_V2, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "tie_word_embeddings": False,
                   "attention_bias": False, "q_lora_rank": None, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
                   "qk_rope_head_dim": 8, "v_head_dim": 16, "rope_theta": 10000,
                   "rope_scaling": {"type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707,
                                    "mscale_all_dim": 0.707, "original_max_position_embeddings": 32},
                   "n_routed_experts": 6, "n_shared_experts": 2, "num_experts_per_tok": 2, "n_group": 1,
                   "topk_group": 1, "topk_method": "greedy", "moe_intermediate_size": 32, "first_k_dense_replace": 1,
                   "norm_topk_prob": False, "routed_scaling_factor": 1.0, "scoring_func": "softmax", **COMMON},
    },
    "deepseek-v2-tiny-groups": {  # as V2: two query projections, 3 of 12 experts of 20 in 2 of 4 groups, scaled, biases, tied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": stored_by_expert(),
        "config": {**DEEPSEEK_V2, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 5, "tie_word_embeddings": True,
                   "attention_bias": True, "q_lora_rank": 28, "kv_lora_rank": 20, "qk_nope_head_dim": 10,
                   "qk_rope_head_dim": 12, "v_head_dim": 18,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 50000.0},
                   "n_routed_experts": 12, "n_shared_experts": 1, "num_experts_per_tok": 3, "n_group": 4,
                   "topk_group": 2, "topk_method": "group_limited_greedy", "moe_intermediate_size": 20,
                   "first_k_dense_replace": 1, "norm_topk_prob": False, "routed_scaling_factor": 1.6, "scoring_func": "softmax", **COMMON},
    },
    "deepseek-v2-tiny-all": {  # all of 3 experts, one head, linear RoPE, two dense layers
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(), "cannot_have": {"one expert more"},
        "config": {**DEEPSEEK_V2, "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 1, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "attention_bias": False, "q_lora_rank": 16, "kv_lora_rank": 48, "qk_nope_head_dim": 24,
                   "qk_rope_head_dim": 16, "v_head_dim": 32,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 7000.0, "factor": 2.0},
                   "n_routed_experts": 3, "n_shared_experts": 1, "num_experts_per_tok": 3, "topk_method": "greedy",
                   "moe_intermediate_size": 32, "first_k_dense_replace": 2, "norm_topk_prob": False,
                   "routed_scaling_factor": 1.2, **COMMON},
    },
    "deepseek-v3-tiny": {  # as V3: two query projections, YaRN with factors on scores, 2 of 8 experts in 2 of 4 groups, a dense layer, a layer ahead, biases
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": with_a_layer_ahead, "cannot_have": INTERLEAVED,
        "config": {**DEEPSEEK_V3, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "tie_word_embeddings": False,
                   "attention_bias": True, "q_lora_rank": 24, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
                   "qk_rope_head_dim": 8, "v_head_dim": 12,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "mscale": 1.0,
                                       "mscale_all_dim": 0.7, "original_max_position_embeddings": 32},
                   "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
                   "moe_intermediate_size": 32, "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2,
                   "norm_topk_prob": True, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "num_nextn_predict_layers": 1, **COMMON},
    },
    "deepseek-v3-tiny-direct": {  # as Moonlight: one query projection, 3 of 5 experts of 20 without groups, two shared ones, tied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": stored_by_expert(), "cannot_have": INTERLEAVED,
        "config": {**DEEPSEEK_V3, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 3,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": True,
                   "attention_bias": False, "q_lora_rank": None, "kv_lora_rank": 20, "qk_nope_head_dim": 10,
                   "qk_rope_head_dim": 12, "v_head_dim": 18, "rope_theta": 50000.0, "rope_scaling": None,
                   "n_routed_experts": 5, "n_shared_experts": 2, "num_experts_per_tok": 3,
                   "moe_intermediate_size": 20, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
                   "norm_topk_prob": False, "routed_scaling_factor": 0.8, "scoring_func": "sigmoid", "num_nextn_predict_layers": 0, **COMMON},
    },
    "deepseek-v3-tiny-halves": {  # pairs half a rotated part apart, one head, dense layers only
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "config": {**DEEPSEEK_V3, "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 1, "num_key_value_heads": 1, "tie_word_embeddings": False,
                   "attention_bias": False, "q_lora_rank": 16, "kv_lora_rank": 48, "qk_nope_head_dim": 24,
                   "qk_rope_head_dim": 16, "v_head_dim": 32, "rope_interleave": False,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 7000.0, "factor": 2.0},
                   "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 1,
                   "moe_intermediate_size": 32, "first_k_dense_replace": 2, "n_group": 1, "topk_group": 1,
                   "norm_topk_prob": True, "routed_scaling_factor": 1.0, "num_nextn_predict_layers": 0, **COMMON},
    },
    "glm4-moe-lite-tiny": {  # as 4.7-Flash: two query projections, 2 of 6 experts, a dense layer by default, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": with_a_layer_ahead, "cannot_have": INTERLEAVED,
        "config": {**GLM4_MOE_LITE, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 5, "num_key_value_heads": 5, "tie_word_embeddings": False,
                   "attention_bias": False, "q_lora_rank": 20, "kv_lora_rank": 32, "qk_nope_head_dim": 12,
                   "qk_rope_head_dim": 8, "v_head_dim": 16, "rope_theta": 1000000, "rope_scaling": None,
                   "n_routed_experts": 6, "n_shared_experts": 1, "num_experts_per_tok": 2,
                   "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
                   "routed_scaling_factor": 1.8, "scoring_func": "sigmoid", "first_k_dense_replace": 1,
                   "num_nextn_predict_layers": 1, **COMMON},
    },
    "glm4-moe-lite-tiny-direct": {  # one query projection, 4 of 12 experts of 20 in 3 of 6 groups, biases, linear RoPE, tied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": stored_by_expert(), "cannot_have": INTERLEAVED,
        "config": {**GLM4_MOE_LITE, "hidden_size": 40, "intermediate_size": 56, "num_hidden_layers": 3,
                   "num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "attention_bias": True, "q_lora_rank": None, "kv_lora_rank": 24, "qk_nope_head_dim": 18,
                   "qk_rope_head_dim": 6, "v_head_dim": 10,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 9000.0, "factor": 3.0},
                   "n_routed_experts": 12, "n_shared_experts": 2, "num_experts_per_tok": 4,
                   "moe_intermediate_size": 20, "n_group": 6, "topk_group": 3, "norm_topk_prob": False,
                   "routed_scaling_factor": 0.6, **COMMON},
    },
    "glm4-moe-lite-tiny-types": {  # pairs half a part apart, all of 3 experts, dense layers by type, YaRN, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(), "cannot_have": {"one expert more"},
        "config": {**GLM4_MOE_LITE, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 4,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": True,
                   "attention_bias": False, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
                   "qk_rope_head_dim": 16, "v_head_dim": 16, "rope_interleave": False,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 8000.0, "factor": 4.0,
                                       "original_max_position_embeddings": 32},
                   "n_routed_experts": 3, "n_shared_experts": 1, "num_experts_per_tok": 3,
                   "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
                   "routed_scaling_factor": 1.3, "mlp_layer_types": ["sparse", "dense", "dense", "sparse"], **COMMON},
    },
}  # fmt: skip
