"""A small Llama of random weights over somebody's vocabulary: a model that knows nothing, as a folder.

    python random_checkpoint.py path/to/tokenizer.json FOLDER

Two layers of width 64; logits spread by about 1, the same seed gives the same weights. What it writes is not committed:
`crates/lm-conversation/tests/random_calls.rs` runs it with `LM_MODEL=FOLDER`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>")


def main(tokenizer_json: Path, folder: Path) -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer.from_file(str(tokenizer_json))
    size = tokenizer.get_vocab_size()
    end = next(id for name in ENDS if (id := tokenizer.token_to_id(name)) is not None)
    config = LlamaConfig(vocab_size=-(-size // 256) * 256, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=4096,
                         tie_word_embeddings=True, eos_token_id=end, initializer_range=0.125)  # fmt: skip
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    shutil.copy(tokenizer_json, folder / "tokenizer.json")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
