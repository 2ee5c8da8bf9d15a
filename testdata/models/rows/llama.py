"""Llama."""

import torch
from torch import Tensor

from rows._common import COMMON

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}


def inside_smolvlm(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
    """The layout of a checkpoint of SmolVLM, with tensors of its other parts."""
    renamed = {name.replace("model.", "model.text_model.", 1): weight for name, weight in weights.items()}
    others = ("model.vision_model.post_layernorm.weight", "model.connector.modality_projection.proj.weight")
    return renamed | {name: torch.randn(3, 5, generator=random).to(torch.bfloat16) for name in others}


# `config.json` as checkpoints in the wild write it (rope_theta, rope_scaling), except for one in the newer spelling.
MODELS = {
    "llama-tiny": {  # 2 query heads a KV head, llama3 rope scaling, no head_dim given
        "dtype": "float32", "shards": 1, "seed": 0,
        "config": {**LLAMA, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "attention_bias": False, "mlp_bias": False, "rope_theta": 500000.0,
                   "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, **COMMON},
    },
    "llama-tiny-bias": {  # 3 query heads a KV head, a head wider than hidden / heads, biases, tied
        "dtype": "float16", "shards": 1, "seed": 1,
        "config": {**LLAMA, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 24, "tie_word_embeddings": True,
                   "attention_bias": True, "mlp_bias": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}, **COMMON},
    },
    "llama-tiny-dynamic": {  # RoPE's base grows with a prompt that is longer than the context
        "dtype": "bfloat16", "shards": 1, "in_pieces": False,
        "config": {**LLAMA, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 3, "tie_word_embeddings": True,
                   "attention_bias": False, "mlp_bias": False, "rope_theta": 10000.0,
                   "rope_scaling": {"type": "dynamic", "factor": 5.0}, **COMMON, "max_position_embeddings": 24},
    },
    "llama-tiny-relu2": {  # squared ReLU, one KV head, heads of 10, biases of the feed-forward blocks alone, linear RoPE, an odd width
        "dtype": "bfloat16", "shards": 2,
        "config": {**LLAMA, "hidden_size": 40, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 10, "tie_word_embeddings": False,
                   "attention_bias": False, "mlp_bias": True, "rope_theta": 3000.0,
                   "rope_scaling": {"type": "linear", "factor": 3.0}, **COMMON, "hidden_act": "relu2"},
    },
    "llama-tiny-vision": {  # the text model of SmolVLM: another prefix, the outer word on the head, `model_type` left out
        "dtype": "bfloat16", "shards": 1, "tied": True, "tensors": inside_smolvlm,
        "config": {"architectures": ["SmolVLMForConditionalGeneration"], "model_type": "smolvlm",
                   "tie_word_embeddings": True, "image_token_id": 310,
                   "vision_config": {"model_type": "smolvlm_vision", "hidden_size": 8, "intermediate_size": 8,
                                     "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 4, "patch_size": 4},
                   "text_config": {"hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 2,
                                   "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 14,
                                   "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": False,
                                   "rope_theta": 60000.0, **COMMON, "hidden_act": "gelu_new"}},
    },
}  # fmt: skip
