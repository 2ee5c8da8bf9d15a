"""StarCoder2."""

import math
from typing import Any

import torch
from torch import Generator, Size, Tensor, nn

from faults import Fault, each, edit, if_bias, if_config
from rows._common import COMMON

STARCODER2 = {"architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2"}
OWN = {key: value for key, value in COMMON.items() if key not in ("rms_norm_eps", "hidden_act")}


def draw(name: str, shape: Size, config: Any, random: Generator) -> Tensor | None:
    """Blocks whose activation is far from linear."""
    if "c_fc.weight" in name:
        return 1.5 * torch.randn(shape, generator=random) / math.sqrt(shape[-1])
    return None


MODELS = {
    "starcoder2-tiny": {  # as 3B: a window, biases, tied; 6 query heads a KV head
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**STARCODER2, "hidden_size": 48, "intermediate_size": 192, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "num_key_value_heads": 1, "hidden_act": "gelu_pytorch_tanh",
                   "rope_theta": 999999.4, "sliding_window": 19, "use_bias": True, "norm_epsilon": 0.02,
                   "tie_word_embeddings": True, **OWN},
    },
    "starcoder2-tiny-plain": {  # no biases, no window, linear RoPE, a KV head for each query head, untied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**STARCODER2, "hidden_size": 64, "intermediate_size": 100, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "hidden_act": "gelu_pytorch_tanh",
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 20000.0, "factor": 3.0},
                   "sliding_window": None, "use_bias": False, "norm_epsilon": 0.03, "tie_word_embeddings": False, **OWN},
    },
    "starcoder2-tiny-relu2": {  # squared ReLU, an odd width, the number of KV heads left out, biases and tying by default
        "dtype": "float16", "shards": 2, "draw": draw,
        "config": {**STARCODER2, "hidden_size": 60, "intermediate_size": 75, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "hidden_act": "relu2", "rope_theta": 8000.0, "norm_epsilon": 0.02, **OWN},
    },
}  # fmt: skip


def of_starcoder(config: Any) -> bool:
    return config.model_type == "starcoder2"


def zero_biases(*parts: str) -> Any:
    def change(model: Any) -> None:
        for part in parts:
            for module in each(model, part):
                module.bias.data.zero_()

    return change


def keep_means(model: Any) -> None:
    """RMS norms in place of LayerNorms."""
    for norm in [m for m in model.modules() if isinstance(m, nn.LayerNorm)]:

        def forward(x: Tensor, norm: Any = norm) -> Tensor:
            return x * (x.pow(2).mean(-1, keepdim=True) + norm.eps).rsqrt() * norm.weight + norm.bias

        norm.forward = forward


def use_silu(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.act = nn.SiLU()


NORMS = ("input_layernorm", "post_attention_layernorm", "norm")
FAULTS = [
    Fault("means are not taken away", edit(keep_means), if_config(of_starcoder)),
    Fault("norm biases missing", edit(zero_biases(*NORMS)), if_config(of_starcoder)),
    Fault("c_fc bias missing", edit(zero_biases("c_fc")), if_bias("c_fc")),
    Fault("c_proj bias missing", edit(zero_biases("c_proj")), if_bias("c_proj")),
    Fault("SiLU in place of the activation", edit(use_silu), if_config(of_starcoder)),
]
