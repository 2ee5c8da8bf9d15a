"""Tiny random vision models with what transformers computes for them.

    python generate.py                   # every model
    python generate.py gemma3-tiny       # one of them

Writes an ordinary Hugging Face folder per function of ``MODELS``, with ``golden.json`` (the prompt, its token ids and greedy tokens) and
``golden.safetensors`` in it: pictures (bytes), their rows for the decoder, logits of the prompt. Two pictures of different
size are in the prompt. The run fails when a fault of ``Made.faults`` moves no logit by ten times the tolerance.
"""

from __future__ import annotations

import json
import math
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import PreTrainedTokenizerFast
from transformers.utils import logging

HERE = Path(__file__).parent
TOLERANCE = 2e-4  # relative to the largest value of a tensor
FAULT_FACTOR = 10
GREEDY_TOKENS = 12
GREEDY_MARGIN = 0.02  # between the two likeliest tokens, so that rounding cannot turn the choice
VOCABULARY = 320
CHOICES = VOCABULARY  # for greedy tokens
# Chat template of the folders. The prompts of ``golden.json`` are made without it.
TEMPLATE = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}"
    "{% if part.type == 'image' %}PICTURE{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
)


@dataclass
class Made:
    """A model, its processor, and the parts that the goldens record."""

    model: Any
    processor: Any
    placeholder: str
    prompt: str
    sizes: list[tuple[int, int]]
    rows: Callable[[Any, dict[str, Any]], list[Tensor]]
    deep: Callable[[Any, dict[str, Any]], list[list[Tensor]]] = lambda model, inputs: []  # DeepStack: for each picture, for each layer
    positions: Callable[[Any, dict[str, Any]], Tensor | None] = lambda model, inputs: None  # M-RoPE: [3, ids]
    dtype: torch.dtype = torch.float32
    names: Callable[[str], str] = lambda name: name
    picture: str = ""  # text of a picture in a chat template, where it is more than the placeholder
    files: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, Callable[[Any], None]] = field(default_factory=dict)


def tokenizer(*special: str) -> PreTrainedTokenizerFast:
    """A byte-level BPE of 300 entries, these special tokens among them; the logits are wider (320), as padded ones are."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    text = ["the rain in the town ran on and on", "and then the other one went on in the rain", "\n\n one \n\n"]
    names = ["<|endoftext|>", *special]
    trainer = trainers.BpeTrainer(
        vocab_size=300 - len(names), initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    made.train_from_iterator(text * 4, trainer)
    made.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    assert made.get_vocab_size() <= 300
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>", pad_token="<|endoftext|>")


def draw(name: str, values: Tensor, random: torch.Generator) -> Tensor:
    """Weights under which every part matters: scores and logits spread past 1, norms and biases far from neutral."""
    normal = torch.randn(values.shape, generator=random)
    if name.endswith(("_min", "_max")):  # of a clipped projection: some values are cut
        return (1.5 + 0.2 * normal) * (-1 if name.endswith("_min") else 1)
    if "norm" in name and name.endswith("weight"):
        return 0.3 * normal + (0.0 if "gemma3" in name else 1.0)
    if name.endswith("bias"):
        return 0.3 * normal
    if "embed_tokens" in name:
        return 0.15 * normal
    if "position_embedding" in name:
        return normal
    gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
    fan_in = values.shape[0] if "input_projection" in name else values[0].numel()
    return normal * gain / math.sqrt(fan_in)


def picture(width: int, height: int, random: np.random.Generator) -> Image.Image:
    """Smooth colours with noise on them, so that resizing and cutting both show."""
    x, y = np.meshgrid(np.linspace(0, 3, width), np.linspace(0, 2, height))
    waves = np.stack([np.sin(x + c) * np.cos(y * (c + 1)) for c in range(3)], axis=-1)
    values = 127 + 100 * waves + random.normal(0, 20, (height, width, 3))
    return Image.fromarray(values.clip(0, 255).astype(np.uint8), "RGB")


@torch.inference_mode()
def greedy(model: Any, inputs: dict[str, Any], beside: Callable[[Tensor], dict[str, Any]]) -> tuple[list[int], float]:
    """The greedy continuation without a cache, and the least lead of a chosen token."""
    ids, tokens, lead = inputs["input_ids"], [], math.inf
    while len(tokens) < GREEDY_TOKENS:
        top = model(**{**inputs, "input_ids": ids, **beside(ids)}).logits[0, -1, :CHOICES].topk(2)
        lead = min(lead, (top.values[0] - top.values[1]).item())
        tokens.append(top.indices[0].item())
        ids = torch.cat([ids, torch.tensor([[tokens[-1]]])], dim=1)
    return tokens, lead


def beside_ids(inputs: dict[str, Any]) -> Callable[[Tensor], dict[str, Any]]:
    """Masks and types of longer ids: what follows the prompt is text."""

    def longer(ids: Tensor) -> dict[str, Any]:
        more = ids.shape[1] - inputs["input_ids"].shape[1]
        pad = lambda key, value: torch.nn.functional.pad(inputs[key], (0, more), value=value)
        given = {"attention_mask": 1, "token_type_ids": 0, "mm_token_type_ids": 0}
        return {key: pad(key, value) for key, value in given.items() if key in inputs}

    return longer


@torch.inference_mode()
def generate(name: str, make: Callable[[], Made]) -> None:
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    seed = zlib.crc32(name.encode())
    for attempt in range(200):
        torch.manual_seed(0)
        made, random = make(), torch.Generator().manual_seed(seed + attempt)
        state = made.model.state_dict()
        kind = made.model.config.model_type
        drawn = {key: draw(f"{kind}.{key}", value, random).to(made.dtype) for key, value in state.items()}
        if made.model.config.tie_word_embeddings:
            drawn["lm_head.weight"] = drawn["model.language_model.embed_tokens.weight"]
        made.model.load_state_dict({key: value.float() for key, value in drawn.items()})
        model = made.model.eval()
        pixels = np.random.default_rng(seed)
        pictures = [picture(*size, pixels) for size in made.sizes]
        inputs = dict(made.processor(text=made.prompt, images=pictures, return_tensors="pt"))
        tokens, lead = greedy(model, inputs, beside_ids(inputs))
        if lead > GREEDY_MARGIN and len(set(tokens)) > 2:
            break
    else:
        raise AssertionError(f"{name}: no weights with a clear and varied continuation")
    logits = model(**inputs).logits[0]
    tensors = {"logits": logits}
    for i, image in enumerate(pictures):
        tensors[f"pictures.{i}.rgb"] = torch.from_numpy(np.array(image))
    rows = made.rows(model, inputs)
    assert len(rows) == len(pictures), (name, len(rows))
    tensors |= {f"pictures.{i}.rows": part for i, part in enumerate(rows)}
    for i, layers in enumerate(made.deep(model, inputs)):
        tensors |= {f"pictures.{i}.deep.{layer}": part for layer, part in enumerate(layers)}
    positions = made.positions(model, inputs)
    golden = {
        "tolerance": TOLERANCE,
        "prompt": made.prompt,
        "ids": inputs["input_ids"][0].tolist(),
        "greedy": tokens,
        **({} if positions is None else {"positions": positions.tolist()}),
        "faults": faults(name, make, drawn, inputs, logits),
    }
    write(folder, made, drawn, golden, {key: value.contiguous() for key, value in tensors.items()})
    (folder / "chat_template.jinja").write_text(TEMPLATE.replace("PICTURE", made.picture or made.placeholder))
    print(name, len(golden["ids"]), "ids", f"lead {lead:.3f}", golden["faults"])


def faults(name: str, make: Callable[[], Made], drawn: dict[str, Tensor], inputs: dict[str, Any], logits: Tensor) -> dict[str, float]:
    """The largest change of a logit under each fault, relative to the largest logit."""
    found = {}
    for fault, inject in make().faults.items():
        made = make()
        made.model.load_state_dict({key: value.float() for key, value in drawn.items()})
        changed = inject(made.model.eval(), dict(inputs)) or inputs
        moved = (made.model(**changed).logits[0] - logits).abs().max() / logits.abs().max()
        found[fault] = float(f"{moved.item():.3g}")
        assert found[fault] >= FAULT_FACTOR * TOLERANCE, f"{name}: {fault} hardly shows: {found[fault]}"
    return found


def write(folder: Path, made: Made, drawn: dict[str, Tensor], golden: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    config = made.model.config.to_dict()
    config["dtype"] = str(made.dtype).removeprefix("torch.")
    (folder / "config.json").write_text(json.dumps(trimmed(config), indent=1, sort_keys=True) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 0}) + "\n")
    for file, values in made.files.items():
        (folder / file).write_text(json.dumps(values, indent=1) + "\n")
    made.processor.tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    tied = {"lm_head.weight"} if made.model.config.tie_word_embeddings else set()
    weights = {made.names(key): value for key, value in drawn.items() if key not in tied}
    save_file({key: weights[key].contiguous() for key in sorted(weights)}, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    save_file(tensors, folder / "golden.safetensors")


def trimmed(value: Any) -> Any:
    """Without the keys that every config has and no model reads."""
    if not isinstance(value, dict):
        return value
    noise = {"transformers_version", "_name_or_path", "chunk_size_feed_forward", "id2label", "label2id", "output_attentions",
             "output_hidden_states", "return_dict", "problem_type", "is_encoder_decoder", "architectures"}  # fmt: skip
    return {key: trimmed(inner) for key, inner in value.items() if key not in noise and inner is not None}


def gemma3(dtype: torch.dtype, names: Callable[[str], str], *, window: int, attention: int, gelu: str,
           layers: tuple[str, ...] = ("sliding_attention", "full_attention", "sliding_attention")) -> Made:  # fmt: skip
    """Gemma 3: a block of nine rows that is wider than the window of the sliding layers."""
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3ImageProcessorPil, Gemma3Processor

    special = ("<bos>", "<start_of_image>", "<image_soft_token>", "<end_of_image>")
    tokens = tokenizer(*special)
    tokens.add_special_tokens({"bos_token": "<bos>"})
    tokens.boi_token, tokens.image_token, tokens.eoi_token = special[1:]
    tokens.boi_token_id, tokens.image_token_id, tokens.eoi_token_id = map(tokens.convert_tokens_to_ids, special[1:])
    config = Gemma3Config(
        text_config={
            "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "max_position_embeddings": 256,
            "sliding_window": window, "layer_types": list(layers),
            "query_pre_attn_scalar": attention, "rms_norm_eps": 1e-5,
        },
        vision_config={
            "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "patch_size": 7,
            "image_size": 42, "layer_norm_eps": 1e-3, "hidden_act": gelu, "vision_use_head": False,
        },
        mm_tokens_per_image=9, image_token_id=tokens.image_token_id, boi_token_id=tokens.boi_token_id,
        eoi_token_id=tokens.eoi_token_id, eos_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    size = {"height": 42, "width": 42}
    images = Gemma3ImageProcessorPil(size=size)
    processor = Gemma3Processor(images, tokens, image_seq_length=9)
    features = lambda model, inputs: model.get_image_features(inputs["pixel_values"], return_dict=True)

    def causal(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in inputs.items() if key != "token_type_ids"}

    def one_block(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {**inputs, "token_type_ids": torch.ones_like(inputs["token_type_ids"])}

    def window_of(slots: int) -> Callable[..., None]:
        return lambda model, inputs: setattr(model.config.text_config, "sliding_window", slots)

    def no_positions(model: Any, inputs: dict[str, Any]) -> None:
        model.model.vision_tower.embeddings.position_embedding.weight.zero_()

    def no_post_norm(model: Any, inputs: dict[str, Any]) -> None:
        model.model.vision_tower.post_layernorm = torch.nn.Identity()

    return Made(
        Gemma3ForConditionalGeneration(config), processor, "<start_of_image>",
        "<bos>the town:<start_of_image> and then <start_of_image>in the rain?", [(61, 40), (23, 50)],
        rows=lambda model, inputs: list(features(model, inputs).pooler_output),
        dtype=dtype, names=names,
        files={"preprocessor_config.json": {"image_processor_type": "Gemma3ImageProcessor", "size": size, "resample": 2,
                                            "do_pan_and_scan": None, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}},
        faults={"causal rows": causal, "one block": one_block, "a wider window": window_of(window + 1),
                "no positions": no_positions, "no norm after the tower": no_post_norm},
    )  # fmt: skip


def published_gemma3(name: str) -> str:
    """As google/gemma-3-4b-it names its tensors."""
    name = name.replace("model.vision_tower.", "vision_tower.vision_model.")
    return name.replace("model.multi_modal_projector.", "multi_modal_projector.").replace("model.language_model.", "language_model.model.")


def smolvlm(kind: str, dtype: torch.dtype, *, gelu: str, image_size: int) -> Made:
    """SmolVLM: tiles of 6 × 6 patches, of which 3 × 3 are a token; the second picture has fewer tiles."""
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration, Idefics3ImageProcessorPil, Idefics3Processor
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration

    tiles = [f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)]
    around = ("<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>")
    tokens = tokenizer("<|im_start|>", *around, *tiles)
    tokens.image_token, tokens.fake_image_token = "<image>", around[0]
    tokens.image_token_id = tokens.convert_tokens_to_ids("<image>")
    classes = {"smolvlm": (SmolVLMConfig, SmolVLMForConditionalGeneration), "idefics3": (Idefics3Config, Idefics3ForConditionalGeneration)}
    config_class, model_class = classes[kind]
    config = config_class(
        text_config={
            "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-4,
            "pad_token_id": 0, "rope_theta": 5000.0,
        },
        vision_config={
            "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "patch_size": 4,
            "image_size": image_size, "layer_norm_eps": 1e-3, "hidden_act": gelu,
        },
        scale_factor=3, image_token_id=tokens.image_token_id, tie_word_embeddings=False, attn_implementation="eager",
    )  # fmt: skip
    sizes = {"size": {"longest_edge": 48}, "max_image_size": {"longest_edge": 24}}
    normal = {"image_mean": [0.5, 0.4, 0.6], "image_std": [0.5, 0.3, 0.25]}
    images = Idefics3ImageProcessorPil(**sizes, **normal, do_image_splitting=True)
    processor = Idefics3Processor(images, tokens, image_seq_len=4)

    def features(model: Any, inputs: dict[str, Any]) -> Any:
        return model.get_image_features(inputs["pixel_values"], inputs["pixel_attention_mask"], return_dict=True)

    def rows(model: Any, inputs: dict[str, Any]) -> list[Tensor]:
        """Views of a picture are those whose rows follow each other in the prompt; each ends with a token that no view begins with."""
        views, counts = torch.cat(list(features(model, inputs).pooler_output)).reshape(-1, 4, 32), [5, 3]
        assert len(views) == sum(counts), views.shape
        return [part.reshape(-1, 32) for part in views.split(counts)]

    def no_positions(model: Any, inputs: dict[str, Any]) -> None:
        model.model.vision_model.embeddings.position_embedding.weight.zero_()

    def transposed_squares(model: Any, inputs: dict[str, Any]) -> None:
        shuffle = model.model.connector.pixel_shuffle

        def transposed(x: Tensor, factor: int) -> Tensor:
            joined = shuffle(x, factor)
            return joined.unflatten(-1, (factor, factor, -1)).transpose(-2, -3).flatten(-3)

        model.model.connector.pixel_shuffle = transposed

    def tiles_reversed(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {**inputs, "pixel_values": inputs["pixel_values"].flip(1)}

    return Made(
        model_class(config), processor, "<image>", "<|im_start|>the town:<image> and then <image>in the rain?", [(61, 40), (18, 50)],
        rows=rows, dtype=dtype,
        files={"preprocessor_config.json": {"image_processor_type": "SmolVLMImageProcessor", "do_image_splitting": True, "resample": 1,
                                            **sizes, **normal}},
        faults={"no positions": no_positions, "transposed squares": transposed_squares, "tiles in another order": tiles_reversed},
    )  # fmt: skip


def resize_with_pillow(self: Any, image: Tensor, size: Any, **_: Any) -> Tensor:
    """In place of torchvision's: LFM2-VL has no class with Pillow's arithmetic, and the bytes of the two differ by one in places."""
    resized = [Image.fromarray(one.permute(1, 2, 0).numpy()).resize((size.width, size.height), Image.Resampling.BILINEAR) for one in image]
    return torch.stack([torch.from_numpy(np.array(one)).permute(2, 0, 1) for one in resized])


LFM2_VL_SETTINGS = {
    "encoder_patch_size": 4, "downsample_factor": 2, "tile_size": 24, "min_tiles": 2, "max_tiles": 6, "min_image_tokens": 4,
    "max_image_tokens": 12, "max_pixels_tolerance": 1.5, "use_thumbnail": True, "do_image_splitting": True,
}  # fmt: skip


def lfm2_vl(dtype: torch.dtype, *, norm: bool, bias: bool, gelu: str, patches: int, names: Callable[[str], str],
            settings: dict[str, Any] = LFM2_VL_SETTINGS, layers: int = 2, context: int = 256, views: tuple[int, int] = (7, 1),
            sizes: tuple[tuple[int, int], ...] = ((80, 50), (18, 31))) -> Made:  # fmt: skip
    """LFM2-VL: tiles with a thumbnail, and a small picture of odd shape; positions resized to each view."""
    from transformers import Lfm2VlConfig, Lfm2VlForConditionalGeneration, Lfm2VlImageProcessor, Lfm2VlProcessor
    from transformers.image_processing_backends import TorchvisionBackend

    tiles = [f"<|img_row_{row}_col_{column}|>" for row in (1, 2) for column in (1, 2, 3)]
    around = ("<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>")
    tokens = tokenizer("<|im_start|>", *around, *tiles)
    tokens.image_token, tokens.image_start_token, tokens.image_end_token, tokens.image_thumbnail_token = around
    tokens.image_token_id = tokens.convert_tokens_to_ids("<image>")
    config = Lfm2VlConfig(
        text_config={
            "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
            "num_key_value_heads": 2, "max_position_embeddings": context, "norm_eps": 1e-4, "block_auto_adjust_ff_dim": False,
            "layer_types": ["conv", "full_attention", "conv"], "conv_L_cache": 3, "conv_bias": False,
        },
        vision_config={
            "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": layers, "num_attention_heads": 3,
            "patch_size": settings["encoder_patch_size"], "num_patches": patches, "layer_norm_eps": 1e-3, "hidden_act": "gelu_pytorch_tanh", "vision_use_head": False,
        },
        image_token_id=tokens.image_token_id, projector_hidden_act=gelu, projector_hidden_size=28, projector_bias=bias,
        projector_use_layernorm=norm, downsample_factor=2, tie_word_embeddings=True, attn_implementation="eager",
    )  # fmt: skip
    most = settings["max_image_tokens"] * settings["downsample_factor"] ** 2
    images = Lfm2VlImageProcessor(**settings, max_num_patches=most)
    TorchvisionBackend.resize = resize_with_pillow
    processor = Lfm2VlProcessor(images, tokens)

    def rows(model: Any, inputs: dict[str, Any]) -> list[Tensor]:
        given = {key: inputs[key] for key in ("pixel_values", "spatial_shapes", "pixel_attention_mask")}
        encoded = list(model.get_image_features(**given, return_dict=True).pooler_output)
        assert len(encoded) == sum(views), [view.shape for view in encoded]
        return [torch.cat(encoded[: views[0]]), torch.cat(encoded[views[0] :])]

    def no_positions(model: Any, inputs: dict[str, Any]) -> None:
        model.model.vision_tower.embeddings.position_embedding.weight.zero_()

    def plain_resize(model: Any, inputs: dict[str, Any]) -> None:
        embeddings, resize = model.model.vision_tower.embeddings, torch.nn.functional.interpolate

        def forward(pixel_values: Tensor, spatial_shapes: Tensor) -> Tensor:
            torch.nn.functional.interpolate = lambda x, **given: resize(x, **{**given, "antialias": False})
            try:
                return type(embeddings).forward(embeddings, pixel_values, spatial_shapes)
            finally:
                torch.nn.functional.interpolate = resize

        embeddings.forward = forward

    return Made(
        Lfm2VlForConditionalGeneration(config), processor, "<image>", "<|im_start|>the town:<image> and then <image>in the rain?",
        list(sizes), rows=rows, dtype=dtype, names=names,
        files={"processor_config.json": {"image_processor": settings, "processor_class": "Lfm2VlProcessor"}},
        faults={"no positions": no_positions, "positions resized without averaging": plain_resize},
    )  # fmt: skip


def published_lfm2_vl(name: str) -> str:
    """As LiquidAI/LFM2-VL-450M names its tensors."""
    return name.replace("model.vision_tower.", "model.vision_tower.vision_model.")


def gemma4(dtype: torch.dtype, *, together: bool, clipped: bool, standardize: bool, gelu: str,
           vision: dict[str, Any] | None = None) -> Made:  # fmt: skip
    """Gemma 4: pictures of different shape within a budget; rows see each other in sliding layers only, or not at all."""
    from transformers import (
        Gemma4AudioFeatureExtractor,
        Gemma4Config,
        Gemma4ForConditionalGeneration,
        Gemma4ImageProcessorPil,
        Gemma4Processor,
        Gemma4VideoProcessor,
    )

    special = ("<bos>", "<|image>", "<|image|>", "<image|>")
    tokens = tokenizer(*special, "<|video|>", "<|audio|>")
    tokens.audio_token = tokens.boa_token = tokens.eoa_token = "<|audio|>"
    tokens.audio_token_id = tokens.convert_tokens_to_ids("<|audio|>")
    tokens.boi_token, tokens.image_token, tokens.eoi_token = special[1:]
    tokens.boi_token_id, tokens.image_token_id, tokens.eoi_token_id = map(tokens.convert_tokens_to_ids, special[1:])
    bidirectional = {"use_bidirectional_attention": "vision"} if together else {}
    config = Gemma4Config(
        text_config={
            "vocab_size": VOCABULARY, "vocab_size_per_layer_input": VOCABULARY, "hidden_size": 32, "intermediate_size": 48,
            "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "global_head_dim": 16,
            "hidden_size_per_layer_input": 8, "max_position_embeddings": 256, "sliding_window": 30, "num_kv_shared_layers": 0,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"], "rms_norm_eps": 1e-5, "pad_token_id": 3,
            **bidirectional,
        },
        vision_config={
            "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
            "head_dim": 8, "patch_size": 4, "pooling_kernel_size": 2, "position_embedding_size": 80, "rms_norm_eps": 1e-3,
            "hidden_activation": gelu, "use_clipped_linears": clipped, "standardize": standardize,
            "rope_parameters": {"rope_type": "axial", "rope_theta": 30.0}, **(vision or {}),
        },
        audio_config=None, image_token_id=tokens.image_token_id, boi_token_id=tokens.boi_token_id, eoi_token_id=tokens.eoi_token_id,
        video_token_id=tokens.convert_tokens_to_ids("<|video|>"), audio_token_id=None, eos_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    settings = {"patch_size": 4, "pooling_kernel_size": 2, "max_soft_tokens": 70}
    images = Gemma4ImageProcessorPil(**settings)
    processor = Gemma4Processor(Gemma4AudioFeatureExtractor(), images, tokens, Gemma4VideoProcessor())

    def rows(model: Any, inputs: dict[str, Any]) -> list[Tensor]:
        given = inputs["pixel_values"], inputs["image_position_ids"]
        return list(model.get_image_features(*given, return_dict=True).pooler_output)

    def other_mask(model: Any, inputs: dict[str, Any]) -> None:
        model.config.text_config.use_bidirectional_attention = None if together else "vision"

    def no_positions(model: Any, inputs: dict[str, Any]) -> None:
        model.model.vision_tower.patch_embedder.position_embedding_table.zero_()

    def axes_swapped(model: Any, inputs: dict[str, Any]) -> None:
        rotary = model.model.vision_tower.encoder.rotary_emb
        rotary.recomposition_frequencies = lambda freq: torch.cat([freq[:, :, 1]] * 2 + [freq[:, :, 0]] * 2, dim=-1)

    def unclipped(model: Any, inputs: dict[str, Any]) -> None:
        for module in model.model.vision_tower.modules():
            if hasattr(module, "use_clipped_linears"):
                module.use_clipped_linears = False

    faults = {"another mask": other_mask, "no positions": no_positions, "axes swapped": axes_swapped}
    return Made(
        Gemma4ForConditionalGeneration(config), processor, "<|image|>", "<bos>the town:<|image|> and then <|image|>in the rain?",
        [(61, 40), (18, 50)], rows=rows, dtype=dtype,
        files={"processor_config.json": {"image_processor": {**settings, "resample": 3, "do_normalize": False}}},
        faults={**faults, "no ranges": unclipped} if clipped else faults,
    )  # fmt: skip


def qwen_vl(kind: str, dtype: torch.dtype, *, text: dict[str, Any], vision: dict[str, Any], rope: dict[str, Any],
            names: Callable[[str], str] = lambda name: name, flat: bool = False) -> Made:  # fmt: skip
    """A picture that is made smaller and one that keeps its size, both with as many tokens as their shape asks for."""
    import transformers
    from transformers import AutoConfig, Qwen2VLImageProcessorPil, Qwen2VLVideoProcessor, Qwen3VLProcessor

    tokens = tokenizer("<|im_start|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    ids = {name: tokens.convert_tokens_to_ids(f"<|{name}|>") for name in ("vision_start", "vision_end", "image_pad", "video_pad")}
    patch = {"patch_size": 4, "temporal_patch_size": 2}
    config = AutoConfig.for_model(
        kind,
        text_config={
            "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
            "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-4, "rope_parameters": rope, **text,
        },
        vision_config={"depth": 3, "num_heads": 2, "in_channels": 3, "spatial_merge_size": 2, **patch, **vision},
        image_token_id=ids["image_pad"], video_token_id=ids["video_pad"], vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"], tie_word_embeddings=False, attn_implementation="eager",
    )  # fmt: skip
    model_class = {"qwen2_vl": "Qwen2VL", "qwen2_5_vl": "Qwen2_5_VL", "qwen3_vl": "Qwen3VL", "qwen3_5": "Qwen3_5"}[kind]
    normal = {"image_mean": [0.5, 0.4, 0.6], "image_std": [0.5, 0.3, 0.25]}
    size = {"shortest_edge": 400, "longest_edge": 1700}
    images = Qwen2VLImageProcessorPil(size=size, merge_size=2, **patch, **normal)
    processor = Qwen3VLProcessor(images, tokens, Qwen2VLVideoProcessor(size=size, merge_size=2, **patch))

    def features(model: Any, inputs: dict[str, Any]) -> Any:
        return model.model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)

    def deep(model: Any, inputs: dict[str, Any]) -> list[list[Tensor]]:
        layers = getattr(features(model, inputs), "deepstack_features", None) or []
        return [list(of_picture) for of_picture in zip(*layers)]

    def positions(model: Any, inputs: dict[str, Any]) -> Tensor:
        return model.model.get_rope_index(inputs["input_ids"], inputs["mm_token_type_ids"], image_grid_thw=inputs["image_grid_thw"])[0][:, 0]

    def of_text(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {**inputs, "position_ids": torch.arange(inputs["input_ids"].shape[1]).expand(3, 1, -1)}

    def other_sections(model: Any, inputs: dict[str, Any]) -> None:
        sections = model.model.language_model.rotary_emb.mrope_section
        model.model.language_model.rotary_emb.mrope_section = [sections[0] + 1, sections[1] - 1, sections[2]]

    def no_rotation(model: Any, inputs: dict[str, Any]) -> None:
        model.model.visual.rotary_pos_emb.inv_freq.zero_()

    def no_learned_positions(model: Any, inputs: dict[str, Any]) -> None:
        model.model.visual.pos_embed.weight.zero_()

    def columns_first(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {**inputs, "pixel_values": inputs["pixel_values"].unflatten(-1, (6, 4, 4)).transpose(-1, -2).flatten(1)}

    faults = {"positions of text": of_text, "other sections": other_sections, "no rotation": no_rotation, "patches transposed": columns_first}
    if "window_size" in vision:
        faults["attention in windows only"] = lambda model, inputs: setattr(model.model.visual, "fullatt_block_indexes", [])
        faults["no windows"] = lambda model, inputs: setattr(model.model.visual, "fullatt_block_indexes", [0, 1, 2])
    if "num_position_embeddings" in vision:
        faults["no learned positions"] = no_learned_positions
    if "deepstack_visual_indexes" in vision:
        faults["no rows for deeper layers"] = lambda model, inputs: setattr(model.model.visual, "deepstack_visual_indexes", [])
    files = {"preprocessor_config.json": {"size": size, "merge_size": 2, "resample": 3, **patch, **normal}}
    if flat:
        outer = config.to_dict()
        files["config.json"] = {**outer.pop("text_config"), **outer, "vision_config": config.vision_config.to_dict()}
        files["config.json"]["rope_scaling"] = {"type": "mrope", "mrope_section": rope["mrope_section"]}
        files["config.json"]["rope_theta"] = files["config.json"].pop("rope_parameters")["rope_theta"]
        files["config.json"] = trimmed(files["config.json"])
    picture = "<|vision_start|><|image_pad|><|vision_end|>"
    return Made(
        getattr(transformers, f"{model_class}ForConditionalGeneration")(config), processor, "<|image_pad|>",
        f"<|im_start|>the town:{picture} and then {picture}in the rain?", [(61, 40), (17, 42)],
        rows=lambda model, inputs: list(features(model, inputs).pooler_output), deep=deep, positions=positions,
        dtype=dtype, names=names, picture=picture, files=files, faults=faults,
    )  # fmt: skip


def published_qwen2_vl(name: str) -> str:
    """As Qwen/Qwen2-VL-2B-Instruct names its tensors."""
    return name.replace("model.language_model.", "model.").replace("model.visual.", "visual.")


def mrope(sections: list[int], **more: Any) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": 500.0, "mrope_section": sections, **more}


MODELS: dict[str, Callable[[], Made]] = {
    "gemma3-tiny": lambda: gemma3(torch.float32, published_gemma3, window=6, attention=10, gelu="gelu_pytorch_tanh"),
    "gemma3-tiny-bf16": lambda: gemma3(torch.bfloat16, lambda name: name, window=20, attention=14, gelu="gelu"),
    "gemma4-tiny": lambda: gemma4(torch.float32, together=True, clipped=False, standardize=True, gelu="gelu_pytorch_tanh"),
    "gemma4-tiny-bf16": lambda: gemma4(torch.bfloat16, together=False, clipped=True, standardize=False, gelu="gelu"),
    "idefics3-tiny-bf16": lambda: smolvlm("idefics3", torch.bfloat16, gelu="gelu", image_size=24),
    "lfm2-vl-tiny": lambda: lfm2_vl(torch.float32, norm=True, bias=True, gelu="gelu", patches=25, names=published_lfm2_vl),
    "lfm2-vl-tiny-bf16": lambda: lfm2_vl(
        torch.bfloat16, norm=False, bias=False, gelu="gelu_pytorch_tanh", patches=64, names=lambda name: name
    ),
    "qwen2-vl-tiny": lambda: qwen_vl(
        "qwen2_vl", torch.float32, text={}, rope=mrope([1, 1, 2]), names=published_qwen2_vl, flat=True,
        vision={"embed_dim": 24, "hidden_size": 32, "mlp_ratio": 3, "hidden_act": "quick_gelu"},
    ),
    "qwen2_5-vl-tiny": lambda: qwen_vl(
        "qwen2_5_vl", torch.float32, text={}, rope=mrope([1, 2, 1]), names=published_qwen2_vl,
        vision={"hidden_size": 24, "intermediate_size": 40, "out_hidden_size": 32, "hidden_act": "silu", "window_size": 19,
                "fullatt_block_indexes": [1]},
    ),
    "qwen3-vl-tiny": lambda: qwen_vl(
        "qwen3_vl", torch.float32, text={"head_dim": 16}, rope=mrope([5, 1, 2], mrope_interleaved=True),
        vision={"hidden_size": 16, "intermediate_size": 40, "out_hidden_size": 32, "hidden_act": "gelu_pytorch_tanh",
                "num_position_embeddings": 25, "deepstack_visual_indexes": [0, 2]},
    ),
    "qwen3-vl-tiny-bf16": lambda: qwen_vl(
        "qwen3_vl", torch.bfloat16, text={"head_dim": 12}, rope=mrope([4, 1, 1], mrope_interleaved=True),
        vision={"hidden_size": 24, "intermediate_size": 56, "out_hidden_size": 32, "hidden_act": "gelu",
                "num_position_embeddings": 256, "deepstack_visual_indexes": [1]},
    ),
    "qwen3_5-vl-tiny": lambda: qwen_vl(
        "qwen3_5", torch.float32, rope=mrope([2, 1, 1], mrope_interleaved=True, partial_rotary_factor=0.5),
        text={"head_dim": 16, "layer_types": ["linear_attention", "full_attention", "linear_attention"], "linear_conv_kernel_dim": 4,
              "linear_key_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_value_head_dim": 8},
        vision={"hidden_size": 16, "intermediate_size": 40, "out_hidden_size": 32, "hidden_act": "gelu_pytorch_tanh",
                "num_position_embeddings": 16},
    ),
    "smolvlm-tiny": lambda: smolvlm("smolvlm", torch.float32, gelu="gelu_pytorch_tanh", image_size=16),
}


def main() -> None:
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    for name in sys.argv[1:] or MODELS:
        generate(name, MODELS[name])


if __name__ == "__main__":
    main()
