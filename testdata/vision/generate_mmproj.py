"""Tiny vision models as two GGUF files each, written by llama.cpp's own converter: the text model and its `mmproj` file.

    python generate_mmproj.py LLAMA_CPP                 # every model
    python generate_mmproj.py LLAMA_CPP qwen2-vl-tiny   # one of them

LLAMA_CPP is a folder with llama.cpp's `conversion/` and `gguf-py/`; the source package of llama-cpp-python has one under
`vendor/llama.cpp` (`pip download --no-deps --no-binary llama-cpp-python llama-cpp-python`).

Writes `mmproj/NAME/model.gguf` and `mmproj/NAME/mmproj-NAME.gguf`. Files of a checkpoint beside this script are judged by its golden files.
Where these files cannot express a checkpoint's settings, a checkpoint with the settings that they imply is made by `generate.py`, and
what transformers computes for it is beside the files (with Pillow 12.3.0, as in ../media). `ADDED` are keys of the format that the converter does not write.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

HERE = Path(__file__).parent
LLAMA_CPP = Path(sys.argv[1])
sys.path[1:1] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import generate as tiny  # noqa: E402
import gguf  # noqa: E402
from conversion import ModelBase, get_model_class  # noqa: E402
from conversion.base import TextModel  # noqa: E402

# The converter knows pre-tokenizers by what they make of a text; that of the tiny checkpoints is GPT-2's with no merges of note.
TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"

FILE_TYPES = {torch.float32: gguf.LlamaFileType.ALL_F32, torch.bfloat16: gguf.LlamaFileType.MOSTLY_BF16}
ARCHITECTURES = {
    "gemma3": "Gemma3ForConditionalGeneration", "gemma4": "Gemma4ForConditionalGeneration",
    "idefics3": "Idefics3ForConditionalGeneration", "lfm2_vl": "Lfm2VlForConditionalGeneration",
    "qwen2_vl": "Qwen2VLForConditionalGeneration", "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
    "qwen3_5": "Qwen3_5ForConditionalGeneration", "qwen3_vl": "Qwen3VLForConditionalGeneration",
    "smolvlm": "SmolVLMForConditionalGeneration",
}  # fmt: skip
# Architectures of text models that have one of their own, as published checkpoints name them.
TEXT_ARCHITECTURES = {"idefics3": "VLlama3ForCausalLM", "lfm2_vl": "Lfm2ForCausalLM", "smolvlm": "VLlama3ForCausalLM"}
# Settings of published image processors, as llama.cpp has them.
LFM2_VL = {"encoder_patch_size": 16, "downsample_factor": 2, "tile_size": 512, "min_tiles": 2, "max_tiles": 10, "min_image_tokens": 64,
           "max_image_tokens": 256, "max_pixels_tolerance": 2.0, "use_thumbnail": True, "do_image_splitting": True}  # fmt: skip
LFM2_VL_PICTURES = {"settings": LFM2_VL, "layers": 3, "context": 1024, "views": (1, 1), "sizes": ((90, 70), (61, 150))}
# Widths of heads that make up the width of the tower, the base of RoPE and epsilon of published models.
GEMMA4 = {"num_attention_heads": 3, "num_key_value_heads": 3, "rms_norm_eps": 1e-6, "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0}}
TANH, SLIDING = "gelu_pytorch_tanh", ("sliding_attention",) * 3


def lfm2_vl(dtype: torch.dtype, **given: Any) -> tiny.Made:
    made = tiny.lfm2_vl(dtype, gelu="gelu", **given, **LFM2_VL_PICTURES)
    del made.faults["positions resized without averaging"]  # every view has more patches than the table
    return made


MADE: dict[str, Callable[[], tiny.Made]] = {
    "gemma3-tiny": lambda: tiny.gemma3(torch.float32, tiny.published_gemma3, window=6, attention=12, gelu=TANH, layers=SLIDING),
    "gemma3-tiny-bf16": lambda: tiny.gemma3(torch.bfloat16, tiny.published_gemma3, window=20, attention=12, gelu=TANH, layers=SLIDING),
    "gemma4-tiny": lambda: tiny.gemma4(torch.float32, together=True, clipped=False, standardize=True, gelu=TANH, vision=GEMMA4),
    "gemma4-tiny-bf16": lambda: tiny.gemma4(torch.bfloat16, together=True, clipped=True, standardize=False, gelu=TANH, vision=GEMMA4),
    "idefics3-tiny-bf16": lambda: tiny.smolvlm("idefics3", torch.bfloat16, gelu=TANH, image_size=24),
    "lfm2-vl-tiny": lambda: lfm2_vl(torch.float32, norm=True, bias=True, patches=25, names=tiny.published_lfm2_vl),
    "lfm2-vl-tiny-bf16": lambda: lfm2_vl(torch.bfloat16, norm=False, bias=False, patches=64, names=tiny.published_lfm2_vl),
    "qwen3-vl-tiny-bf16": lambda: tiny.qwen_vl(
        "qwen3_vl", torch.bfloat16, text={"head_dim": 12}, rope=tiny.mrope([4, 1, 1], mrope_interleaved=True),
        vision={"hidden_size": 24, "intermediate_size": 56, "out_hidden_size": 32, "hidden_act": TANH,
                "num_position_embeddings": 256, "deepstack_visual_indexes": [1]},
    ),
    "smolvlm-tiny": lambda: tiny.smolvlm("smolvlm", torch.float32, gelu=TANH, image_size=24),
}  # fmt: skip
KEPT = ("qwen2-vl-tiny", "qwen2_5-vl-tiny", "qwen3-vl-tiny", "qwen3_5-vl-tiny")

PIXELS = {"clip.vision.image_min_pixels": 400, "clip.vision.image_max_pixels": 1700}
ADDED: dict[str, dict[str, int]] = {
    "gemma4-tiny": {"clip.vision.projector.scale_factor": 2},
    "gemma4-tiny-bf16": {"clip.vision.projector.scale_factor": 2},
    "qwen2-vl-tiny": PIXELS,
    "qwen2_5-vl-tiny": {**PIXELS, "clip.vision.window_size": 19},
    "qwen3-vl-tiny": PIXELS,
    "qwen3-vl-tiny-bf16": PIXELS,
    "qwen3_5-vl-tiny": PIXELS,
}
# Rows of embeddings in the text models: the converter leaves Gemma's out that have no token.
CHOICES = {"gemma3": 289, "gemma4": 291}
# Keys of the image processor that the converter reads and our checkpoints leave out.
PREPROCESSOR = {"gemma3": {"image_seq_length": 9}, "gemma4": {"image_mean": [0.0] * 3, "image_std": [1.0] * 3},
                "lfm2_vl": {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}}  # fmt: skip


def draw(name: str, values: Tensor, random: torch.Generator, drawn: Callable[..., Tensor] = tiny.draw) -> Tensor:
    """The projection of Gemma 3 is F16 in every file."""
    weights = drawn(name, values, random)
    return weights.half().float() if "mm_input_projection" in name else weights


tiny.draw = draw


def convert(folder: Path, out: Path, name: str) -> None:
    """Writes both files of a checkpoint, whose folder is changed."""
    config = json.loads((folder / "config.json").read_text())
    kind = config["model_type"]
    config["architectures"] = [ARCHITECTURES[kind]]
    for keys in (config, config.get("text_config", {})):  # the classes' defaults are beyond the tiny vocabulary
        keys["eos_token_id"] = 0
        keys.pop("bos_token_id", None)
    (folder / "config.json").write_text(json.dumps(config))
    template = (folder / "chat_template.jinja").read_text()
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    preprocessor = folder / "preprocessor_config.json"
    settings = json.loads(preprocessor.read_text()) if preprocessor.exists() else {}
    preprocessor.write_text(json.dumps(settings | PREPROCESSOR.get(kind, {})))
    text_type = FILE_TYPES[torch.bfloat16 if config.get("dtype") == "bfloat16" else torch.float32]
    out.mkdir(parents=True, exist_ok=True)
    for mmproj, path in [(False, out / "model.gguf"), (True, folder / "mmproj.gguf")]:
        architecture = ARCHITECTURES[kind] if mmproj else TEXT_ARCHITECTURES.get(kind, ARCHITECTURES[kind])
        converter = get_model_class(architecture, mmproj=mmproj)
        converter.no_mtp = True
        if kind == "gemma4" and not mmproj:
            converter.set_vocab = converter._set_vocab_gpt2
        hparams = ModelBase.load_hparams(folder, False)
        with torch.inference_mode():
            converter(folder, text_type, path, hparams=hparams).write()
    with_keys(folder / "mmproj.gguf", out / f"mmproj-{name}.gguf", ADDED.get(name, {}))


def with_keys(source: Path, out: Path, added: dict[str, int]) -> None:
    """Copies a file, with more keys."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            element = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], element)
    for key, value in added.items():
        writer.add_uint32(key, value)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write(name: str) -> None:
    out = HERE / "mmproj" / name
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, name)
        if name in KEPT:
            shutil.copytree(HERE / name, folder)
            (folder / "golden.safetensors").unlink()
        else:
            tiny.HERE = Path(parent)
            tiny.CHOICES = CHOICES.get(name.split("-")[0], tiny.VOCABULARY)
            tiny.generate(name, MADE[name])
            out.mkdir(parents=True, exist_ok=True)
            for file in ("golden.json", "golden.safetensors"):
                shutil.move(folder / file, out / file)
        convert(folder, out, name)


def main() -> None:
    torch.set_num_threads(1)
    tiny.logging.set_verbosity_error()
    for name in sys.argv[2:] or [*KEPT, *MADE]:
        write(name)


main()
