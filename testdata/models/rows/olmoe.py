"""OLMoE."""

from __future__ import annotations

from rows._common import COMMON
from rows._moe import draw, stored_by_expert

OLMOE = {"architectures": ["OlmoeForCausalLM"], "model_type": "olmoe", "clip_qkv": None, "output_router_logits": False,
         "router_aux_loss_coef": 0.01}  # fmt: skip
MODELS = {
    "olmoe-tiny": {  # as 1B-7B: 3 of 8 experts with weights as they are, a KV head for each query head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(),
        "config": {**OLMOE, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
                   "num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "attention_bias": False, "rope_theta": 10000.0, "rope_scaling": None, "num_experts": 8,
                   "num_experts_per_tok": 3, "norm_topk_prob": False, **COMMON},
    },
    "olmoe-tiny-bias": {  # all of 4 experts of 20, normed; biases, llama3 RoPE, ReLU, tied
        "dtype": "float16", "shards": 2, "draw": draw, "tensors": stored_by_expert(),
        "cannot_have": {"one expert more", "experts' shares normed the other way"},
        "config": {**OLMOE, "hidden_size": 48, "intermediate_size": 20, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": True,
                   "attention_bias": True, "rope_theta": 9000.0,
                   "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 3.0, "original_max_position_embeddings": 48},
                   "num_experts": 4, "num_experts_per_tok": 4, "norm_topk_prob": True, **COMMON, "hidden_act": "relu"},
    },
    "olmoe-tiny-gqa": {  # 1 of 5 experts, 4 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": stored_by_expert(), "cannot_have": {"one expert fewer"},
        "config": {**OLMOE, "hidden_size": 64, "intermediate_size": 36, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 50000.0}, "num_experts": 5,
                   "num_experts_per_tok": 1, **COMMON},
    },
}  # fmt: skip
