"""Hunyuan, dense."""

from contextlib import AbstractContextManager
from itertools import count
from typing import Any
from unittest import mock

from torch import Tensor

from faults import Fault, code_of, each, edit, if_config, if_part, without
from rows._common import COMMON

HUNYUAN = {"architectures": ["HunYuanDenseV1ForCausalLM"], "model_type": "hunyuan_v1_dense"}
ALPHA = {"alpha": 50.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "type": "dynamic"}
MODELS = {
    "hunyuan-v1-dense-tiny": {  # 4 query heads a KV head, biases, RoPE as it is, untied
        "dtype": "bfloat16", "shards": 1,
        "config": {**HUNYUAN, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": False,
                   "attention_bias": True, "rope_theta": 20000.0, **COMMON},
    },
    "hunyuan-v1-dense-tiny-alpha": {  # as 7B: a base that a factor stretches, among keys that mean nothing with it; tied
        "dtype": "bfloat16", "shards": 1,
        "config": {**HUNYUAN, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 12, "tie_word_embeddings": True,
                   "attention_bias": False, "rope_theta": 10000.0, "rope_scaling": ALPHA, "use_qk_norm": True, **COMMON},
    },
    "hunyuan-v1-dense-tiny-dynamic": {  # a base that grows with the prompt, a KV head for each query head, an odd width, untied
        "dtype": "float16", "shards": 2, "in_pieces": False,
        "config": {**HUNYUAN, "hidden_size": 60, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 3, "head_dim": 20, "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "dynamic", "rope_theta": 5000.0, "factor": 5.0},
                   **COMMON, "max_position_embeddings": 24, "hidden_act": "gelu"},
    },
}  # fmt: skip


def norm_first(model: Any) -> AbstractContextManager[None]:
    """Queries and keys normed before they turn."""
    right = code_of(model).apply_rotary_pos_emb
    norms = [(a.query_layernorm, a.key_layernorm) for a in each(model, "self_attn")]
    calls = count()

    def rotate(q: Tensor, k: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        query, key = norms[next(calls) % len(norms)]
        return right(type(query).forward(query, q), type(key).forward(key, k), *rest)

    for norm in (norm for pair in norms for norm in pair):
        norm.forward = lambda x: x
    return mock.patch.object(code_of(model), "apply_rotary_pos_emb", rotate)


def scale_alpha(model: Any) -> None:
    """The factor itself, without its exponent."""
    rope = model.config.rope_parameters
    rope.update(rope_theta=rope["rope_theta"] * rope["alpha"], rope_type="default")
    model.model.rotary_emb = type(model.model.rotary_emb)(model.config)


FAULTS = [
    Fault("query norm missing", without("query_layernorm"), if_part("query_layernorm")),
    Fault("key norm missing", without("key_layernorm"), if_part("key_layernorm")),
    Fault("queries and keys normed before RoPE", norm_first, if_part("query_layernorm")),
    Fault("alpha without its exponent", edit(scale_alpha), if_config(lambda config: "alpha" in (getattr(config, "rope_parameters", None) or {}))),
]
