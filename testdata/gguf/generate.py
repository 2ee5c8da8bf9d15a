"""The tiny checkpoints of ../models as GGUF files, written by llama.cpp's own converter.

    python generate.py LLAMA_CPP              # every file
    python generate.py LLAMA_CPP qwen3-tiny   # those of one checkpoint

LLAMA_CPP is a folder with llama.cpp's `conversion/` and `gguf-py/`; the source package of llama-cpp-python has one under
`vendor/llama.cpp` (`pip download --no-deps --no-binary llama-cpp-python llama-cpp-python`).

Where the file holds the checkpoint's own numbers, the logits beside the checkpoint are the judge. Otherwise `NAME.golden.json`
has what transformers computes with the numbers that the package `gguf` reads from the file.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent
MODELS = HERE.parent / "models"
LLAMA_CPP = Path(sys.argv[1])
sys.path[1:1] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import gguf  # noqa: E402
from conversion import ModelBase, get_model_class  # noqa: E402
from conversion.base import TextModel  # noqa: E402
from conversion.llama import LlamaModel  # noqa: E402
from gguf.quants import dequantize, quantize  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

# The converter knows pre-tokenizers by what they make of a text; that of the tiny checkpoints is GPT-2's with no merges of note.
TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"

load_hparams = ModelBase.load_hparams


def plain_hparams(folder: Path, is_mistral_format: bool) -> dict[str, Any]:
    """Without the defaults of transformers' config class, which give every Nemotron-H experts, and a Falcon of one KV head many."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config if config["model_type"] in ("falcon", "nemotron_h") else load_hparams(folder, is_mistral_format)


ModelBase.load_hparams = staticmethod(plain_hparams)

FILE_TYPES = {"F32": gguf.LlamaFileType.ALL_F32, "F16": gguf.LlamaFileType.MOSTLY_F16,
              "BF16": gguf.LlamaFileType.MOSTLY_BF16, "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
# checkpoint, type of the matrices, tensors of a part (0: one file)
FILES: list[tuple[str, str, int]] = [
    ("apertus-tiny-bias", "BF16", 0),
    ("cohere-tiny", "BF16", 0),
    ("cohere-tiny-bias", "BF16", 0),
    ("cohere-tiny-norms", "BF16", 0),
    ("cohere2-tiny", "BF16", 0),
    ("deepseek-v2-tiny", "BF16", 0),
    ("deepseek-v2-tiny-groups", "F16", 0),
    ("deepseek-v3-tiny-direct", "F16", 0),
    ("ernie4_5-moe-tiny", "BF16", 0),
    ("ernie4_5-tiny", "BF16", 0),
    ("exaone4-tiny", "BF16", 0),
    ("exaone4-tiny-full", "BF16", 0),
    ("falcon-tiny", "BF16", 0),
    ("falcon-tiny-groups", "BF16", 0),
    ("gemma-tiny", "BF16", 0),
    ("bamba-tiny", "BF16", 0),
    ("gemma2-tiny", "BF16", 0),
    ("gemma3-tiny", "BF16", 0),
    ("gemma3n-tiny", "BF16", 0),
    ("gemma4-tiny", "BF16", 0),
    ("gemma4-tiny-experts", "BF16", 0),
    ("gemma4-tiny-keys", "BF16", 0),
    ("glm4-tiny", "BF16", 0),
    ("glm4-moe-lite-tiny", "BF16", 0),
    ("glm4-moe-tiny", "BF16", 0),
    ("gpt2-tiny", "BF16", 0),
    ("gpt-oss-tiny", "BF16", 0),
    ("gpt-oss-tiny-bf16", "BF16", 0),
    ("granite-hybrid-tiny", "BF16", 0),
    ("granite-hybrid-tiny-experts", "BF16", 0),
    ("granite-tiny", "BF16", 0),
    ("granite-tiny-bias", "BF16", 0),
    ("granite-moe-tiny", "BF16", 0),
    ("granite-moe-tiny-shared", "BF16", 0),
    ("hunyuan-v1-dense-tiny", "BF16", 0),
    ("lfm2-moe-tiny", "BF16", 0),
    ("lfm2-tiny", "BF16", 0),
    ("llama-tiny", "Q8_0", 0),
    ("llama-tiny-bias", "F16", 0),
    ("minimax-m2-tiny", "BF16", 0),
    ("ministral3-tiny", "BF16", 0),
    ("mistral-tiny-full", "BF16", 0),
    ("mixtral-tiny", "BF16", 0),
    ("nemotron-h-tiny", "BF16", 0),
    ("olmo2-tiny-gqa", "BF16", 0),
    ("olmo3-tiny", "BF16", 0),
    ("olmo3-tiny-plain", "BF16", 0),
    ("olmo3-tiny-types", "BF16", 0),
    ("olmoe-tiny", "BF16", 0),
    ("phi-tiny", "BF16", 0),
    ("phi3-tiny", "BF16", 0),
    ("phi3-tiny-window", "BF16", 0),
    ("qwen2-moe-tiny", "BF16", 0),
    ("qwen2-tiny", "BF16", 0),
    ("qwen2-tiny-yarn", "BF16", 0),
    ("qwen3-moe-tiny", "BF16", 0),
    ("qwen3-next-tiny", "BF16", 0),
    ("qwen3_5-moe-tiny", "BF16", 0),
    ("qwen3_5-tiny", "BF16", 0),
    ("qwen3_5-tiny-vision", "BF16", 0),
    ("qwen3-tiny", "BF16", 14),
    ("qwen3-tiny", "Q8_0", 0),
    ("seed-oss-tiny", "BF16", 0),
    ("seed-oss-tiny-bias", "BF16", 0),
    ("smollm3-tiny", "BF16", 0),
    ("stablelm-tiny", "BF16", 0),
    ("stablelm-tiny-parallel", "BF16", 0),
    ("starcoder2-tiny", "BF16", 0),
    ("starcoder2-tiny-plain", "BF16", 0),
]  # fmt: skip
# Architectures whose converter reads a SentencePiece vocabulary, which the tiny checkpoints, all with byte-level tokenizers, lack.
SENTENCEPIECE = ("ernie4_5", "ernie4_5_moe", "gemma", "gemma2", "gemma4", "gemma4_text", "phi3")
# Those whose converter knows the special tokens of published vocabularies by name, which these lack too.
SPECIAL_TOKENS = ("glm4", "glm4_moe", "glm4_moe_lite")
# Settings that files have no key for, as all published checkpoints of the architecture have them. (Gemma 3: every sixth layer
# without a window.) None for Gemma 3n, Qwen 3.5, Qwen3-Next and models with Mamba-2 layers: their files round elsewhere. Of Gemma 3n
# they have some matrices of bfloat16 as F32, and quantiles in place of shares; of Qwen 3.5 and Mamba-2 the exponentials of a
# vector, and of Qwen 3.5 heads in another order.
IMPLIED: dict[str, dict[str, Any]] = {
    "bamba-tiny": {},
    "falcon-tiny-groups": {"rope_theta": 10000.0},
    "gemma2-tiny": {"query_pre_attn_scalar": 16, "rope_theta": 10000.0},
    "gemma3-tiny": {"query_pre_attn_scalar": 16, "sliding_window_pattern": 6},
    "gemma3n-tiny": {},
    "gemma4-tiny-experts": {"tie_word_embeddings": True},
    "gpt-oss-tiny": {"swiglu_limit": 7.0},
    "granite-hybrid-tiny": {},
    "granite-hybrid-tiny-experts": {},
    "nemotron-h-tiny": {},
    "gpt-oss-tiny-bf16": {
        "swiglu_alpha": 1.702, "swiglu_limit": 7.0,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0, "beta_fast": 8.0, "beta_slow": 1.0,
                            "truncate": False, "original_max_position_embeddings": 32},
    },
    "olmoe-tiny": {"rms_norm_eps": 1e-5},
    "qwen2-tiny-yarn": {"use_sliding_window": False},
    "qwen3-next-tiny": {},
    "qwen3_5-moe-tiny": {},
    "qwen3_5-tiny": {},
    "qwen3_5-tiny-vision": {},
    "starcoder2-tiny": {"sliding_window": None},
}
TOLERANCE = 2e-4


@dataclass(frozen=True)
class Variant:
    """A file of a checkpoint with other settings, `CHECKPOINT-bf16.WORD.gguf`."""

    checkpoint: str
    word: str
    settings: dict[str, Any]  # the converter's
    reference: dict[str, Any]  # those that transformers has besides
    without: tuple[str, ...] = ()  # keys that the file then lacks


YARN = {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0, "original_max_position_embeddings": 32}
VARIANTS = [
    # Text models of Mistral Small 3: the architecture of Ministral 3, and no scaling.
    Variant("mistral-tiny-full", "mistral3", {"architectures": ["Mistral3ForConditionalGeneration"]}, {}),
    # No base of RoPE: 10,000, and neither the config class's nor the checkpoint's.
    Variant("mistral-tiny-full", "no-base", {"architectures": ["Mistral3ForConditionalGeneration"]},
            {"rope_theta": 10000.0}, ("mistral3.rope.freq_base",)),
    Variant("smollm3-tiny", "no-base", {}, {"rope_theta": 10000.0}, ("smollm3.rope.freq_base",)),
    # As DeepSeek-R1-0528-Qwen3-8B: a reciprocal under a name that transformers passes over.
    Variant("qwen2-tiny-yarn", "attn-factor",
            {"rope_scaling": {**YARN, "attn_factor": 0.8782488562869419}, "use_sliding_window": False}, {}),
    # A factor that does not follow from the others.
    Variant("qwen2-tiny-yarn", "attention-factor",
            {"rope_scaling": {**YARN, "attention_factor": 1.5}, "use_sliding_window": False}, {}),
]  # fmt: skip


def convert(folder: Path, out: Path, kind: str, part: int = 0) -> None:
    hparams = ModelBase.load_hparams(folder, False)
    converter = get_model_class(hparams["architectures"][0])
    converter.no_mtp = not any("mtp." in name for name in tensor_names(folder))
    if hparams["model_type"] in (*SENTENCEPIECE, *SPECIAL_TOKENS):
        converter.set_vocab = converter._set_vocab_gpt2
    with torch.inference_mode():
        converter(folder, FILE_TYPES[kind], out, split_max_tensors=part).write()


def tensor_names(folder: Path) -> list[str]:
    names: list[str] = []
    for path in folder.glob("*.safetensors"):
        if path.name != "golden.safetensors":
            with safe_open(path, "pt") as file:
                names += file.keys()
    return names


def reference(folder: Path) -> Any:
    config = AutoConfig.from_pretrained(folder).get_text_config()
    nested = {f"^{prefix}": "model." for prefix in (r"model\.language_model\.", r"language_model\.model\.")}
    return AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32, key_mapping=nested,
                                                attn_implementation="eager").eval().float()  # fmt: skip


def save_golden(model: Any, path: Path, of: str) -> None:
    prompts = []
    generator = torch.Generator().manual_seed(7)
    for length in (5, 40):
        ids = torch.randint(0, 284, (1, length), generator=generator)
        with torch.inference_mode():
            logits = model(ids).logits[0, -1]
        prompts.append({"ids": ids[0].tolist(), "logits": [float(np.float32(value)) for value in logits]})
    path.write_text(json.dumps({"of": of, "tolerance": TOLERANCE, "prompts": prompts}) + "\n")


def requantized(folder: Path) -> Any:
    """The model with its matrices as Q8_0 has them. The converter quantises rows, in whatever order, with the same function."""
    model = reference(folder)
    for parameter in model.parameters():
        if parameter.ndim == 2 and parameter.shape[1] % 32 == 0:
            blocks = quantize(parameter.detach().numpy(), gguf.GGMLQuantizationType.Q8_0)
            parameter.data = torch.from_numpy(dequantize(blocks, gguf.GGMLQuantizationType.Q8_0))
    return model


def remove_head(folder: Path) -> None:
    for path in folder.glob("model*.safetensors"):
        tensors = load_file(path)
        if tensors.pop("lm_head.weight", None) is not None:
            save_file(tensors, path, metadata={"format": "pt"})
    index = folder / "model.safetensors.index.json"
    if index.exists():
        described = json.loads(index.read_text())
        described["weight_map"].pop("lm_head.weight", None)
        index.write_text(json.dumps(described))


def with_implied(folder: Path, name: str, kind: str, settings: dict[str, Any]) -> None:
    """Converts the checkpoint with other settings, and keeps what the reference computes with these."""
    with tempfile.TemporaryDirectory() as parent:
        copy = Path(parent, folder.name)  # which the file has as the model's name
        shutil.copytree(folder, copy)
        config = json.loads((folder / "config.json").read_text()) | settings
        (copy / "config.json").write_text(json.dumps(config))
        if settings.get("tie_word_embeddings"):
            remove_head(copy)
        convert(copy, HERE / f"{name}.gguf", kind)
        save_golden(reference(copy), HERE / f"{name}.golden.json", f"{folder.name}, {settings}")


def variant(row: Variant) -> None:
    folder, path = MODELS / row.checkpoint, HERE / f"{row.checkpoint}-bf16.{row.word}.gguf"
    with tempfile.TemporaryDirectory() as parent:
        copy = Path(parent, folder.name)
        shutil.copytree(folder, copy)
        config = json.loads((folder / "config.json").read_text()) | row.settings
        (copy / "config.json").write_text(json.dumps(config))
        convert(copy, path, "BF16")
        if row.without:
            shutil.move(path, copy / "whole.gguf")
            copied(copy / "whole.gguf", path, row.without)
        architectures = json.loads((folder / "config.json").read_text())["architectures"]
        (copy / "config.json").write_text(json.dumps(config | row.reference | {"architectures": architectures}))
        save_golden(reference(copy), path.with_suffix(".golden.json"), f"{row.checkpoint}, {row.settings | row.reference}")


def copied(source: Path, out: Path, without: tuple[str, ...]) -> None:
    """Copies a file, some keys left out."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    copy_keys(reader, writer, ("general.architecture", *without))
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    write_file(writer)


def copy_keys(reader: Any, writer: Any, without: tuple[str, ...]) -> None:
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in without:
            element = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], element)


def write_file(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# Offsets of the halves in a block that scale it; all other bits may be any.
SCALES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "MXFP4": [], "IQ4_XS": [0], "IQ3_S": [0],
          "IQ3_XXS": [0], "IQ2_S": [0], "IQ2_XS": [0], "IQ2_XXS": [0], "IQ1_M": [], "IQ1_S": [0]}  # fmt: skip
# Steps of the mixed file's blocks, so that weights are of the order of 0.05.
STEPS = {"Q8_0": 5e-4, "Q4_0": 8e-3, "Q4_1": 8e-3, "Q5_0": 4e-3, "Q5_1": 4e-3, "Q2_K": 2e-3, "Q3_K": 5e-4, "Q4_K": 2e-4,
         "Q5_K": 1e-4, "Q6_K": 3e-5, "IQ4_NL": 6e-4, "MXFP4": 0.0, "IQ4_XS": 6e-5, "IQ3_S": 4e-4,
         "IQ3_XXS": 4e-4, "IQ2_S": 1e-3, "IQ2_XS": 1e-3, "IQ2_XXS": 1e-3, "IQ1_M": 7e-3, "IQ1_S": 7e-3}  # fmt: skip


def random_blocks(kind: str, rows: int, cols: int, random: np.random.Generator) -> np.ndarray:
    """Rows of blocks of a type that `gguf` reads but does not write, at random."""
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    blocks = random.integers(0, 256, (rows, cols // block, size), dtype=np.uint8)
    for number, offset in enumerate(SCALES[kind]):
        steps = STEPS[kind] * random.uniform(0.5, 1.5, blocks.shape[:2])
        if number == 1:  # what is added or taken away, about half of the range
            steps *= -8 if kind in ("Q4_1", "Q5_1") else 1
        blocks[..., offset : offset + 2] = steps.astype(np.float16)[..., None].view(np.uint8)
    if kind == "MXFP4":
        blocks[..., 0] = random.integers(119, 122, blocks.shape[:2])
    if kind == "IQ1_M":  # the step is in the upper four bits of the last four words
        steps = (STEPS[kind] * random.uniform(0.5, 1.5, blocks.shape[:2])).astype(np.float16).view(np.uint16)
        words = blocks[..., 48:].copy().view("<u2") & 0x0FFF
        words |= (steps[..., None] >> np.arange(0, 16, 4, dtype=np.uint16) & 15).astype("<u2") << 12
        blocks[..., 48:] = words.view(np.uint8)
    return blocks.reshape(rows, -1)


def mixed() -> None:
    """A Llama whose matrices are in all block types in turn."""
    kinds = [kind for kind in SCALES if kind != "Q8_0"]  # which is left for short rows
    config = json.loads((MODELS / "llama-tiny-bias" / "config.json").read_text())
    config |= {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 2,
               "num_key_value_heads": 1, "head_dim": 64, "attention_bias": False, "mlp_bias": False,
               "dtype": "float32"}  # fmt: skip
    random = np.random.default_rng(3)
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), attn_implementation="eager").eval()
    stored: dict[str, tuple[str, np.ndarray]] = {}
    turn = 0
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.data = torch.empty_like(parameter).uniform_(0.5, 1.5)
            continue
        kind = "Q8_0" if parameter.shape[1] % 256 else kinds[turn % len(kinds)]
        turn += kind != "Q8_0"
        blocks = random_blocks(kind, *parameter.shape, random)
        parameter.data = torch.from_numpy(dequantize(blocks, gguf.GGMLQuantizationType[kind]))
        stored[name] = kind, blocks
    assert {kind for kind, _ in stored.values()} == set(SCALES)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        Path(folder, "config.json").write_text(json.dumps(config))
        Path(folder, "tokenizer.json").write_bytes((MODELS / "llama-tiny-bias" / "tokenizer.json").read_bytes())
        floats = Path(folder) / "floats.gguf"
        convert(Path(folder), floats, "F32")
        with_blocks(floats, HERE / "mixed.gguf", stored, config)
    save_golden(model, HERE / "mixed.golden.json", "mixed.gguf")


def with_blocks(floats: Path, out: Path, stored: dict[str, tuple[str, np.ndarray]], config: dict[str, Any]) -> None:
    """Copies a file of floats, with blocks in place of its matrices."""
    reader = gguf.GGUFReader(floats)
    writer = gguf.GGUFWriter(out, "llama")
    copy_keys(reader, writer, ("general.architecture", "general.file_type"))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    blocks = {names.get_name(name, try_suffixes=(".weight",)): found for name, found in stored.items()}
    heads = {".attn_q.": config["num_attention_heads"], ".attn_k.": config["num_key_value_heads"]}
    for tensor in reader.tensors:
        if tensor.name not in blocks:
            writer.add_tensor(tensor.name, np.array(tensor.data))
            continue
        kind, rows = blocks[tensor.name]
        for part, count in heads.items():
            if part in tensor.name:
                rows = LlamaModel.permute(torch.from_numpy(rows), count, count).numpy()
        writer.add_tensor(tensor.name, np.ascontiguousarray(rows), raw_dtype=gguf.GGMLQuantizationType[kind])
    write_file(writer)


def main() -> None:
    torch.set_num_threads(1)
    wanted = sys.argv[2:]
    for checkpoint, kind, part in FILES:
        if wanted and checkpoint not in wanted:
            continue
        folder, name = MODELS / checkpoint, f"{checkpoint}-{kind.lower()}"
        if checkpoint in IMPLIED:
            with_implied(folder, name, kind, IMPLIED[checkpoint])
            continue
        convert(folder, HERE / f"{name}.gguf", kind, part)
        if kind == "Q8_0":
            save_golden(requantized(folder), HERE / f"{name}.golden.json", checkpoint)
    for row in VARIANTS:
        if not wanted or row.checkpoint in wanted or row.word in wanted:
            variant(row)
    if not wanted or "mixed" in wanted:
        mixed()


main()
