"""Weights and faults of Mamba-2 layers, whatever the family calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from faults import Fault, edit


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    """Heads that forget slowly, fast and hardly at all; inputs that pass beside the states."""
    if name.endswith("A_log"):
        return torch.log(0.05 + 1.5 * torch.rand(shape, generator=random))
    if name.endswith("dt_bias"):
        return -2.5 + 3.0 * torch.rand(shape, generator=random)
    if name.endswith(".D"):
        return 0.3 + torch.rand(shape, generator=random)
    if name.endswith("conv1d.weight"):
        return 0.6 * torch.randn(shape, generator=random)
    return None


def mixers(model: Any) -> list[Any]:
    return [m for m in model.modules() if hasattr(m, "A_log") and hasattr(m, "D")]


def on_mixers(change: Callable[[Any], object]) -> Callable[[Any], Any]:
    def on_model(model: Any) -> None:
        for mixer in mixers(model):
            change(mixer)

    return edit(on_model)


def is_mamba2(model: Any) -> bool:
    return bool(mixers(model))


def has_groups(model: Any) -> bool:
    return any(1 < m.n_groups < m.num_heads for m in mixers(model))


def has_conv_bias(model: Any) -> bool:
    return any(m.conv1d.bias is not None for m in mixers(model))


def turn_taps(mixer: Any) -> None:
    mixer.conv1d.weight.data = mixer.conv1d.weight.data.flip(-1)


def forget_oldest(mixer: Any) -> None:
    mixer.conv1d.weight.data[..., 0] = 0


def parts(mixer: Any, tensor: Tensor, of_input: bool) -> list[Tensor]:
    """Gates, inputs, B, C and time steps of the projection, or those of them that are convolved."""
    inner, shared = mixer.intermediate_size, mixer.n_groups * mixer.ssm_state_size
    sizes = [inner, inner, shared, shared, mixer.num_heads] if of_input else [inner, shared, shared]
    return list(tensor.split(sizes))


def reorder(order: list[int], convolved: list[int]) -> Callable[[Any], None]:
    def change(mixer: Any) -> None:
        mixer.in_proj.weight.data = torch.cat([parts(mixer, mixer.in_proj.weight.data, True)[i] for i in order])
        for tensor in (mixer.conv1d.weight, mixer.conv1d.bias):
            if tensor is not None:
                tensor.data = torch.cat([parts(mixer, tensor.data, False)[i] for i in convolved])

    return change


def tile_groups(mixer: Any) -> None:
    """Head i reads group i % groups: the same as permuted B and C of permuted heads, so heads are permuted instead."""
    heads, groups = mixer.num_heads, mixer.n_groups
    order = torch.arange(heads).reshape(groups, heads // groups).T.flatten()

    def of_heads(tensor: Tensor) -> Tensor:
        return tensor.reshape(heads, -1, *tensor.shape[1:])[order].reshape(tensor.shape)

    z, x, b, c, dt = parts(mixer, mixer.in_proj.weight.data, True)
    mixer.in_proj.weight.data = torch.cat((of_heads(z), of_heads(x), b, c, of_heads(dt)))
    for tensor in (mixer.conv1d.weight, mixer.conv1d.bias):
        if tensor is not None:
            x, b, c = parts(mixer, tensor.data, False)
            tensor.data = torch.cat((of_heads(x), b, c))
    for parameter in (mixer.A_log, mixer.dt_bias, mixer.D, mixer.norm.weight):
        parameter.data = of_heads(parameter.data)
    out = mixer.out_proj.weight.data
    mixer.out_proj.weight.data = of_heads(out.T).T.contiguous()


def whole_norm(mixer: Any) -> None:
    mixer.norm.group_size = mixer.intermediate_size


def norm_first(mixer: Any) -> None:
    """`norm(y) * silu(z)`."""
    norm = mixer.norm
    after = type(norm).forward

    def forward(y: Tensor, gate: Tensor | None = None) -> Tensor:
        return after(norm, y) * torch.nn.functional.silu(gate)

    norm.forward = forward


def ungated(mixer: Any) -> None:
    norm = mixer.norm
    after = type(norm).forward
    norm.forward = lambda y, gate=None: after(norm, y)


def no_bias(mixer: Any) -> None:
    if mixer.conv1d.bias is not None:
        mixer.conv1d.bias.data.zero_()


FAULTS = [
    Fault("Mamba-2's taps in reverse", on_mixers(turn_taps), is_mamba2),
    Fault("Mamba-2's oldest tap ignored", on_mixers(forget_oldest), is_mamba2),
    Fault("Mamba-2's convolution without its bias", on_mixers(no_bias), has_conv_bias),
    Fault("Mamba-2's B and C exchanged", on_mixers(reorder([0, 1, 3, 2, 4], [0, 2, 1])), is_mamba2),
    Fault("Mamba-2's gates and inputs exchanged", on_mixers(reorder([1, 0, 2, 3, 4], [0, 1, 2])), is_mamba2),
    Fault("Mamba-2's groups tiled", on_mixers(tile_groups), has_groups),
    Fault("Mamba-2's dt_bias missing", on_mixers(lambda m: m.dt_bias.data.zero_()), is_mamba2),
    Fault("Mamba-2's A_log taken as A", on_mixers(lambda m: m.A_log.data.copy_(m.A_log.data.abs().log())), is_mamba2),
    Fault("Mamba-2's inputs do not pass beside the states", on_mixers(lambda m: m.D.data.zero_()), is_mamba2),
    Fault("Mamba-2's norm missing", on_mixers(lambda m: m.norm.weight.data.fill_(1)), is_mamba2),
    Fault("Mamba-2's norm over whole rows", on_mixers(whole_norm), has_groups),
    Fault("Mamba-2's norm before the gate", on_mixers(norm_first), is_mamba2),
    Fault("Mamba-2 not gated", on_mixers(ungated), is_mamba2),
]  # fmt: skip
