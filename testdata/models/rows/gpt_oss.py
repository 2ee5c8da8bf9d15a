"""GPT-OSS: sinks, experts with biases and a clamped gate, in MXFP4 as it was published and in bfloat16 as it is fine-tuned."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from faults import Fault, each, edit, if_config
from rows._common import COMMON

GPT_OSS = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss"}


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    """Sinks that take from nearly nothing to most of a row's attention; gates that the limits clamp now and then."""
    normal = torch.randn(shape, generator=random)
    if name.endswith("sinks"):
        return 1.0 + 1.5 * normal
    if name.endswith("proj_bias"):
        return 0.5 * normal
    if name.endswith("router.weight"):
        return 2.0 * normal / math.sqrt(shape[-1])
    if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
        return normal / math.sqrt(shape[1])  # [experts, in, out]
    return None


VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def mxfp4(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
    """The experts' matrices as blocks of 32 codes, two in a byte, and their exponents, by rows of outputs."""
    published = {}
    for name, values in weights.items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            published[name] = values
            continue
        rows = values.float().mT.contiguous()  # [experts, out, in]
        blocks = rows.unflatten(-1, (-1, 32))
        exponents = blocks.abs().amax(-1).log2().floor() - 2
        scaled = blocks / exponents.exp2()[..., None]
        codes = (scaled.abs()[..., None] - VALUES).abs().argmin(-1) + 8 * (scaled < 0)
        published[f"{name}_blocks"] = (codes[..., ::2] + 16 * codes[..., 1::2]).to(torch.uint8).contiguous()
        published[f"{name}_scales"] = (exponents + 127).to(torch.uint8).contiguous()
    return published


def set_on(part: str, **values: Any) -> Any:
    def change(model: Any) -> None:
        for module in each(model, part):
            for key, value in values.items():
                setattr(module, key, value)

    return edit(change)


def change_data(part: str, *names: str, by: Any) -> Any:
    def change(model: Any) -> None:
        for module in each(model, part):
            for name in names:
                getattr(module, name).data = by(getattr(module, name).data)

    return edit(change)


def blocked(fused: Tensor) -> Tensor:
    """Gate and up as they would be were they not interleaved."""
    return torch.cat((fused[..., ::2], fused[..., 1::2]), -1)


def gate_plain(model: Any) -> None:
    """Without the one that is added to `up`."""
    for experts in each(model, "experts"):
        experts._apply_gate = lambda fused, old=experts._apply_gate: old(
            torch.stack((fused[..., ::2], fused[..., 1::2].clamp(-experts.limit, experts.limit) - 1), -1).flatten(-2)
        )


def shares_of_all(model: Any) -> None:
    """Shares from a softmax over all experts, not over the chosen."""
    for router in each(model, "router"):
        def forward(x: Tensor, router: Any = router) -> tuple[Tensor, Tensor, Tensor]:
            logits = torch.nn.functional.linear(x, router.weight, router.bias)
            shares, chosen = logits.softmax(-1).topk(router.top_k, -1)
            return logits, shares, chosen

        router.forward = forward


gpt_oss = if_config(lambda config: config.model_type == "gpt_oss")
FAULTS = [
    Fault("sinks missing", change_data("self_attn", "sinks", by=lambda sinks: torch.full_like(sinks, -1e9)), gpt_oss),
    Fault("sinks of the next head", change_data("self_attn", "sinks", by=lambda sinks: sinks.roll(1)), gpt_oss),
    Fault("gate not clamped", set_on("experts", limit=1e9), gpt_oss),
    Fault("gate's slope 1", set_on("experts", alpha=1.0), gpt_oss),
    Fault("up without the one", edit(gate_plain), gpt_oss),
    Fault("gate and up not interleaved",
          change_data("experts", "gate_up_proj", "gate_up_proj_bias", by=blocked), gpt_oss),
    Fault("gate and up bias missing", change_data("experts", "gate_up_proj_bias", by=torch.zeros_like), gpt_oss),
    Fault("down bias missing", change_data("experts", "down_proj_bias", by=torch.zeros_like), gpt_oss),
    Fault("router bias missing", change_data("router", "bias", by=torch.zeros_like), gpt_oss),
    Fault("shares of all experts", edit(shares_of_all), gpt_oss),
]  # fmt: skip
MODELS = {
    "gpt-oss-tiny": {  # as published: MXFP4, 8 query heads a KV head, YaRN that does not truncate
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": mxfp4,
        "config": {**GPT_OSS, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": False,
                   "attention_bias": True, "num_local_experts": 8, "num_experts_per_tok": 4, "experts_per_token": 4,
                   "initial_context_length": 16, "sliding_window": 12, "swiglu_limit": 1.5,
                   "layer_types": ["sliding_attention", "full_attention"], "rope_theta": 150000,
                   "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 4.0, "beta_slow": 1.0,
                                    "truncate": False, "original_max_position_embeddings": 16},
                   "quantization_config": {"quant_method": "mxfp4",
                                           "modules_to_not_convert": ["model.layers.*.self_attn",
                                                                      "model.layers.*.mlp.router",
                                                                      "model.embed_tokens", "lm_head"]}, **COMMON},
    },
    "gpt-oss-tiny-bf16": {  # as fine-tuned: transposed bfloat16, a query head a KV head, tied, windows by default, YaRN that truncates
        "dtype": "bfloat16", "shards": 2, "draw": draw,
        "config": {**GPT_OSS, "hidden_size": 32, "intermediate_size": 16, "num_hidden_layers": 3,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 32, "tie_word_embeddings": True,
                   "attention_bias": True, "num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": 7,
                   "swiglu_alpha": 1.3, "swiglu_limit": 1.0,
                   "rope_parameters": {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0, "beta_fast": 8.0,
                                       "beta_slow": 1.0, "truncate": True,
                                       "original_max_position_embeddings": 32}, **COMMON},
    },
    "gpt-oss-tiny-odd": {  # 3 of 7 experts of 20, 3 query heads a KV head, one layer of three slides, no scaling of RoPE, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**GPT_OSS, "hidden_size": 40, "intermediate_size": 20, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 12, "tie_word_embeddings": False,
                   "attention_bias": True, "num_local_experts": 7, "num_experts_per_tok": 3, "sliding_window": 14,
                   "swiglu_limit": 2.5, "layer_types": ["full_attention", "full_attention", "sliding_attention"],
                   "rope_parameters": {"rope_type": "default", "rope_theta": 2500.0}, **COMMON},
    },
}  # fmt: skip
