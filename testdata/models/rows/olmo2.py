"""OLMo 2."""

from typing import Any

from torch import Tensor

from faults import Fault, each, edit, if_config, if_part, without
from rows._common import COMMON

OLMO2 = {"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2"}
MODELS = {
    "olmo2-tiny": {  # as 7B: a KV head for each query head, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**OLMO2, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "tie_word_embeddings": False,
                   "attention_bias": False, "rope_theta": 500000.0, "rope_scaling": None, **COMMON},
    },
    "olmo2-tiny-gqa": {  # as 32B: 5 query heads a KV head; biases, linear RoPE, tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**OLMO2, "hidden_size": 80, "intermediate_size": 96, "num_hidden_layers": 2,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "attention_bias": True,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 20000.0, "factor": 4.0}, **COMMON},
    },
    "olmo2-tiny-yarn": {  # YaRN with unlike mscales, GELU without approximation, 3 query heads a KV head, an odd width, untied
        "dtype": "float16", "shards": 2, "seed": 5,
        "config": {**OLMO2, "hidden_size": 60, "intermediate_size": 85, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "attention_bias": False, "rope_theta": 12000.0,
                   "rope_scaling": {"rope_type": "yarn", "factor": 3.0, "original_max_position_embeddings": 40,
                                    "mscale": 0.7, "mscale_all_dim": 0.2}, **COMMON, "hidden_act": "gelu"},
    },
}  # fmt: skip


def norm_each_head(model: Any) -> None:
    """Of queries and keys, by their own mean square."""
    for attention in each(model, "self_attn"):
        for norm in (attention.q_norm, attention.k_norm):

            def forward(x: Tensor, norm: Any = norm, size: int = attention.head_dim) -> Tensor:
                heads = x.unflatten(-1, (-1, size))
                heads = heads * (heads.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).rsqrt()
                return norm.weight * heads.flatten(-2)

            norm.forward = forward


FAULTS = [
    Fault("queries and keys normed head by head", edit(norm_each_head), if_config(lambda config: config.model_type in ("olmo2", "olmo3"))),
    Fault("post-feed-forward norm missing", without("post_feedforward_layernorm"), if_part("post_feedforward_layernorm")),
]
