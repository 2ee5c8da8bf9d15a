"""Gemma 2, 3, 3n and 4: their tiny checkpoints, and the mistakes that only they allow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from faults import Fault, code_of, each, edit, if_config, if_part, without
from rows._common import COMMON

S, F = "sliding_attention", "full_attention"
BASE = {**COMMON, "hidden_activation": "gelu_pytorch_tanh"}
del BASE["hidden_act"]
GEMMA1 = {"architectures": ["GemmaForCausalLM"], "model_type": "gemma", **COMMON}
GEMMA2 = {"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", **BASE}
GEMMA3 = {"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", **BASE}
GEMMA3N = {"architectures": ["Gemma3nForCausalLM"], "model_type": "gemma3n_text", **BASE}
GEMMA4 = {"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", **BASE}


def draw(name: str, shape: torch.Size, config: Any, random: torch.Generator) -> Tensor | None:
    """Weights under which every part matters, where the usual way does not do."""

    def uniform() -> Tensor:
        return 0.4 + 1.2 * torch.rand(shape, generator=random)

    def normal(by: float) -> Tensor:
        return by * torch.randn(shape, generator=random)

    kind = config.model_type
    if name.endswith("norm.weight"):
        if kind in ("gemma3n_text", "gemma4_text") and ("q_norm" in name or "k_norm" in name):
            return 0.5 * uniform()  # scores are not divided by the root of the width
        around = 2.0 if name == "model.norm.weight" and config.tie_word_embeddings else 1.3
        return around * uniform() - (1 if kind in ("gemma", "gemma2", "gemma3_text") else 0)
    if "embed_tokens" in name:  # multiplied by the root of its width when it is looked up
        width = config.hidden_size_per_layer_input if "per_layer" in name else shape[-1]
        return normal(width**-0.5)
    if name.endswith("modality_router.weight"):  # its input is divided by its width
        return normal(0.5 * shape[-1] ** 0.5)
    if name.endswith(("layer_scalar", "correct_output_scale", "layernorm_1.weight", "layernorm_2.weight", "per_expert_scale")):
        return uniform()
    if name.endswith("router.scale"):  # its input is divided by the root of its width
        return 3 * shape[-1] ** 0.5 * uniform()
    if name.endswith("router.proj.weight"):
        return normal(shape[-1] ** -0.5)
    if name.endswith("coefs.weight"):
        return normal(0.25)
    return None


def inside(prefix: str, *towers: str) -> Callable[[dict[str, Tensor], torch.Generator], dict[str, Tensor]]:
    """The layout of a checkpoint that can do more than text: `prefix` in place of `model.`, and tensors of other parts."""

    def tensors(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
        renamed = {prefix + name.removeprefix("model."): weight for name, weight in weights.items()}
        dtype = next(iter(weights.values())).dtype
        return renamed | {tower: torch.randn(3, 5, generator=random).to(dtype) for tower in towers}

    return tensors


def with_unread(shared: range, keys: int, hidden: int) -> Callable[[dict[str, Tensor], torch.Generator], dict[str, Tensor]]:
    """Published files hold projections to keys and values for the layers that share them, which nobody reads."""

    def tensors(weights: dict[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
        dtype = next(iter(weights.values())).dtype
        names = [f"model.layers.{layer}.self_attn.{part}_proj.weight" for layer in shared for part in "kv"]
        return weights | {name: torch.randn(keys, hidden, generator=random).to(dtype) for name in names}

    return tensors


def per_layer_rows(padding: int, model: Any, count: int) -> dict[str, Tensor]:
    """Rows from outside, images and audio, have the per-layer embedding of one token of the vocabulary."""
    return {"per_layer_inputs": model.model.get_per_layer_inputs(torch.full((1, count), padding))}


def norms(model: Any) -> list[Any]:
    return [m for m in model.model.modules() if type(m).__name__.endswith("RMSNorm") and hasattr(m, "weight")]


def of(*types: str) -> Callable[[Any], bool]:
    return if_config(lambda config: config.model_type in types)


def drop_offset(model: Any) -> None:
    for norm in norms(model):
        norm.weight.data -= 1


def no_embedding_scale(model: Any) -> None:
    model.model.embed_tokens.embed_scale.fill_(1.0)


def no_per_layer_scale(model: Any) -> None:
    model.model.embed_tokens_per_layer.embed_scale.fill_(1.0)


def set_config(**values: Any) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for key, value in values.items():
            setattr(model.config, key, value)

    return change


def no_score_cap(model: Any) -> None:
    for attention in each(model, "self_attn"):
        attention.attn_logit_softcapping = None


def other_masks(model: Any) -> AbstractContextManager[None]:
    """Sliding layers see everything and the others slide; each keeps its base of RoPE."""
    code = code_of(model)
    full, sliding = code.create_causal_mask, code.create_sliding_window_causal_mask
    return mock.patch.multiple(code, create_causal_mask=sliding, create_sliding_window_causal_mask=full)


def one_base(of_kind: str) -> Callable[[Any], None]:
    """All layers turn by the frequencies of one kind."""

    def change(model: Any) -> None:
        rope = model.model.rotary_emb
        other = F if of_kind == S else S
        setattr(rope, f"{other}_inv_freq", getattr(rope, f"{of_kind}_inv_freq").clone())

    return change


def scale_by_head_dim(model: Any) -> None:
    for attention in each(model, "self_attn"):
        attention.scaling = attention.head_dim**-0.5


def silu(model: Any) -> None:
    for module in model.modules():
        if hasattr(module, "act_fn"):
            module.act_fn = nn.SiLU()


def identity_predictions(model: Any) -> None:
    for altup in each(model, "altup"):
        altup.prediction_coefs.weight.data.zero_()


def plain_corrections(model: Any) -> None:
    for altup in each(model, "altup"):
        altup.correction_coefs.weight.data.zero_()


def untransposed_predictions(model: Any) -> None:
    for altup in each(model, "altup"):
        n = altup.config.altup_num_inputs
        weight = altup.prediction_coefs.weight.data
        weight.copy_(weight.reshape(n, n, n).transpose(0, 1).reshape(n * n, n))


def no_laurel(model: Any) -> None:
    for laurel in each(model, "laurel"):
        laurel.forward = lambda x: 0 * x


def laurel_without_residual(model: Any) -> None:
    for laurel in each(model, "laurel"):
        laurel.forward = lambda x, m=laurel: m.post_laurel_norm(m.linear_right(m.linear_left(x)))


def no_sparsity(model: Any) -> None:
    for mlp in each(model, "mlp"):
        mlp.activation_sparsity = 0.0


def unbiased_deviation(model: Any) -> None:
    """The sample's standard deviation in place of the population's."""
    for mlp in each(model, "mlp"):
        quantile = torch.distributions.Normal(0, 1).icdf(torch.tensor(max(mlp.activation_sparsity, 1e-9)))
        mlp._gaussian_topk = lambda x, q=quantile: nn.functional.relu(
            x - x.mean(-1, keepdim=True) - q * x.std(-1, keepdim=True)
        )


def no_per_layer_input(model: Any) -> None:
    for norm in each(model, "post_per_layer_input_norm"):
        norm.weight.data.zero_()


def last_row_for_unknown_ids(model: Any) -> AbstractContextManager[None]:
    """Ids beyond the table of per-layer embeddings are looked up at its end, not at its beginning."""
    right, known = type(model.model).get_per_layer_inputs, model.config.vocab_size_per_layer_input
    return mock.patch.object(type(model.model), "get_per_layer_inputs", lambda m, ids: right(m, ids.clamp(max=known - 1)))


def no_token_part(model: Any) -> None:
    model.model.embed_tokens_per_layer.weight.data.zero_()


def no_context_part(model: Any) -> None:
    model.model.per_layer_projection_norm.weight.data.zero_()


def no_value_norm(model: Any) -> None:
    for attention in each(model, "self_attn"):
        if hasattr(attention, "v_norm"):
            attention.v_norm = nn.Identity()


def no_layer_scalar(model: Any) -> None:
    for layer in model.model.layers:
        layer.layer_scalar.fill_(1.0)


def no_experts(model: Any) -> None:
    for norm in each(model, "post_feedforward_layernorm_2"):
        norm.weight.data.zero_()


def no_gated_block(model: Any) -> None:
    for norm in each(model, "post_feedforward_layernorm_1"):
        norm.weight.data.zero_()


def set_routers(**values: float) -> Callable[[Any], None]:
    """Ones in place of a vector of the routers."""

    def change(model: Any) -> None:
        for router in each(model, "router"):
            for name, value in values.items():
                getattr(router, name).data.fill_(value)

    return change


def scaled_by_width(model: Any) -> None:
    """What the router reads is not divided by the root of its width."""
    for router in each(model, "router"):
        router.scalar_root_size = 1.0


def router_without_norm(model: Any) -> None:
    for router in each(model, "router"):
        router.norm = nn.Identity()


def router_reads_normed(model: Any) -> None:
    """The router reads what the gated block reads."""
    for layer in model.model.layers:
        layer.router.norm = layer.pre_feedforward_layernorm


def more_experts(by: int) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for router in each(model, "router"):
            router.config = type("Config", (), {"top_k_experts": router.config.top_k_experts + by})()

    return change


def swap_halves(model: Any) -> None:
    for experts in each(model, "experts"):
        weight = experts.gate_up_proj.data
        weight.copy_(weight.roll(weight.shape[1] // 2, dims=1))


def share_from_first(model: Any) -> None:
    """Shared layers read the keys and values of the first layer of their kind, not of the last before them."""
    layers = model.model.layers
    seen = set()
    for layer in layers:
        attention = layer.self_attn
        if not attention.is_kv_shared_layer:
            attention.store_full_length_kv = attention.layer_type not in seen
            seen.add(attention.layer_type)


def partial_frequencies(model: Any) -> None:
    """Powers by the rotated part of a head, as partial rotary has them, not by the whole head."""
    rope = model.model.rotary_emb
    rotated = rope.full_attention_inv_freq.count_nonzero().item()
    theta = model.model.config.rope_parameters[F]["rope_theta"]
    rope.full_attention_inv_freq[:rotated] = theta ** -(torch.arange(rotated) / rotated)


def ropes(model: Any) -> list[tuple[Tensor, float]]:
    """The frequencies of each kind of layer, and their base."""
    rope, by_type = model.model.rotary_emb, model.config.rope_parameters
    return [(getattr(rope, f"{kind}_inv_freq"), by_type[kind]["rope_theta"]) for kind in by_type]


def turn_thetas(by: float) -> Callable[[Any], None]:
    """Other bases of the frequencies, scaled as before."""

    def change(model: Any) -> None:
        for frequencies, _ in ropes(model):
            pairs = len(frequencies)
            frequencies.mul_(by ** -(torch.arange(pairs) / pairs))

    return change


def still(model: Any) -> None:
    for frequencies, _ in ropes(model):
        frequencies.zero_()


def unscaled_ropes(model: Any) -> None:
    for frequencies, theta in ropes(model):
        pairs = len(frequencies)
        frequencies.copy_(theta ** -(torch.arange(pairs) / pairs))


def other_correct_scale(model: Any) -> AbstractContextManager[None]:
    return mock.patch.object(model.config, "altup_correct_scale", not model.config.altup_correct_scale)


def two_ropes(model: Any) -> bool:
    return F in (getattr(model.config, "rope_parameters", None) or {})


def scaled_ropes(model: Any) -> bool:
    return two_ropes(model) and any(rope["rope_type"] != "default" for rope in model.config.rope_parameters.values())


def capped(key: str) -> Callable[[Any], bool]:
    return if_config(lambda config: getattr(config, key, None) is not None)


def sparse(model: Any) -> bool:
    return any(getattr(model.config, "activation_sparsity_pattern", ()))


GEMMA = of("gemma2", "gemma3_text", "gemma3n_text", "gemma4_text")
GEMMA_3N, GEMMA_4 = of("gemma3n_text"), of("gemma4_text")
PER_LAYER = if_part("post_per_layer_input_norm")
BESIDE = if_part("post_feedforward_layernorm_2")
# Scores are not divided by anything: no width can be taken for another.
UNSCALED = {"attention scale by hidden / heads"}
FAULTS = [
    Fault("norm without its offset of 1", edit(drop_offset), of("gemma", "gemma2", "gemma3_text")),
    Fault("embedding not scaled", edit(no_embedding_scale), of("gemma", "gemma2", "gemma3_text", "gemma3n_text", "gemma4_text")),
    Fault("scores not capped", edit(no_score_cap), lambda model: capped("attn_logit_softcapping")(model) and GEMMA(model)),
    Fault("logits not capped", edit(set_config(final_logit_softcapping=1e6)),
          lambda model: capped("final_logit_softcapping")(model) and GEMMA(model)),
    Fault("windows on the other layers", other_masks, GEMMA),
    Fault("RoPE off, of both kinds", edit(still), two_ropes),
    Fault("RoPE bases 10 % too large", edit(turn_thetas(1.1)), two_ropes),
    Fault("RoPE scaling of a kind ignored", edit(unscaled_ropes), scaled_ropes),
    Fault("local layers turn by the global base", edit(one_base(F)), of("gemma3_text", "gemma3n_text")),
    Fault("global layers turn by the local base", edit(one_base(S)), of("gemma3_text", "gemma3n_text")),
    Fault("proportional RoPE as partial", edit(partial_frequencies), GEMMA_4),
    Fault("scores by the head's width", edit(scale_by_head_dim),
          lambda model: GEMMA(model) and getattr(model.config, "query_pre_attn_scalar", None) != model.config.head_dim),
    Fault("pre-feed-forward norm missing", without("pre_feedforward_layernorm"), if_part("pre_feedforward_layernorm")),
    Fault("post-feed-forward norm missing", without("post_feedforward_layernorm"), GEMMA),
    Fault("SiLU in place of GELU", edit(silu), of("gemma", "gemma2", "gemma3_text", "gemma3n_text", "gemma4_text")),
    Fault("value norm missing", edit(no_value_norm), if_part("v_norm")),
    Fault("shared keys of the first layer of a kind", edit(share_from_first),
          if_config(lambda config: getattr(config, "num_kv_shared_layers", 0) > 0 and config.model_type.startswith("gemma"))),
    Fault("per-layer input missing", edit(no_per_layer_input), PER_LAYER),
    Fault("per-layer embedding missing", edit(no_token_part), PER_LAYER),
    Fault("per-layer embedding not scaled", edit(no_per_layer_scale), PER_LAYER),
    Fault("per-layer projection missing", edit(no_context_part), PER_LAYER),
    Fault("unknown ids at the end of the per-layer table", last_row_for_unknown_ids,
          lambda model: PER_LAYER(model) and model.config.vocab_size_per_layer_input < model.config.vocab_size),
    Fault("AltUp predicts its input", edit(identity_predictions), GEMMA_3N),
    Fault("AltUp predicts by transposed coefficients", edit(untransposed_predictions), GEMMA_3N),
    Fault("AltUp corrects all streams alike", edit(plain_corrections), GEMMA_3N),
    Fault("LAuReL missing", edit(no_laurel), GEMMA_3N),
    Fault("LAuReL without its residual", edit(laurel_without_residual), GEMMA_3N),
    Fault("activations not sparse", edit(no_sparsity), sparse),
    Fault("sparse by the sample's deviation", edit(unbiased_deviation), sparse),
    Fault("corrected stream scaled, or not, against the config", other_correct_scale, GEMMA_3N),
    Fault("layer scalar missing", edit(no_layer_scalar), GEMMA_4),
    Fault("experts missing", edit(no_experts), BESIDE),
    Fault("gated block beside experts missing", edit(no_gated_block), BESIDE),
    Fault("norm before experts missing", without("pre_feedforward_layernorm_2"), BESIDE),
    Fault("norm after experts missing", without("post_feedforward_layernorm_2"), BESIDE),
    Fault("norm after the gated block missing", without("post_feedforward_layernorm_1"), BESIDE),
    Fault("experts' factors missing", edit(set_routers(per_expert_scale=1.0)), BESIDE),
    Fault("router's scale missing", edit(set_routers(scale=32**0.5)), BESIDE),
    Fault("router's input not divided", edit(scaled_by_width), BESIDE),
    Fault("router's norm missing", edit(router_without_norm), BESIDE),
    Fault("router reads what the gated block reads", edit(router_reads_normed), BESIDE),
    Fault("one expert more beside the block", edit(more_experts(1)), BESIDE),
    Fault("one expert fewer beside the block", edit(more_experts(-1)), BESIDE),
    Fault("halves of experts beside the block swapped", edit(swap_halves), BESIDE),
]  # fmt: skip

MODELS: dict[str, dict[str, Any]] = {
    "gemma-tiny": {  # as 2B: one KV head, heads wider than hidden / heads, tied by default
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**GEMMA1, "hidden_size": 48, "intermediate_size": 160, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16, "rope_theta": 10000.0,
                   "hidden_act": "gelu_pytorch_tanh"},
    },
    "gemma-tiny-bias": {  # a KV head for each query head, biases, linear RoPE, ReLU, untied
        "dtype": "float16", "shards": 2, "draw": draw,
        "config": {**GEMMA1, "hidden_size": 60, "intermediate_size": 75, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 20, "tie_word_embeddings": False,
                   "attention_bias": True, "hidden_act": "relu",
                   "rope_parameters": {"rope_type": "linear", "rope_theta": 5000.0, "factor": 3.0}},
    },
    "gemma-tiny-legacy": {  # the first name of the activation, 5 query heads a KV head, YaRN, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**GEMMA1, "hidden_size": 40, "intermediate_size": 96, "num_hidden_layers": 3,
                   "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 12, "tie_word_embeddings": True,
                   "hidden_act": "gelu", "rope_theta": 3000.0,
                   "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}},
    },
    "gemma2-tiny": {  # both caps, every other layer slides, heads * head_dim wider than hidden, parity left to the default
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**GEMMA2, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 4,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "query_pre_attn_scalar": 24,
                   "sliding_window": 6, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 4.0,
                   "rope_theta": 2000.0, "attention_bias": False},
    },
    "gemma2-tiny-plain": {  # a KV head for each query head, no caps, untied, biases, the first and last layer slide
        "dtype": "bfloat16", "shards": 2, "draw": draw,
        "config": {**GEMMA2, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3,
                   "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32, "query_pre_attn_scalar": 10,
                   "sliding_window": 9, "attn_logit_softcapping": None, "final_logit_softcapping": None,
                   "tie_word_embeddings": False, "attention_bias": True, "layer_types": [S, F, S],
                   "rope_parameters": {"rope_type": "default", "rope_theta": 300.0}},
    },
    "gemma3-tiny": {  # as the small text models are written: pattern as a number, two bases, one KV head
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**GEMMA3, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 4,
                   "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16, "query_pre_attn_scalar": 24,
                   "sliding_window": 7, "sliding_window_pattern": 3, "rope_theta": 1000000.0,
                   "rope_local_base_freq": 10000.0, "rope_scaling": None, "attn_logit_softcapping": None,
                   "final_logit_softcapping": None, "attention_bias": False, "use_bidirectional_attention": False},
    },
    "gemma3-tiny-vision": {  # text inside a vision model, linear scaling of the full layers, newer spelling, logits capped
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "tensors": inside("language_model.model.", "vision_tower.post_layernorm.weight",
                          "multi_modal_projector.mm_input_projection_weight"),
        "config": {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "mm_tokens_per_image": 1,
                   "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 8, "intermediate_size": 8,
                                     "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 4, "patch_size": 4,
                                     "vision_use_head": False},
                   "text_config": {**GEMMA3, "hidden_size": 36, "intermediate_size": 80,
                                   "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 3,
                                   "head_dim": 12, "query_pre_attn_scalar": 12, "sliding_window": 5,
                                   "layer_types": [S, F, S], "attention_bias": True, "final_logit_softcapping": 5.0,
                                   "rope_parameters": {F: {"rope_type": "linear", "factor": 8.0, "rope_theta": 50000.0},
                                                       S: {"rope_type": "default", "rope_theta": 500.0}}}},
    },
    "gemma3n-tiny": {  # the last layers share keys and values, sparse first layers, a table of fewer ids than tokens
        "dtype": "bfloat16", "shards": 1, "draw": draw, "rows": partial(per_layer_rows, 0),
        "cannot_have": UNSCALED, "tensors": with_unread(range(3, 5), 32, 32),
        "config": {**GEMMA3N, "hidden_size": 32, "intermediate_size": [80, 96, 64, 64, 80],
                   "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
                   "sliding_window": 6, "layer_types": [S, F, S, S, F], "num_kv_shared_layers": 2,
                   "vocab_size_per_layer_input": 300, "hidden_size_per_layer_input": 8, "laurel_rank": 4,
                   "altup_num_inputs": 4, "altup_active_idx": 0, "altup_coef_clip": 120.0, "altup_correct_scale": True,
                   "activation_sparsity_pattern": [0.8, 0.4, 0.0, 0.0, 0.0], "final_logit_softcapping": 4.0,
                   "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": None},
    },
    "gemma3n-tiny-nested": {  # text inside a vision and audio model, another active stream, nothing shared, never sparse
        "dtype": "bfloat16", "shards": 1, "draw": draw, "rows": partial(per_layer_rows, 0), "cannot_have": UNSCALED,
        "tensors": inside("model.language_model.", "model.vision_tower.timm_model.conv_stem.conv.weight",
                          "model.audio_tower.conformer.0.norm.weight", "model.embed_vision.embedding.weight",
                          "model.embed_audio.embedding.weight"),
        "config": {"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n",
                   "text_config": {**GEMMA3N, "hidden_size": 48, "intermediate_size": 64,
                                   "num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 1,
                                   "head_dim": 16, "sliding_window": 9, "layer_types": [S, S, F],
                                   "num_kv_shared_layers": 0, "vocab_size_per_layer_input": 320,
                                   "hidden_size_per_layer_input": 12, "laurel_rank": 6, "altup_num_inputs": 2,
                                   "altup_active_idx": 1, "altup_correct_scale": False,
                                   "activation_sparsity_pattern": [0.0, 0.0, 0.0], "final_logit_softcapping": 3.0,
                                   "rope_parameters": {F: {"rope_type": "default", "rope_theta": 30000.0},
                                                       S: {"rope_type": "default", "rope_theta": 400.0}}}},
    },
    "gemma4-tiny": {  # per-layer inputs, wider global heads, proportional rope, shared keys and values, wide shared MLPs
        "dtype": "bfloat16", "shards": 1, "draw": draw, "rows": partial(per_layer_rows, COMMON["pad_token_id"]), "cannot_have": UNSCALED,
        "config": {**GEMMA4, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 6,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "global_head_dim": 16,
                   "num_global_key_value_heads": None, "attention_k_eq_v": False, "sliding_window": 6,
                   "layer_types": [S, S, F, S, S, F], "num_kv_shared_layers": 3, "use_double_wide_mlp": True,
                   "vocab_size_per_layer_input": 330, "hidden_size_per_layer_input": 8, "enable_moe_block": False,
                   "final_logit_softcapping": 4.0, "attention_bias": False, "use_bidirectional_attention": None,
                   "rope_parameters": {F: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000.0},
                                       S: {"rope_type": "default", "rope_theta": 10000.0}}},
    },
    "gemma4-tiny-experts": {  # experts beside each gated block, the wider heads of full layers, no per-layer inputs, untied
        "dtype": "bfloat16", "shards": 2, "draw": draw, "cannot_have": UNSCALED,
        "config": {**GEMMA4, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8, "global_head_dim": 16,
                   "num_global_key_value_heads": 2, "attention_k_eq_v": True, "sliding_window": 10,
                   "layer_types": [S, S, F], "num_kv_shared_layers": 0, "use_double_wide_mlp": False,
                   "hidden_size_per_layer_input": 0, "enable_moe_block": True, "num_experts": 6, "top_k_experts": 2,
                   "moe_intermediate_size": 16, "final_logit_softcapping": 6.0, "tie_word_embeddings": False,
                   "use_bidirectional_attention": None,
                   "rope_parameters": {F: {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 500.0},
                                       S: {"rope_type": "default", "rope_theta": 5000.0}}},
    },
    "gemma4-tiny-keys": {  # text inside a vision model, global layers whose keys are their values, no per-layer inputs
        "dtype": "bfloat16", "shards": 1, "draw": draw, "cannot_have": UNSCALED,
        "tensors": inside("model.language_model.", "model.vision_tower.std_bias",
                          "model.embed_vision.embedding_projection.weight"),
        "config": {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4",
                   "text_config": {**GEMMA4, "hidden_size": 48, "intermediate_size": 80,
                                   "num_hidden_layers": 4, "num_attention_heads": 6, "num_key_value_heads": 3,
                                   "head_dim": 12, "per_layer_config": {"1": {"head_dim": 24, "num_key_value_heads": 1},
                                                                        "3": {"head_dim": 24, "num_key_value_heads": 1}},
                                   "attention_k_eq_v": True, "sliding_window": 8, "layer_types": [S, F, S, F],
                                   "num_kv_shared_layers": 0, "use_double_wide_mlp": False,
                                   "hidden_size_per_layer_input": 0, "enable_moe_block": False,
                                   "final_logit_softcapping": None, "use_bidirectional_attention": "vision",
                                   "rope_parameters": {
                                       F: {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 200.0},
                                       S: {"rope_type": "default", "rope_theta": 20000.0}}}},
    },
    "gemma2-tiny-erf": {  # GELU without approximation, one layer of three slides, 5 query heads a KV head, only logits capped, tied
        "dtype": "bfloat16", "shards": 1, "draw": draw,
        "config": {**GEMMA2, "hidden_activation": "gelu", "hidden_size": 40, "intermediate_size": 72,
                   "num_hidden_layers": 3, "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 12,
                   "query_pre_attn_scalar": 20, "sliding_window": 10, "attn_logit_softcapping": None,
                   "final_logit_softcapping": 6.0, "layer_types": [F, F, S],
                   "rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 7000.0}},
    },
    "gemma3-tiny-yarn": {  # inside a vision model that ties what its text model does not; YaRN in full layers, two of four slide, ReLU
        "dtype": "bfloat16", "shards": 1, "draw": draw, "tied": True,
        "tensors": inside("language_model.model.", "vision_tower.post_layernorm.weight",
                          "multi_modal_projector.mm_input_projection_weight"),
        "config": {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "mm_tokens_per_image": 1,
                   "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 8, "intermediate_size": 8,
                                     "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 4, "patch_size": 4,
                                     "vision_use_head": False},
                   "text_config": {**GEMMA3, "hidden_activation": "relu", "hidden_size": 40, "intermediate_size": 56,
                                   "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
                                   "head_dim": 20, "query_pre_attn_scalar": 30, "sliding_window": 11,
                                   "layer_types": [F, S, S, F], "tie_word_embeddings": False,
                                   "rope_parameters": {F: {"rope_type": "yarn", "factor": 4.0, "rope_theta": 3000.0,
                                                           "original_max_position_embeddings": 32},
                                                       S: {"rope_type": "default", "rope_theta": 900.0}}}},
    },
    "gemma3n-tiny-three": {  # 3 streams of which the last is active, three layers of five slide, one shares, a rank that is odd
        "dtype": "bfloat16", "shards": 1, "draw": draw, "rows": partial(per_layer_rows, 0),
        "cannot_have": UNSCALED, "tensors": with_unread(range(4, 5), 12, 40),
        "config": {**GEMMA3N, "hidden_size": 40, "intermediate_size": [56, 72, 40, 56, 88],
                   "num_hidden_layers": 5, "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 12,
                   "sliding_window": 13, "layer_types": [F, S, S, F, S], "num_kv_shared_layers": 1,
                   "vocab_size_per_layer_input": 310, "hidden_size_per_layer_input": 6, "laurel_rank": 5,
                   "altup_num_inputs": 3, "altup_active_idx": 2, "altup_coef_clip": 120.0, "altup_correct_scale": True,
                   "activation_sparsity_pattern": [0.0, 0.6, 0.0, 0.3, 0.0], "final_logit_softcapping": 5.0,
                   "rope_parameters": {F: {"rope_type": "linear", "factor": 2.0, "rope_theta": 20000.0},
                                       S: {"rope_type": "default", "rope_theta": 700.0}}},
    },
}  # fmt: skip
