"""LFM2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from faults import Fault, each, edit, if_config, without
from rows._common import COMMON

LFM2 = {"architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "norm_eps": 0.01,
        **{key: value for key, value in COMMON.items() if key not in ("rms_norm_eps", "hidden_act")}}  # fmt: skip


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    if "layernorm" in name:
        return 1.6 * (0.4 + 1.2 * torch.rand(shape, generator=random))
    if name.endswith("embedding_norm.weight") and config.tie_word_embeddings:
        return 0.4 * (0.4 + 1.2 * torch.rand(shape, generator=random))
    return None


# As LFM2-350M and its sisters have it, and as newer ones have it.
MODELS = {
    "lfm2-tiny": {  # the keys of the first checkpoints: block_*, full_attn_idxs, tie_embedding
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**LFM2, "block_auto_adjust_ff_dim": True, "block_dim": 48, "block_ff_dim": 150,
                   "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 16, "block_norm_eps": 0.01,
                   "block_use_swiglu": True, "conv_L_cache": 3, "conv_bias": False, "conv_dim": 48,
                   "full_attn_idxs": [2], "hidden_size": 48, "num_attention_heads": 6, "num_heads": 6,
                   "num_hidden_layers": 4, "num_key_value_heads": 2, "rope_theta": 1000000.0,
                   "theta": 1000000.0, "tie_embedding": True, "use_pos_enc": True},
    },
    "lfm2-tiny-bias": {  # 4 taps, biases around the convolution, layer_types, a given feed-forward width, untied
        "dtype": "float16", "shards": 1, "draw": draw,
        "config": {**LFM2, "block_auto_adjust_ff_dim": False, "intermediate_size": 88, "block_multiple_of": 256,
                   "block_ffn_dim_multiplier": 0.7, "conv_L_cache": 4, "conv_bias": True, "hidden_size": 40,
                   "layer_types": ["full_attention", "conv", "full_attention"], "num_attention_heads": 2,
                   "num_hidden_layers": 3, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 30000.0}},
    },
    "lfm2-tiny-short": {  # 2 taps, biases, one KV head, every second layer attends, linear RoPE, an odd width, tied
        "dtype": "bfloat16", "shards": 2, "draw": draw,
        "config": {**LFM2, "block_auto_adjust_ff_dim": True, "intermediate_size": 101, "block_multiple_of": 7,
                   "block_ffn_dim_multiplier": 1.3, "conv_L_cache": 2, "conv_bias": True, "hidden_size": 36,
                   "layer_types": ["conv", "full_attention", "conv", "full_attention"], "num_attention_heads": 3,
                   "num_hidden_layers": 4, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 8000.0}},
    },
}  # fmt: skip


def swap_gates(model: Any) -> None:
    """Exchanges the gates before and after the convolution."""
    for projection in each(model, "in_proj"):
        for tensor in (projection.weight, projection.bias):
            if tensor is not None:
                b, c, x = tensor.data.chunk(3)
                tensor.data = torch.cat((c, b, x))


def turn_taps(model: Any) -> None:
    for conv in convolutions(model):
        conv.weight.data = conv.weight.data.flip(-1)


def forget_oldest(model: Any) -> None:
    """What a state that is one short does."""
    for conv in convolutions(model):
        conv.weight.data[..., 0] = 0


def convolutions(model: Any) -> list[nn.Conv1d]:
    return [module for module in each(model, "conv") if isinstance(module, nn.Conv1d)]


def drop_conv_bias(*parts: str) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for mixer in model.modules():
            if type(mixer).__name__ in ("Lfm2ShortConv", "Lfm2MoeShortConv"):
                for part in parts:
                    mixer.get_submodule(part).bias.data.zero_()

    return change


def swap_gate_and_up(model: Any) -> None:
    for mlp in (mlp for mlp in each(model, "feed_forward") if hasattr(mlp, "w1")):
        mlp.w1, mlp.w3 = mlp.w3, mlp.w1


def is_lfm2(config: Any) -> bool:
    return config.model_type in ("lfm2", "lfm2_moe")


def has_dense(model: Any) -> bool:
    return any(hasattr(mlp, "w1") for mlp in each(model, "feed_forward"))


def is_biased(config: Any) -> bool:
    return is_lfm2(config) and config.conv_bias


FAULTS = [
    Fault("gates of the convolution exchanged", edit(swap_gates), if_config(is_lfm2)),
    Fault("taps in reverse", edit(turn_taps), if_config(is_lfm2)),
    Fault("oldest tap ignored", edit(forget_oldest), if_config(is_lfm2)),
    Fault("convolution's bias missing", edit(drop_conv_bias("conv")), if_config(is_biased)),
    Fault("in_proj's bias missing", edit(drop_conv_bias("in_proj")), if_config(is_biased)),
    Fault("out_proj's bias missing", edit(drop_conv_bias("out_proj")), if_config(is_biased)),
    Fault("gate and up (w1, w3) swapped", edit(swap_gate_and_up), has_dense),
    Fault("operator norm missing", without("operator_norm"), if_config(is_lfm2)),
    Fault("feed-forward norm missing", without("ffn_norm"), if_config(is_lfm2)),
    Fault("q layer norm missing", without("q_layernorm"), if_config(is_lfm2)),
    Fault("k layer norm missing", without("k_layernorm"), if_config(is_lfm2)),
    Fault("embedding norm missing", without("model.embedding_norm"), if_config(is_lfm2)),
]
