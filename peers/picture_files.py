"""A checkpoint with a vision tower as two GGUF files, written by llama.cpp's own converter.

    python picture_files.py LLAMA_CPP CHECKPOINT OUT

Writes OUT/model.gguf and OUT/mmproj.gguf, in bfloat16 like the checkpoint. The checkpoint is one of `cargo xtask bench`, which has a
tokenizer that the converter does not know.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

LLAMA_CPP, CHECKPOINT, OUT = map(Path, sys.argv[1:])
sys.path[1:1] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import gguf  # noqa: E402
import torch  # noqa: E402
from conversion import ModelBase, get_model_class  # noqa: E402
from conversion.base import TextModel  # noqa: E402

TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
ARCHITECTURES = {"smolvlm": ("VLlama3ForCausalLM", "SmolVLMForConditionalGeneration")}


def with_blank_line(path: Path) -> None:
    """Puts two line feeds, which llama.cpp writes before an overview, in place of the last merged token."""
    tokenizer = json.loads(path.read_text())
    model = tokenizer["model"]
    left, right = model["merges"].pop()
    model["vocab"]["ĊĊ"] = model["vocab"].pop(left + right)
    model["merges"].append(["Ċ", "Ċ"])
    path.write_text(json.dumps(tokenizer))


with tempfile.TemporaryDirectory() as parent:
    folder = Path(parent, "checkpoint")
    shutil.copytree(CHECKPOINT, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    for weights in CHECKPOINT.glob("*.safetensors"):
        (folder / weights.name).symlink_to(weights.resolve())
    config = json.loads((folder / "config.json").read_text())
    text, tower = ARCHITECTURES[config["model_type"]]
    config["architectures"] = [tower]
    (folder / "config.json").write_text(json.dumps(config))
    with_blank_line(folder / "tokenizer.json")
    template = (folder / "chat_template.jinja").read_text()
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    OUT.mkdir(parents=True, exist_ok=True)
    for mmproj, path in [(False, OUT / "model.gguf"), (True, OUT / "mmproj.gguf")]:
        converter = get_model_class(tower if mmproj else text, mmproj=mmproj)
        hparams = ModelBase.load_hparams(folder, False)
        with torch.inference_mode():
            converter(folder, gguf.LlamaFileType.MOSTLY_BF16, path, hparams=hparams).write()
