"""Falcon: 7B's form, the form of 40B and 11B, and the first one."""

import math
from typing import Any

import torch
from torch import Generator, Size, Tensor, nn

from faults import Fault, drop_biases, each, edit, if_bias, if_config, without

FALCON = {"architectures": ["FalconForCausalLM"], "model_type": "falcon", "vocab_size": 320, "max_position_embeddings": 128,
          "bos_token_id": None, "eos_token_id": 299, "attention_dropout": 0.0, "hidden_dropout": 0.0, "alibi": False}  # fmt: skip
NORMS = ("input_layernorm", "post_attention_layernorm", "ln_attn", "ln_mlp", "ln_f")


def draw(name: str, shape: Size, config: Any, random: Generator) -> Tensor | None:
    normal = torch.randn(shape, generator=random)
    if name.endswith(tuple(f"{norm}.weight" for norm in NORMS)):
        tied_head = name.endswith("ln_f.weight") and config.tie_word_embeddings
        return (0.4 if tied_head else 1.3) * (0.4 + 1.2 * torch.rand(shape, generator=random))
    if "word_embeddings" in name:
        return normal
    if name.endswith(("query_key_value.weight", "dense_h_to_4h.weight")):
        return 1.4 * normal / math.sqrt(shape[-1])
    return None


MODELS = {
    "falcon-tiny": {  # as 7B: one norm for both blocks, one KV head, tied by default
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**FALCON, "hidden_size": 80, "num_hidden_layers": 3, "num_attention_heads": 5, "multi_query": True,
                   "parallel_attn": True, "new_decoder_architecture": False, "bias": False, "layer_norm_epsilon": 0.02},
    },
    "falcon-tiny-groups": {  # as 40B: a norm for each block, 3 query heads a KV head, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**FALCON, "hidden_size": 60, "num_hidden_layers": 3, "num_attention_heads": 6, "num_kv_heads": 2,
                   "new_decoder_architecture": True, "bias": False, "layer_norm_epsilon": 0.03, "rope_theta": 4000.0,
                   "tie_word_embeddings": True},
    },
    "falcon-tiny-one-norm": {  # as 11B: grouped heads, one norm for both blocks, biases, YaRN, ReLU, a width that is odd, untied
        "dtype": "float16", "shards": 2, "draw": draw,
        "config": {**FALCON, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8, "num_kv_heads": 4,
                   "new_decoder_architecture": True, "num_ln_in_parallel_attn": 1, "bias": True, "layer_norm_epsilon": 0.02,
                   "ffn_hidden_size": 75, "activation": "relu", "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 3000.0, "factor": 3.0, "original_max_position_embeddings": 40}},
    },
    "falcon-tiny-serial": {  # one block after the other, a KV head for each query head, biases, linear RoPE, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**FALCON, "n_embed": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "multi_query": False,
                   "parallel_attn": False, "new_decoder_architecture": False, "bias": True, "layer_norm_epsilon": 0.02,
                   "activation": "gelu_pytorch_tanh", "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}},
    },
}  # fmt: skip


def of_falcon(config: Any) -> bool:
    return config.model_type == "falcon"


def keep_means(model: Any) -> None:
    """RMS norms in place of LayerNorms."""
    for norm in [m for m in model.modules() if isinstance(m, nn.LayerNorm)]:

        def forward(x: Tensor, norm: Any = norm) -> Tensor:
            return x * (x.pow(2).mean(-1, keepdim=True) + norm.eps).rsqrt() * norm.weight + norm.bias

        norm.forward = forward


def one_after_the_other(model: Any) -> None:
    """All queries, then all keys, then all values."""
    config = model.config
    heads, groups = config.num_attention_heads, config.num_kv_heads
    width = config.hidden_size // heads
    for projection in each(model, "query_key_value"):
        for tensor in (projection.weight, projection.bias):
            if tensor is not None:
                q, k, v = tensor.data.split([heads * width, groups * width, groups * width])
                shape = (groups, -1, *tensor.shape[1:])
                tensor.data = torch.cat([part.reshape(shape) for part in (q, k, v)], 1).reshape(tensor.shape)


def exchange_norms(model: Any) -> None:
    for layer in model.transformer.h:
        layer.ln_attn, layer.ln_mlp = layer.ln_mlp, layer.ln_attn


def use_silu(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.act = nn.SiLU()


def has_groups(config: Any) -> bool:
    return of_falcon(config) and config.new_decoder_architecture


FAULTS = [
    Fault("means are not taken away, in Falcon", edit(keep_means), if_config(of_falcon)),
    Fault("norm biases missing, in Falcon", edit(drop_biases(*NORMS)), if_config(of_falcon)),
    Fault("rows of groups read as all queries, keys and values", edit(one_after_the_other), if_config(has_groups)),
    Fault("Falcon's two norms exchanged", edit(exchange_norms), if_config(lambda config: has_groups(config) and config.num_ln_in_parallel_attn != 1)),
    Fault("SiLU in place of Falcon's activation", edit(use_silu), if_config(of_falcon)),
    *(Fault(f"{part} bias missing, in Falcon", edit(drop_biases(part)), if_bias(part)) for part in ("query_key_value", "dense_h_to_4h", "dense_4h_to_h")),
    Fault("Falcon's last norm missing", without("ln_f"), if_config(of_falcon)),
]  # fmt: skip
