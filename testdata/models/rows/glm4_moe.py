"""GLM-4.5, and the mistakes of routers like DeepSeek-V3's."""

from __future__ import annotations

import torch
from torch import Tensor

from faults import Fault, edit
from rows._common import COMMON
from rows._moe import change_routers, correct_weights, corrections, draw, has_groups, no_corrections, scales_routed, stored_by_expert

GLM4_MOE = {"architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe"}


def with_a_layer_ahead(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
    """Published checkpoints have a layer that predicts ahead behind the last one."""
    stored = stored_by_expert()(weights, random)
    ahead = {name.replace("layers.0.", "layers.2."): values.clone() for name, values in stored.items() if "layers.0.input_layernorm" in name}
    return stored | ahead | {"model.layers.2.eh_proj.weight": torch.randn((8, 16), generator=random).to(torch.bfloat16)}


FAULTS = [
    Fault("scores not corrected", edit(no_corrections), lambda model: bool(corrections(model))),
    Fault("corrected scores as weights", edit(correct_weights), lambda model: bool(corrections(model))),
    Fault("experts' groups ignored", change_routers(num_group=lambda _: 1, topk_group=lambda _: 1), has_groups),
    Fault("routed scaling missing", change_routers(routed_scaling_factor=lambda _: 1.0), scales_routed),
]
MODELS = {
    "glm4-moe-tiny": {  # as 4.5-Air: 2 of 6 experts beside a shared one, a dense layer, half a head rotated, a layer ahead, biases, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": with_a_layer_ahead,
        "config": {**GLM4_MOE, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": False,
                   "attention_bias": True, "use_qk_norm": False, "rope_theta": 1000000, "rope_scaling": None,
                   "partial_rotary_factor": 0.5, "n_routed_experts": 6, "n_shared_experts": 1,
                   "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1, "n_group": 1,
                   "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 1.5,
                   "num_nextn_predict_layers": 1, **COMMON},
    },
    "glm4-moe-tiny-groups": {  # 3 of 12 experts of 20 in 2 of 4 groups, weights as they are, two shared ones, QK norm, 4 query heads a KV head, tied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": stored_by_expert(),
        "config": {**GLM4_MOE, "hidden_size": 40, "intermediate_size": 56, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 12, "tie_word_embeddings": True,
                   "attention_bias": False, "use_qk_norm": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0, "partial_rotary_factor": 0.5},
                   "n_routed_experts": 12, "n_shared_experts": 2, "num_experts_per_tok": 3,
                   "moe_intermediate_size": 20, "first_k_dense_replace": 0, "n_group": 4, "topk_group": 2,
                   "norm_topk_prob": False, "routed_scaling_factor": 0.7, "num_nextn_predict_layers": 0, **COMMON},
    },
    "glm4-moe-tiny-plain": {  # 1 of 4 experts, two dense layers, all of a head rotated, YaRN, a KV head for each query head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "cannot_have": {"one expert fewer", "corrected scores as weights"},
        "config": {**GLM4_MOE, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 4,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": True,
                   "attention_bias": False,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 8000.0, "factor": 4.0,
                                       "original_max_position_embeddings": 32, "partial_rotary_factor": 1.0},
                   "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 1,
                   "moe_intermediate_size": 32, "first_k_dense_replace": 2, "n_group": 1, "topk_group": 1,
                   "norm_topk_prob": True, "routed_scaling_factor": 1.0, "num_nextn_predict_layers": 0, **COMMON},
    },
}  # fmt: skip
