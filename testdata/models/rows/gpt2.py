"""GPT-2."""

import math
from typing import Any

import torch
from torch import Generator, Size, Tensor, nn

from faults import Fault, each, edit, if_config, without

GPT2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 320, "n_positions": 128, "n_ctx": 128,
        "bos_token_id": None, "eos_token_id": 299, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}  # fmt: skip


def draw(name: str, shape: Size, config: Any, random: Generator) -> Tensor | None:
    """Projections have their inputs first."""
    normal = torch.randn(shape, generator=random)
    if ".ln_" in name and name.endswith("weight"):
        tied_head = name.endswith("ln_f.weight") and config.tie_word_embeddings
        return (0.4 if tied_head else 1.3) * (0.4 + 1.2 * torch.rand(shape, generator=random))
    if name.endswith(("wte.weight", "wpe.weight")):
        return normal
    if name.endswith(".weight") and "lm_head" not in name:
        gain = 1.3 if "c_attn" in name and config.scale_attn_weights else 0.6 if "c_attn" in name else 1.5 if "c_fc" in name else 1.0
        return gain * normal / math.sqrt(shape[0])
    return None


def as_first_published(weights: dict[str, Tensor], random: Generator) -> dict[str, Tensor]:
    """The names of openai-community/gpt2, with the causal masks that it stores."""
    names = {name.removeprefix("transformer."): values for name, values in weights.items()}
    layers = 1 + max(int(name.split(".")[1]) for name in names if name.startswith("h."))
    masks = {f"h.{layer}.attn.bias": torch.tril(torch.ones(120, 120)).to(torch.uint8)[None, None] for layer in range(layers)}
    return names | masks


MODELS = {
    "gpt2-tiny": {  # as the 124M: four times the width in the feed-forward blocks by default, tied by default
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**GPT2, "n_embd": 48, "n_layer": 3, "n_head": 4, "activation_function": "gelu_new",
                   "layer_norm_epsilon": 0.02},
    },
    "gpt2-tiny-by-layer": {  # scores divided by the number of the layer, ReLU, a given width that is odd, untied
        "dtype": "float16", "shards": 2, "draw": draw,
        "config": {**GPT2, "n_embd": 60, "n_layer": 3, "n_head": 6, "n_inner": 75, "activation_function": "relu",
                   "layer_norm_epsilon": 0.03, "scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True,
                   "tie_word_embeddings": False},
    },
    "gpt2-tiny-unscaled": {  # names and masks as first published; scores as they are, GELU without approximation, one head, newer names of the sizes, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tensors": as_first_published,
        "config": {**{key: value for key, value in GPT2.items() if key not in ("n_positions", "n_ctx")}, "hidden_size": 32,
                   "num_hidden_layers": 4, "num_attention_heads": 1, "max_position_embeddings": 120, "n_inner": 96,
                   "activation_function": "gelu", "layer_norm_epsilon": 0.02, "scale_attn_weights": False,
                   "tie_word_embeddings": True},
    },
}  # fmt: skip


def of_gpt2(config: Any) -> bool:
    return config.model_type == "gpt2"


def turn_scale(by: Any) -> Any:
    def change(model: Any) -> None:
        for attention in each(model, "attn"):
            attention.scaling *= by(attention)

    return edit(change)


def swap_parts(model: Any) -> None:
    """Keys and queries in each other's place."""
    for projection in each(model, "c_attn"):
        q, k, v = projection.weight.data.chunk(3, 1)
        projection.weight.data = torch.cat((k, q, v), 1)


def use_silu(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.act = nn.SiLU()


def zero_biases(*parts: str) -> Any:
    def change(model: Any) -> None:
        for part in parts:
            for module in each(model, part):
                module.bias.data.zero_()

    return edit(change)


FAULTS = [
    Fault("no positions", edit(lambda model: model.transformer.wpe.weight.data.zero_()), if_config(of_gpt2)),
    Fault("positions one later", edit(lambda model: model.transformer.wpe.weight.data.copy_(model.transformer.wpe.weight.data.roll(-1, 0))), if_config(of_gpt2)),
    Fault("GPT-2's scores 5 % too large", turn_scale(lambda _: 1.05), if_config(of_gpt2)),
    Fault("scores not divided by the layer's number", turn_scale(lambda attention: attention.layer_idx + 1), if_config(lambda config: getattr(config, "scale_attn_by_inverse_layer_idx", False))),
    Fault("queries and keys exchanged", edit(swap_parts), if_config(lambda config: of_gpt2(config) and config.n_head > 0)),
    Fault("GPT-2's output projection transposed", edit(lambda model: [setattr(a.c_proj.weight, "data", a.c_proj.weight.data.T.contiguous()) for a in each(model, "attn")]), if_config(of_gpt2)),
    Fault("SiLU in place of GPT-2's activation", edit(use_silu), if_config(of_gpt2)),
    *(Fault(f"{part} bias missing, in GPT-2", zero_biases(part), if_config(of_gpt2)) for part in ("c_attn", "c_fc", "c_proj", "ln_1", "ln_2", "ln_f")),
    *(Fault(f"{part} missing, in GPT-2", without(part), if_config(of_gpt2)) for part in ("ln_1", "ln_2", "ln_f")),
]  # fmt: skip
