"""The tiny encoders as GGUF files, written by llama.cpp's own converter.

    python gguf.py LLAMA_CPP

LLAMA_CPP is a folder with llama.cpp's ``conversion/`` and ``gguf-py/``, as for ``../gguf/generate.py``. The vectors beside the folders are
the judge: files hold their numbers, and the pooling.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path = [path for path in sys.path if Path(path or ".").resolve() != HERE.resolve()]
LLAMA_CPP = Path(sys.argv[1])
sys.path[1:1] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import gguf  # noqa: E402
from conversion import ModelBase, get_model_class  # noqa: E402
from conversion.base import TextModel  # noqa: E402

# By folder, the float type of the matrices.
FILES = {
    "bert-mean": "MOSTLY_F16",
    "bert-cls": "ALL_F32",
    "distilbert-mean": "ALL_F32",
    "roberta-mean": "ALL_F32",
    "modernbert-cls": "ALL_F32",
    "modernbert-mean": "ALL_F32",
}
# The converter knows pre-tokenizers by what they make of a text.
TextModel.get_vocab_base_pre = lambda self, tokenizer: "bert-bge" if type(tokenizer.backend_tokenizer.model).__name__ == "WordPiece" else "gpt-2"


def main() -> None:
    output = HERE / "gguf"
    output.mkdir(exist_ok=True)
    for name, kind in FILES.items():
        folder = HERE / name
        hparams = ModelBase.load_hparams(folder, False)
        classes = get_model_class(hparams["architectures"][0])
        target = output / f"{name}.gguf"
        try:
            classes(folder, gguf.LlamaFileType[kind], target).write()
            print(name, target.stat().st_size // 1000, "kB", file=sys.stderr)
        except Exception as error:  # noqa: BLE001
            print(name, "FAILED", type(error), error, file=sys.stderr)
            target.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
