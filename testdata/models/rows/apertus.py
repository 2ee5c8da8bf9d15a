"""Apertus."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Size, Tensor

from faults import Fault, each, edit, if_config, if_part, without
from rows._common import COMMON

APERTUS = {"architectures": ["ApertusForCausalLM"], "model_type": "apertus", **COMMON}


def draw(name: str, shape: Size, config: Any, random: Generator) -> Tensor | None:
    """Activations that differ from layer to layer, with a limit that can be seen."""
    if name.endswith("act_fn.eps"):
        return -0.02 - 0.05 * torch.rand(shape, generator=random)
    if name.endswith("act_fn.beta"):
        return 0.3 + 0.5 * torch.rand(shape, generator=random)
    if "act_fn.alpha" in name:
        return 0.5 * torch.randn(shape, generator=random)
    if "up_proj" in name:
        return 0.9 * torch.randn(shape, generator=random) / math.sqrt(shape[-1])
    return None


MODELS = {
    "apertus-tiny": {  # as 8B: xIELU and llama3 RoPE; 4 query heads a KV head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**APERTUS, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "tie_word_embeddings": False, "hidden_act": "xielu",
                   "rope_theta": 12000000.0,
                   "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 64}},
    },
    "apertus-tiny-bias": {  # biases of attention, RoPE without scaling, a KV head for each query head, an odd width, untied
        "dtype": "bfloat16", "shards": 2, "draw": draw,
        "config": {**APERTUS, "hidden_size": 48, "intermediate_size": 75, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "tie_word_embeddings": False, "hidden_act": "xielu",
                   "attention_bias": True, "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}},
    },
    "apertus-tiny-relu2": {  # squared ReLU, YaRN, 3 query heads a KV head, tied
        "dtype": "float16", "shards": 1, "draw": draw,
        "config": {**APERTUS, "hidden_size": 60, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 2, "tie_word_embeddings": True, "hidden_act": "relu2",
                   "rope_theta": 4000.0, "rope_scaling": {"type": "yarn", "factor": 3.0, "original_max_position_embeddings": 40}},
    },
}  # fmt: skip


def shifted(part: str, by: float) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for act in each(model, "act_fn"):
            getattr(act, part).data += by

    return change


def without_limit(model: Any) -> None:
    for act in each(model, "act_fn"):
        act.eps.fill_(-1e-6)


def has_xielu(config: Any) -> bool:
    return config.model_type == "apertus" and config.hidden_act == "xielu"


FAULTS = [
    *(Fault(f"{part} missing", without(part), if_part(part)) for part in ("attention_layernorm", "feedforward_layernorm")),
    *(Fault(f"xIELU's {part} off by 0.1", edit(shifted(part, 0.1)), if_config(has_xielu)) for part in ("alpha_p", "alpha_n", "beta")),
    Fault("xIELU's eps by default", edit(without_limit), if_config(has_xielu)),
]
