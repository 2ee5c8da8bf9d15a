"""Tiny random audio models with what transformers computes for them.

    python generate.py                   # every model
    python generate.py gemma4-tiny       # one of them

Writes an ordinary Hugging Face folder per function of ``MODELS``, with ``golden.json`` (sounds, prompts, their token ids and greedy tokens,
numbers of tokens of many lengths) and ``golden.safetensors`` in it: features of the sounds, their rows for the decoder, logits of the prompts.
The run fails when a fault of ``Made.faults`` moves no logit by ten times the tolerance. Parts are shared with ``../vision/generate.py``.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers.utils import logging

HERE = Path(__file__).resolve().parent
found = importlib.util.spec_from_file_location("vision", HERE.parent / "vision" / "generate.py")
vision = importlib.util.module_from_spec(found)
sys.modules["vision"] = vision
found.loader.exec_module(vision)

RATE = 16_000
SECONDS_OF_COUNTS = 40
COUNTS = 300
LORA = {"r": 3, "lora_alpha": 5}


@dataclass(frozen=True)
class Sound:
    """Silence, or noise whose loudness changes every 50 ms; both are exact in 32 bits and made again by the tests."""

    samples: int
    seed: int | None = None

    def values(self) -> np.ndarray:
        values, state = np.zeros(self.samples, np.float32), self.seed
        if state is None:
            return values
        for index in range(self.samples):
            state = (state * 1_664_525 + 1_013_904_223) % 2**32
            values[index] = ((state >> 16) / 2**15 - 1) * (index // 800 % 4) / 4
        return values


SHORT = [Sound(4_800), Sound(7_001, 1), Sound(16_000, 2)]
LONG = [Sound(479_840, 3), Sound(480_160, 4)]


@dataclass
class Prompt:
    """A text with placeholders, its sounds (of ``SHORT``) and the sizes of its pictures."""

    text: str
    sounds: list[int]
    pictures: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Made:
    """A model, its processor, and the parts that the goldens record."""

    model: Any
    processor: Any
    prompts: list[Prompt]
    features: Callable[[Any, np.ndarray], Tensor]  # [frames, bins] of a sound
    rows: Callable[[Any, dict[str, Any]], list[Tensor]]
    count: Callable[[Any, int], int]  # tokens of a sound of so many samples; 0 where the processor fails
    preprocessing: dict[str, Any]
    dtype: torch.dtype = torch.float32
    names: Callable[[str], str] = lambda name: name
    draw: Callable[[str, Tensor, torch.Generator], Tensor] = vision.draw
    adapted: list[str] = field(default_factory=list)  # weights that a LoRA adapter beside the model updates
    logits: float = 1.0  # factor on the reference's
    files: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, Callable[[Any, ExitStack], None]] = field(default_factory=dict)


def processed(made: Made, prompt: Prompt, pixels: np.random.Generator) -> tuple[dict[str, Any], list[Any]]:
    """Inputs of the model for a prompt, and its pictures."""
    pictures = [vision.picture(*size, pixels) for size in prompt.pictures]
    images = {"images": pictures} if pictures else {}
    audio = [SHORT[index].values() for index in prompt.sounds]
    return dict(made.processor(text=prompt.text, audio=audio, return_tensors="pt", **images)), pictures


@torch.inference_mode()
def generate(name: str, make: Callable[[], Made]) -> None:
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    seed = zlib.crc32(name.encode())
    for attempt in range(200):
        torch.manual_seed(0)
        made, random = make(), torch.Generator().manual_seed(seed + attempt)
        kind = made.model.config.model_type
        drawn = {key: made.draw(f"{kind}.{key}", value, random).to(made.dtype) for key, value in made.model.state_dict().items()}
        if made.model.config.tie_word_embeddings:
            drawn["lm_head.weight"] = drawn["model.language_model.embed_tokens.weight"]
        lora = {key: halves(drawn[key].shape, random) for key in made.adapted}
        load(made.model, drawn, lora)
        inputs = [processed(made, prompt, np.random.default_rng(seed)) for prompt in made.prompts]
        try:
            replies = [vision.greedy(made.model, given, vision.beside_ids(given)) for given, _ in inputs]
        except ValueError:  # A placeholder was generated.
            continue
        lead = min(lead for _, lead in replies)
        if lead > vision.GREEDY_MARGIN and all(len(set(tokens)) > 2 for tokens, _ in replies):
            break
    else:
        raise AssertionError(f"{name}: no weights with a clear and varied continuation")
    logits = [made.model(**given).logits[0] for given, _ in inputs]
    prompts, tensors = [], {}
    for index, (prompt, (given, pictures), (tokens, _)) in enumerate(zip(made.prompts, inputs, replies)):
        ids = given["input_ids"][0].tolist()
        step = 1 if len(ids) < 64 else 3
        prompts.append({"text": prompt.text, "sounds": prompt.sounds, "pictures": len(pictures), "ids": ids, "greedy": tokens, "step": step})
        tensors[f"prompts.{index}.logits"] = logits[index][::step] * made.logits
        tensors |= {f"prompts.{index}.pictures.{i}.rgb": torch.from_numpy(np.array(picture)) for i, picture in enumerate(pictures)}
    sounds = []
    for index, sound in enumerate(SHORT + LONG):
        steps = [1, 1] if sound.samples < RATE * 2 else [211, 53]  # frames and rows that are recorded
        sounds.append({"samples": sound.samples, "seed": sound.seed, "steps": steps})
        tensors[f"sounds.{index}.features"] = made.features(made.processor, sound.values())[:: steps[0]]
        tensors[f"sounds.{index}.rows"] = rows_of(made, [sound])[0][:: steps[1]]
    for prompt, (given, _) in zip(made.prompts, inputs):  # A batch does not change the rows.
        for index, rows in zip(prompt.sounds, made.rows(made.model, given)):
            torch.testing.assert_close(rows, tensors[f"sounds.{index}.rows"], rtol=1e-4, atol=1e-4)
    golden = {
        "tolerance": vision.TOLERANCE,
        "preprocessing": made.preprocessing,
        "sounds": sounds,
        "prompts": prompts,
        "counts": [[samples, made.count(made.processor, samples)] for samples in lengths()],
        "faults": faults(name, make, drawn, lora, [given for given, _ in inputs], logits),
    }
    vision.write(folder, made, drawn, golden, {key: value.contiguous() for key, value in tensors.items()})
    (folder / "chat_template.jinja").write_text(chat_template(made.processor))
    if lora:
        write_adapter(folder, made, lora)
    print(name, [len(prompt["ids"]) for prompt in prompts], "ids", f"lead {lead:.3f}", golden["faults"])


def load(model: Any, drawn: dict[str, Tensor], lora: dict[str, tuple[Tensor, Tensor]]) -> None:
    """Loads weights in 32 bits, with the products of an adapter added to them."""
    weights = {key: value.float() if value.is_floating_point() else value for key, value in drawn.items()}
    for key, (a, b) in lora.items():
        weights[key] = weights[key] + LORA["lora_alpha"] / LORA["r"] * b @ a
    model.load_state_dict(weights)
    model.eval()


def halves(shape: torch.Size, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Low-rank halves of the update of a weight of this shape."""
    outputs, inputs = shape
    a, b = torch.randn((LORA["r"], inputs), generator=random), torch.randn((outputs, LORA["r"]), generator=random)
    return a / inputs**0.5, b / LORA["r"] ** 0.5


def chat_template(processor: Any) -> str:
    """Texts as they are, a placeholder for each sound and picture. The prompts of ``golden.json`` are made without it."""
    tokens = {"audio": processor.audio_token, "image": getattr(processor.tokenizer, "image_token", None)}
    media = "".join(f"{{% elif part.type == '{kind}' %}}{token}" for kind, token in tokens.items() if token)
    parts = f"{{% for part in m.content %}}{{% if part.type == 'text' %}}{{{{ part.text }}}}{media}{{% endif %}}{{% endfor %}}"
    content = f"{{% if m.content is string %}}{{{{ m.content }}}}{{% else %}}{parts}{{% endif %}}"
    return f"{{% for m in messages %}}{content}{{% endfor %}}"


def write_adapter(folder: Path, made: Made, lora: dict[str, tuple[Tensor, Tensor]]) -> None:
    """Files as PEFT writes them."""
    module = lambda key: f"base_model.model.{made.names(key).removesuffix('.weight')}"
    halves = {f"{module(key)}.lora_{half}.weight": part for key, parts in lora.items() for half, part in zip("AB", parts)}
    save_file({key: part.contiguous() for key, part in halves.items()}, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "bias": "none", **LORA}, indent=1) + "\n")


def plain(extractor: Any) -> dict[str, Any]:
    """The settings of a feature extractor that are no arrays."""
    return {key: value for key, value in extractor.to_dict().items() if value is None or isinstance(value, (bool, int, float, str))}


def rows_of(made: Made, sounds: list[Sound]) -> list[Tensor]:
    """Rows of sounds that are in no prompt of ``made``."""
    text = made.processor.audio_token * len(sounds)
    return made.rows(made.model, dict(made.processor(text=text, audio=[sound.values() for sound in sounds], return_tensors="pt")))


def lengths() -> list[int]:
    """Numbers of samples from one to those of ``SECONDS_OF_COUNTS``, around multiples of a hop too."""
    random = np.random.default_rng(7)
    spread = random.integers(1, SECONDS_OF_COUNTS * RATE, COUNTS // 2).tolist()
    near = [int(hop) * 160 + int(more) for hop, more in zip(random.integers(1, 4200, COUNTS // 2), random.integers(-2, 3, COUNTS // 2))]
    return sorted({1, 2, 160, 161, 162, 320, 321, 479_839, 479_840, 480_000, 480_001, SECONDS_OF_COUNTS * RATE, *spread, *near})


def faults(name: str, make: Callable[[], Made], drawn: dict[str, Tensor], lora: dict[str, tuple[Tensor, Tensor]],
           inputs: list[dict[str, Any]], logits: list[Tensor]) -> dict[str, float]:  # fmt: skip
    """The largest change of a logit of the prompts under each fault, relative to the largest logit."""
    found = {}
    unadapted = {"no adapter": lambda model, stack: load(model, drawn, {})} if lora else {}
    for fault, inject in (make().faults | unadapted).items():
        with ExitStack() as stack:
            made = make()
            load(made.model, drawn, lora)
            inject(made.model, stack)
            moved = [(made.model(**given).logits[0] - right).abs().max() / right.abs().max() for given, right in zip(inputs, logits)]
        found[fault] = float(f"{max(moved).item():.3g}")
        assert found[fault] >= vision.FAULT_FACTOR * vision.TOLERANCE, f"{name}: {fault} hardly shows: {found[fault]}"
    return found


def gemma4(dtype: torch.dtype, *, together: bool, audio: dict[str, Any], features: dict[str, Any]) -> Made:
    """Gemma 4 with both encoders: a prompt with two sounds, and one with a picture and a sound."""
    from transformers import Gemma4AudioFeatureExtractor, Gemma4Config, Gemma4ForConditionalGeneration, Gemma4ImageProcessorPil, Gemma4Processor
    from transformers import Gemma4VideoProcessor
    from transformers.models.gemma4 import modeling_gemma4

    special = ("<bos>", "<|image>", "<|image|>", "<image|>", "<|audio>", "<|audio|>", "<audio|>")
    tokens = vision.tokenizer(*special, "<|video|>")
    for kind, at in (("image", 1), ("audio", 4)):
        for part, token in zip((f"bo{kind[0]}", kind, f"eo{kind[0]}"), special[at : at + 3]):
            setattr(tokens, f"{part}_token", token)
            setattr(tokens, f"{part}_token_id", tokens.convert_tokens_to_ids(token))
    bidirectional = {"use_bidirectional_attention": "vision"} if together else {}
    config = Gemma4Config(
        text_config={
            "vocab_size": vision.VOCABULARY, "vocab_size_per_layer_input": vision.VOCABULARY, "hidden_size": 32, "intermediate_size": 48,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "global_head_dim": 16,
            "hidden_size_per_layer_input": 8, "max_position_embeddings": 2048, "sliding_window": 30, "num_kv_shared_layers": 0,
            "layer_types": ["sliding_attention", "full_attention"], "rms_norm_eps": 1e-5, "pad_token_id": 3, **bidirectional,
        },
        vision_config={
            "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
            "head_dim": 8, "patch_size": 4, "pooling_kernel_size": 2, "position_embedding_size": 80, "rms_norm_eps": 1e-3,
            "use_clipped_linears": False, "standardize": False, "rope_parameters": {"rope_type": "axial", "rope_theta": 30.0},
        },
        audio_config={"num_hidden_layers": 2, **audio}, image_token_id=tokens.image_token_id, boi_token_id=tokens.boi_token_id,
        eoi_token_id=tokens.eoi_token_id, boa_token_id=tokens.boa_token_id, audio_token_id=tokens.audio_token_id,
        eoa_token_index=tokens.eoa_token_id, video_token_id=tokens.convert_tokens_to_ids("<|video|>"), eos_token_id=0,
        attn_implementation="eager",
    )  # fmt: skip
    pictures = {"patch_size": 4, "pooling_kernel_size": 2, "max_soft_tokens": 70}
    extractor = Gemma4AudioFeatureExtractor(**features)
    processor = Gemma4Processor(extractor, Gemma4ImageProcessorPil(**pictures), tokens, Gemma4VideoProcessor())

    def rows(model: Any, inputs: dict[str, Any]) -> list[Tensor]:
        output = model.model.get_audio_features(inputs["input_features"], inputs["input_features_mask"], return_dict=True)
        return [rows[mask] for rows, mask in zip(output.pooler_output, output.attention_mask)]

    def of_sound(processor: Any, values: np.ndarray) -> Tensor:
        given = processor.feature_extractor([values.astype(np.float64)], return_tensors="pt")
        return given["input_features"][0][given["input_features_mask"][0]]

    def count(processor: Any, samples: int) -> int:
        try:
            given = processor.feature_extractor([np.zeros(samples)], return_tensors="np")
        except (ValueError, IndexError):
            return 0
        return processor.replace_audio_token(given, 0).count("<|audio|>")

    def modules(model: Any, kind: str) -> list[Any]:
        return [module for module in model.model.audio_tower.modules() if type(module).__name__ == f"Gemma4Audio{kind}"]

    def every(kind: str, change: Callable[[Any], Any]) -> Callable[[Any, ExitStack], None]:
        return lambda model, stack: [change(module) for module in modules(model, kind)]

    def unclipped(model: Any, stack: ExitStack) -> None:
        for module in model.model.audio_tower.modules():
            if hasattr(module, "use_clipped_linears"):
                module.use_clipped_linears = False

    def unbounded(model: Any, stack: ExitStack) -> None:
        for module in model.model.audio_tower.modules():
            if hasattr(module, "gradient_clipping"):
                module.gradient_clipping = 1e10

    def other_reach(more: tuple[int, int]) -> Callable[[Any, ExitStack], None]:
        right = modeling_gemma4.sliding_window_mask_function
        wrong = lambda window: right((window[0] + more[0], window[1] + more[1]))
        return lambda model, stack: stack.enter_context(patch.object(modeling_gemma4, "sliding_window_mask_function", wrong))

    def one_epsilon(model: Any, stack: ExitStack) -> None:
        for module in model.model.audio_tower.modules():
            if isinstance(module, modeling_gemma4.Gemma4RMSNorm):
                module.eps = audio["rms_norm_eps"]

    def rows_that_see_each_other(model: Any, stack: ExitStack) -> None:
        right = modeling_gemma4.get_block_sequence_ids_for_mask
        wrong = lambda types, device: right(types.clamp(max=1), device)
        stack.enter_context(patch.object(modeling_gemma4, "get_block_sequence_ids_for_mask", wrong))

    wrong = {
        "no cap of scores": every("Attention", lambda module: module.softcap.fill_(1e9)),
        "no relative positions": every("Attention", lambda module: module.relative_k_proj.weight.zero_()),
        "no factors of queries": every("Attention", lambda module: module.per_dim_scale.zero_()),
        "keys one row farther": other_reach((1, 0)),
        "keys one row nearer": other_reach((-1, 0)),
        "another residual weight": every("FeedForward", lambda module: setattr(module, "post_layer_scale", 1.0)),
        "kernels reversed": every("CausalConv1d", lambda module: module.weight.copy_(module.weight.flip(-1))),
        "one epsilon": one_epsilon,
        **({"rows that see each other": rows_that_see_each_other} if together else {}),
        **({"no ranges": unclipped} if audio["use_clipped_linears"] else {}),
        **({"no bounds": unbounded} if "gradient_clipping" in audio else {}),
        **({"no later keys": other_reach((0, -1))} if audio.get("attention_context_right") else {}),
    }
    settings = {
        "mels": extractor.feature_size, "window": extractor.frame_length, "hop": extractor.hop_length,
        "frequencies": [extractor.min_frequency, extractor.max_frequency], "floor": float(extractor.mel_floor),
    }  # fmt: skip
    prompts = [
        Prompt("<bos>the town:<|audio|> and then <|audio|>in the rain?", [0, 1]),
        Prompt("<bos>the <|image|> and then <|audio|>ran on", [2], [(18, 50)]),
    ]
    return Made(
        Gemma4ForConditionalGeneration(config), processor, prompts, of_sound, rows, count, settings, dtype=dtype,
        files={"processor_config.json": {"image_processor": {**pictures, "resample": 3, "do_normalize": False},
                                         "feature_extractor": {**plain(extractor), **features}}},
        faults=wrong,
    )  # fmt: skip


def granite_speech(dtype: torch.dtype, *, encoder: dict[str, Any], projector: dict[str, Any], window: int, downsample: int,
                   mels: int, names: Callable[[str], str] = lambda name: name, adapter: bool) -> Made:  # fmt: skip
    """Granite Speech: blocks of attention whose last one is not full, and windows of rows likewise."""
    from transformers import GraniteSpeechConfig, GraniteSpeechFeatureExtractor, GraniteSpeechForConditionalGeneration, GraniteSpeechProcessor

    tokens = vision.tokenizer("<|start_of_role|>", "<|audio|>")
    config = GraniteSpeechConfig(
        text_config={
            "model_type": "granite", "vocab_size": vision.VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
            "embedding_multiplier": 2.0, "logits_scaling": 0.3, "residual_multiplier": 0.9, "attention_multiplier": 0.4,
            "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
        },
        encoder_config={"input_dim": 2 * mels, **encoder},
        projector_config={"model_type": "blip_2_qformer", "encoder_hidden_size": encoder["hidden_dim"], "vocab_size": 8, **projector},
        audio_token_index=tokens.convert_tokens_to_ids("<|audio|>"), has_lora_adapter=adapter, window_size=window, downsample_rate=downsample,
        attn_implementation="eager",
    )  # fmt: skip
    extractor = GraniteSpeechFeatureExtractor(n_mels=mels, projector_window_size=window, projector_downsample_rate=downsample)
    processor = GraniteSpeechProcessor(extractor, tokens)

    def drawn(name: str, values: Tensor, random: torch.Generator) -> Tensor:
        normal = torch.randn(values.shape, generator=random)
        if not values.is_floating_point():
            return values
        if name.endswith("running_var"):
            return 0.5 + normal.abs()
        if name.endswith(("running_mean", "projector.query", "rel_pos_emb.weight")):
            return normal
        return vision.draw(name.replace("LayerNorm", "norm").replace("to_q.", "q_proj."), values, random)

    def rows(model: Any, inputs: dict[str, Any]) -> list[Tensor]:
        output = model.get_audio_features(inputs["input_features"], return_dict=True).pooler_output
        scaled = output * model.config.text_config.embedding_multiplier  # The decoder scales all its input.
        return [rows[mask] for rows, mask in zip(scaled, inputs["input_features_mask"])]

    def of_sound(processor: Any, values: np.ndarray) -> Tensor:
        return processor.audio_processor([values])["input_features"][0]

    def count(processor: Any, samples: int) -> int:
        try:
            return processor.audio_processor([np.zeros(samples, np.float32)])["audio_embed_sizes"][0]
        except RuntimeError:
            return 0

    def every(kind: str, change: Callable[[Any], Any]) -> Callable[[Any, ExitStack], None]:
        def inject(model: Any, stack: ExitStack) -> None:
            for module in model.model.encoder.modules():
                if type(module).__name__ in (f"GraniteSpeechConformer{kind}", kind):
                    change(module)

        return inject

    def other_blocks(model: Any, stack: ExitStack) -> None:
        size = encoder["context_size"] + 3
        every("Attention", lambda module: setattr(module, "context_size", size))(model, stack)
        places = torch.arange(size)
        farthest = encoder["max_pos_emb"]
        model.model.encoder.attention_dists = (places[:, None] - places[None, :]).clamp(-farthest, farthest) + farthest

    def mirrored(model: Any, stack: ExitStack) -> None:
        model.model.encoder.attention_dists = 2 * encoder["max_pos_emb"] - model.model.encoder.attention_dists

    def other_padding(module: Any) -> None:
        module.padding = (module.padding[0] - 1, module.padding[1] + 1)

    def no_statistics(module: Any) -> None:
        module.running_mean.zero_()
        module.running_var.fill_(1.0)

    def no_classes(model: Any, stack: ExitStack) -> None:
        model.model.encoder.out_mid = torch.nn.Linear(encoder["output_dim"], encoder["hidden_dim"])
        model.model.encoder.out_mid.weight.zero_(), model.model.encoder.out_mid.bias.zero_()

    def classes_after_another_layer(model: Any, stack: ExitStack) -> None:
        model.model.encoder.num_layers = 2 * (encoder["num_layers"] // 2 + 1)

    def queries_without_norm(model: Any, stack: ExitStack) -> None:
        model.model.projector.qformer.layernorm.forward = lambda x: x

    faults = {
        "no relative positions": every("Attention", lambda module: module.rel_pos_emb.weight.zero_()),
        "positions mirrored": mirrored, "other blocks": other_blocks, "kernels shifted": every("DepthWiseConv1d", other_padding),
        "no statistics": every("BatchNorm1d", no_statistics), "no classes": no_classes,
        "classes after another layer": classes_after_another_layer, "queries without a norm": queries_without_norm,
    }  # fmt: skip
    prompts = [
        Prompt("<|start_of_role|>the town:<|audio|> and then in the rain?", [1]),
        Prompt("<|start_of_role|>the<|audio|> ran on, and then <|audio|>one", [2, 2]),  # a batch of two lengths would change the rows
    ]
    model = GraniteSpeechForConditionalGeneration(config)
    adapted = [key for key in model.state_dict() if "language_model.layers" in key and key.split(".")[-2] in ("q_proj", "v_proj", "down_proj")]
    features = {"sampling_rate": 16000, "projector_window_size": window, "projector_downsample_rate": downsample, "feature_size": mels}
    older = {"preprocessor_config.json": {**features, "melspec_kwargs": extractor.melspec_kwargs, "feature_extractor_type": "GraniteSpeechFeatureExtractor"}}
    return Made(
        model, processor, prompts, of_sound, rows, count, {"mels": mels, "window": window, "downsample": downsample}, dtype=dtype, names=names,
        logits=1 / config.text_config.logits_scaling,  # left out by this release, unlike GraniteForCausalLM
        draw=drawn, adapted=adapted if adapter else [], files=older if adapter else {"processor_config.json": {"audio_processor": features}},
        faults=faults,
    )  # fmt: skip


def published_granite_speech(name: str) -> str:
    """As ibm-granite/granite-speech-3.3-2b names its tensors."""
    for new, old in (("model.language_model.", "language_model.model."), ("lm_head.", "language_model.lm_head."), ("model.", "")):
        if name.startswith(new):
            return old + name.removeprefix(new)
    return name


MODELS: dict[str, Callable[[], Made]] = {
    "gemma4-tiny": lambda: gemma4(
        torch.float32, together=True, features={"feature_size": 16},
        audio={"hidden_size": 24, "num_attention_heads": 2, "subsampling_conv_channels": [16, 6], "output_proj_dims": 20, "rms_norm_eps": 1e-2,
               "attention_logit_cap": 4.0, "use_clipped_linears": False},
    ),
    "gemma4-tiny-bf16": lambda: gemma4(
        torch.bfloat16, together=False,
        features={"feature_size": 18, "frame_length_ms": 25.0, "hop_length_ms": 12.5, "min_frequency": 125.0, "max_frequency": 7600.0, "mel_floor": 1e-2},
        audio={"hidden_size": 32, "num_attention_heads": 4, "hidden_act": "gelu_pytorch_tanh", "subsampling_conv_channels": [21, 4],
               "conv_kernel_size": 4, "residual_weight": 0.7, "attention_chunk_size": 5, "attention_context_left": 9,
               "attention_context_right": 3, "attention_logit_cap": 2.0, "use_clipped_linears": True, "rms_norm_eps": 1e-2,
               "gradient_clipping": 1.5, "output_proj_dims": 28},
    ),
    "granite-speech-tiny": lambda: granite_speech(
        torch.float32, names=published_granite_speech, adapter=True, mels=20, window=6, downsample=2,
        encoder={"hidden_dim": 24, "num_layers": 3, "num_heads": 3, "feedforward_mult": 2, "dim_head": 10, "output_dim": 9,
                 "context_size": 20, "max_pos_emb": 23, "conv_kernel_size": 5, "conv_expansion_factor": 2},
        projector={"hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 28, "layer_norm_eps": 1e-3,
                   "cross_attention_frequency": 1},
    ),
    "granite-speech-tiny-bf16": lambda: granite_speech(
        torch.bfloat16, adapter=False, mels=16, window=15, downsample=5,
        encoder={"hidden_dim": 32, "num_layers": 2, "num_heads": 4, "feedforward_mult": 3, "output_dim": 12, "context_size": 16,
                 "max_pos_emb": 16, "conv_kernel_size": 4, "conv_expansion_factor": 1},
        projector={"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 32, "hidden_act": "relu",
                   "cross_attention_frequency": 2},
    ),
}  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    for name in sys.argv[1:] or MODELS:
        generate(name, MODELS[name])


if __name__ == "__main__":
    main()
