"""Qwen3.5: the text model alone, and as it lies in the checkpoint of the multimodal one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from faults import Fault, each, edit, if_config, replace
from rows._common import COMMON


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    """Norms around zero, to which the model adds one; heads that forget slowly, fast and hardly at all."""
    if name.endswith("A_log"):
        return torch.log(0.05 + 1.5 * torch.rand(shape, generator=random))
    if name.endswith("dt_bias"):
        return -2.5 + 3.0 * torch.rand(shape, generator=random)
    if name.endswith("linear_attn.norm.weight"):
        return 0.5 + 1.5 * torch.rand(shape, generator=random)
    if name.endswith("norm.weight"):
        tied_head = name == "model.norm.weight" and config.tie_word_embeddings
        around = 0.4 if tied_head else 1.6 if "q_norm" in name or "k_norm" in name else 1.3
        return around * (0.4 + 1.2 * torch.rand(shape, generator=random)) - 1
    if name.endswith("q_proj.weight") or name.endswith("k_proj.weight"):
        return 1.3 * torch.randn(shape, generator=random) / math.sqrt(shape[-1])
    return None


def in_multimodal_layout(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
    """The text model's tensors under their names in a checkpoint whose vision tower was left out, with a head that predicts ahead."""
    named = {name.replace("model.", "model.language_model.", 1): tensor for name, tensor in weights.items()}
    dtype = next(iter(weights.values())).dtype
    others = {"mtp.fc.weight": (8, 16), "mtp.layers.0.input_layernorm.weight": (8,)}
    return named | {name: torch.randn(shape, generator=random).to(dtype) for name, shape in others.items()}


# `config.json` as Qwen/Qwen3.5 checkpoints write it.
MODELS = {
    "qwen3_5-tiny": {  # 2 value heads a key head, 2 query heads a KV head, untied, layers by full_attention_interval
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**COMMON, "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
                   "attention_bias": False, "attn_output_gate": True, "full_attention_interval": 3, "head_dim": 32,
                   "hidden_size": 48, "intermediate_size": 80, "linear_conv_kernel_dim": 4,
                   "linear_key_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
                   "linear_value_head_dim": 16, "mamba_ssm_dtype": "float32", "num_attention_heads": 4,
                   "num_hidden_layers": 3, "num_key_value_heads": 2, "tie_word_embeddings": False,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 10000000,
                                       "partial_rotary_factor": 0.25, "mrope_interleaved": True,
                                       "mrope_section": [11, 11, 10]}},
    },
    "qwen3_5-tiny-odd": {  # a value head a key head, head sizes that are no multiple of 16, 3 taps, biases, tied, all of a head rotated
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**COMMON, "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
                   "attention_bias": True, "head_dim": 24, "hidden_size": 40, "intermediate_size": 72,
                   "layer_types": ["full_attention", "linear_attention", "linear_attention"],
                   "linear_conv_kernel_dim": 3, "linear_key_head_dim": 24, "linear_num_key_heads": 3,
                   "linear_num_value_heads": 3, "linear_value_head_dim": 20, "num_attention_heads": 3,
                   "num_hidden_layers": 3, "num_key_value_heads": 1, "tie_word_embeddings": True,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 50000, "partial_rotary_factor": 1.0,
                                       "mrope_interleaved": True, "mrope_section": [4, 4, 4]}},
    },
    "qwen3_5-tiny-vision": {  # nested under text_config, without the vision tower, with tensors of another part; 3 value heads a key head, tied, sharded
        "dtype": "bfloat16", "shards": 2, "draw": draw, "tensors": in_multimodal_layout,
        "config": {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
                   "tie_word_embeddings": True, "image_token_id": 310, "video_token_id": 311,
                   "vision_start_token_id": 312, "vision_end_token_id": 313,
                   "vision_config": {"model_type": "qwen3_5", "depth": 1, "hidden_size": 8, "num_heads": 2,
                                     "intermediate_size": 16, "out_hidden_size": 32, "patch_size": 2},
                   "text_config": {**COMMON, "model_type": "qwen3_5_text", "attention_bias": False, "head_dim": 16,
                                   "hidden_size": 32, "intermediate_size": 64, "full_attention_interval": 2,
                                   "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8, "linear_num_key_heads": 1,
                                   "linear_num_value_heads": 3, "linear_value_head_dim": 16, "num_attention_heads": 4,
                                   "num_hidden_layers": 2, "num_key_value_heads": 2, "tie_word_embeddings": True,
                                   "rope_parameters": {"rope_type": "default", "rope_theta": 10000,
                                                       "partial_rotary_factor": 0.5, "mrope_interleaved": True,
                                                       "mrope_section": [2, 1, 1]}}},
    },
}  # fmt: skip


def mixers(model: Any) -> list[Any]:
    return each(model, "linear_attn")


def on_mixers(change: Callable[[Any], object]) -> Callable[[Any], Any]:
    def on_model(model: Any) -> None:
        for mixer in mixers(model):
            change(mixer)

    return edit(on_model)


def exchange(first: str, second: str) -> Callable[[Any], Any]:
    def change(mixer: Any) -> None:
        one, other = getattr(mixer, first), getattr(mixer, second)
        setattr(mixer, first, other)
        setattr(mixer, second, one)

    return on_mixers(change)


def scale(tensor: str, by: float) -> Callable[[Any], Any]:
    return on_mixers(lambda mixer: getattr(mixer, tensor).data.mul_(by))


def turn_taps(mixer: Any) -> None:
    mixer.conv1d.weight.data = mixer.conv1d.weight.data.flip(-1)


def forget_oldest(mixer: Any) -> None:
    mixer.conv1d.weight.data[..., 0] = 0


def swap_query_and_key(mixer: Any) -> None:
    for module in (mixer.in_proj_qkv, mixer.conv1d):
        q, k, v = module.weight.data.split([mixer.key_dim, mixer.key_dim, mixer.value_dim])
        module.weight.data = torch.cat((k, q, v))


def tile_key_heads(mixer: Any) -> None:
    """Value head i reads key head i % key_heads: the same as permuted value heads."""
    heads, keys = mixer.num_v_heads, mixer.num_k_heads
    order = torch.arange(heads).reshape(keys, heads // keys).T.flatten()
    for name in ("in_proj_z", "in_proj_b", "in_proj_a"):
        weight = getattr(mixer, name).weight
        weight.data = weight.data.reshape(heads, -1, weight.shape[-1])[order].reshape(weight.shape)
    for module in (mixer.in_proj_qkv, mixer.conv1d):
        weight = module.weight.data
        v = weight[2 * mixer.key_dim :]
        v = v.reshape(heads, -1, *v.shape[1:])[order].reshape(v.shape)
        module.weight.data = torch.cat((weight[: 2 * mixer.key_dim], v))
    for name in ("A_log", "dt_bias"):
        parameter = getattr(mixer, name)
        parameter.data = parameter.data[order]
    out = mixer.out_proj.weight.data
    mixer.out_proj.weight.data = out.reshape(len(out), heads, -1)[:, order].reshape(out.shape)


def plain_norms(model: Any) -> None:
    """`x * w` in place of `x * (1 + w)`."""
    for module in model.modules():
        if type(module).__name__ in ("Qwen3_5RMSNorm", "Qwen3_5MoeRMSNorm", "Qwen3NextRMSNorm"):
            module.weight.data -= 1


def halves_for_gates(model: Any) -> None:
    """Queries in the first half of q_proj's rows and gates in the second, where heads take turns."""
    for attention in each(model, "self_attn"):
        for tensor in (attention.q_proj.weight, attention.q_proj.bias):
            if tensor is not None:
                halves = tensor.data.reshape(2, -1, attention.head_dim, *tensor.shape[1:])
                tensor.data = halves.transpose(0, 1).reshape(tensor.shape)


def no_gate(model: Any) -> None:
    """Attention's outputs pass whole."""
    for attention in each(model, "self_attn"):
        attention.o_proj.register_forward_pre_hook(
            lambda module, inputs, attention=attention: (inputs[0] / torch.sigmoid(attention.last_gate),)
        )
        attention.q_proj.register_forward_hook(
            lambda module, inputs, output, attention=attention: setattr(
                attention,
                "last_gate",
                output.unflatten(-1, (-1, 2, attention.head_dim))[..., 1, :].flatten(-2),
            )
        )


def rotate_all(model: Any) -> None:
    """Frequencies of the whole head."""
    config, rope = model.config, model.model.rotary_emb
    theta = config.rope_parameters["rope_theta"]
    dim = config.head_dim
    rope.inv_freq = 1.0 / theta ** (torch.arange(0, dim, 2, dtype=torch.float) / dim)


def is_qwen3_5(config: Any) -> bool:
    return config.model_type in ("qwen3_5_text", "qwen3_5_moe_text")


def is_hybrid(config: Any) -> bool:
    """Qwen3.5, and Qwen3-Next, whose delta nets have other tensors."""
    return is_qwen3_5(config) or config.model_type == "qwen3_next"


def rotates_a_part(config: Any) -> bool:
    return is_hybrid(config) and config.rope_parameters["partial_rotary_factor"] != 1


def shares_key_heads(config: Any) -> bool:
    return is_qwen3_5(config) and 1 < config.linear_num_key_heads < config.linear_num_value_heads


def unnormed(x: Tensor, dim: int = -1, eps: float = 1e-6) -> Tensor:
    return x


FAULTS = [
    Fault("norms without the added one", edit(plain_norms), if_config(is_hybrid)),
    Fault("attention's output not gated", edit(no_gate), if_config(is_hybrid)),
    Fault("gates behind all queries", edit(halves_for_gates), if_config(is_hybrid)),
    Fault("all of a head rotated", edit(rotate_all), if_config(rotates_a_part)),
    Fault("delta net's taps in reverse", on_mixers(turn_taps), if_config(is_hybrid)),
    Fault("delta net's oldest tap ignored", on_mixers(forget_oldest), if_config(is_hybrid)),
    Fault("SiLU after the convolution missing", on_mixers(lambda mixer: setattr(mixer, "activation", None)), if_config(is_hybrid)),
    Fault("delta net's queries and keys exchanged", on_mixers(swap_query_and_key), if_config(is_qwen3_5)),
    Fault("delta net's key heads tiled", on_mixers(tile_key_heads), if_config(shares_key_heads)),
    Fault("queries and keys not of length 1", replace("l2norm", unnormed), if_config(is_hybrid)),
    Fault("a and b exchanged", exchange("in_proj_a", "in_proj_b"), if_config(is_qwen3_5)),
    Fault("dt_bias missing", scale("dt_bias", 0.0), if_config(is_hybrid)),
    Fault("A_log taken as A", on_mixers(lambda mixer: mixer.A_log.data.copy_(mixer.A_log.data.abs().log())), if_config(is_hybrid)),
    Fault("delta net's norm missing", on_mixers(lambda mixer: mixer.norm.weight.data.fill_(1)), if_config(is_hybrid)),
    Fault("delta net not gated", on_mixers(lambda mixer: mixer.in_proj_z.weight.data.fill_(0)), if_config(is_qwen3_5)),
]
