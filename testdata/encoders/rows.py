"""The checkpoints: their configs, tokenizers, the modules of sentence-transformers, and faults that must show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn


def zero(*parts: str) -> Any:
    """Zeroes parameters whose name has one of the parts."""

    def fault(model: Any) -> None:
        found = [value for name, value in model.named_parameters() if any(part in name for part in parts)]
        assert found, parts
        for value in found:
            value.data.zero_()

    return fault


def one_type(model: Any) -> None:
    """Gives all tokens the embedding of the first type."""
    table = next(value for name, value in model.named_parameters() if "token_type_embeddings" in name)
    table.data[:] = table.data[0].clone()


def activation(new: nn.Module) -> Any:
    def fault(model: Any) -> None:
        for module in model.modules():
            for name in ("intermediate_act_fn", "act", "act_fn", "activation"):
                if isinstance(getattr(module, name, None), (nn.Module, type(torch.tanh))):
                    setattr(module, name, new)

    return fault


def shift_positions(model: Any) -> None:
    """Positions one row later."""
    for name, value in model.named_parameters():
        if "position_embeddings" in name:
            value.data.copy_(value.data.roll(-1, 0))


def epsilon(model: Any) -> None:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps += 0.02


def windows(width: int) -> Any:
    def fault(model: Any) -> None:
        model.config.local_attention = width

    return fault


def rename(old: str, new: str) -> Any:
    def change(folder: Path) -> None:
        path = folder / "model.safetensors"
        tensors = load_file(path)
        save_file({name.replace(old, new): value for name, value in tensors.items()}, path, {"format": "pt"})

    return change


def setting(file: str, **values: Any) -> Any:
    def change(folder: Path) -> None:
        path = folder / file
        keys = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**keys, **values}, indent=2) + "\n")

    return change


def without(file: str, *keys: str) -> Any:
    def change(folder: Path) -> None:
        path = folder / file
        values = json.loads(path.read_text())
        path.write_text(json.dumps({key: value for key, value in values.items() if key not in keys}, indent=2) + "\n")

    return change


BERT = {"model_type": "bert", "pad_token_id": 0}
GEMMA = {"model_type": "gemma3_text", "use_bidirectional_attention": True, "max_position_embeddings": 128, "pad_token_id": 1,
         "bos_token_id": 0, "eos_token_id": 2}  # fmt: skip

ROWS: dict[str, dict[str, Any]] = {
    "bert-mean": {  # as all-MiniLM: mean, truncated; the class without a head
        "class": "BertModel", "dtype": "bfloat16", "tokenizer": "wordpiece", "model_max_length": 64, "max_seq_length": 24,
        "config": {**BERT, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
                   "max_position_embeddings": 64, "layer_norm_eps": 1e-12},
        "pooling": {"pooling_mode": "mean"}, "modules": lambda: [Normalize()],
        "faults": {"no positions": zero("position_embeddings"), "no token types": zero("token_type_embeddings"),
                   "positions one later": shift_positions, "norm biases missing": zero("LayerNorm.bias")},
    },
    "bert-cls": {  # as bge: the first token, a prompt for queries, tensors of a masked language model; GELU by tanh, more token types
        "class": "BertForMaskedLM", "dtype": "float16", "tokenizer": "wordpiece-cased", "spare_rows": 7,
        "config": {**BERT, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 5,
                   "max_position_embeddings": 80, "layer_norm_eps": 0.01, "type_vocab_size": 3, "hidden_act": "gelu_new"},
        "pooling": {"pooling_mode": "cls", "include_prompt": False}, "modules": lambda: [Normalize()],
        "prompts": {"query": "Find the passages about this: ", "document": ""},
        "ask": [{}, {"prompt_name": "query"}],
        "faults": {"another epsilon": epsilon, "no positions": zero("position_embeddings"), "SiLU": activation(nn.SiLU())},
    },
    "bert-legacy": {  # names of TensorFlow's checkpoints, ReLU, one wide head, one token type, vectors of any length
        "class": "BertModel", "dtype": "float32", "tokenizer": "wordpiece", "model_max_length": 40,
        "config": {**BERT, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 1,
                   "max_position_embeddings": 40, "layer_norm_eps": 1e-6, "type_vocab_size": 1, "hidden_act": "relu"},
        "pooling": {"pooling_mode": "mean"}, "modules": list,
        "files": [rename("LayerNorm.weight", "LayerNorm.gamma"), rename("LayerNorm.bias", "LayerNorm.beta"),
                  rename("embeddings.word", "bert.embeddings.word")],
        "faults": {"GELU": activation(nn.GELU()), "no token types": zero("token_type_embeddings")},
    },
    "xlm-roberta-cls": {  # as bge-m3: Unigram, positions after the padding token's
        "class": "XLMRobertaModel", "dtype": "bfloat16", "tokenizer": "unigram", "model_max_length": 60,
        "config": {"model_type": "xlm-roberta", "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
                   "num_attention_heads": 6, "max_position_embeddings": 62, "layer_norm_eps": 1e-5, "type_vocab_size": 1,
                   "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
        "pooling": {"pooling_mode": "cls"}, "modules": lambda: [Normalize()],
        "faults": {"positions one later": shift_positions, "no token types": zero("token_type_embeddings")},
    },
    "xlm-roberta-dense": {  # as multilingual-e5: a mean with prompts, then a dense layer
        "class": "XLMRobertaModel", "dtype": "float32", "tokenizer": "unigram", "model_max_length": 30,
        "config": {"model_type": "xlm-roberta", "hidden_size": 32, "intermediate_size": 52, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "max_position_embeddings": 50, "layer_norm_eps": 1e-5, "type_vocab_size": 1,
                   "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
        "pooling": {"pooling_mode": "mean"}, "modules": lambda: [Dense(32, 20), Normalize()],
        "prompts": {"query": "query: ", "document": "passage: "}, "ask": [{}, {"prompt_name": "query"}],
        "faults": {"positions one later": shift_positions},
    },
    "roberta-mean": {  # byte-level BPE, a padding token of another id
        "class": "RobertaModel", "dtype": "float16", "tokenizer": "roberta",
        "config": {"model_type": "roberta", "hidden_size": 36, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 3, "max_position_embeddings": 150, "layer_norm_eps": 1e-5, "type_vocab_size": 2,
                   "pad_token_id": 3, "bos_token_id": 0, "eos_token_id": 1, "hidden_act": "gelu_new"},
        "pooling": {"pooling_mode": "mean"}, "modules": list,
        "faults": {"positions one later": shift_positions},
    },
    "bert-cross": {  # as ms-marco-MiniLM: a pair with token types, the sigmoid by default
        "class": "BertForSequenceClassification", "dtype": "bfloat16", "tokenizer": "wordpiece", "model_max_length": 50,
        "token_types": True,
        "config": {**BERT, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                   "max_position_embeddings": 50, "num_labels": 1},
        "faults": {"no token types": zero("token_type_embeddings"), "one token type": one_type, "no pooler": zero("pooler.dense")},
    },
    "bert-cross-labels": {  # three labels, an activation of older versions, no second token type from the tokenizer
        "class": "BertForSequenceClassification", "dtype": "float32", "tokenizer": "wordpiece", "model_max_length": 31,
        "config": {**BERT, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
                   "max_position_embeddings": 50, "num_labels": 3},
        "files": [setting("config.json", sbert_ce_default_activation_function="torch.nn.modules.activation.Sigmoid")],
        "faults": {"no token types": zero("token_type_embeddings")},
    },
    "xlm-roberta-cross": {  # as bge-reranker-v2-m3; the logits themselves
        "class": "XLMRobertaForSequenceClassification", "dtype": "float16", "tokenizer": "unigram", "model_max_length": 60,
        "config": {"model_type": "xlm-roberta", "hidden_size": 40, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "max_position_embeddings": 62, "layer_norm_eps": 1e-5, "type_vocab_size": 1,
                   "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "num_labels": 1},
        "files": [setting("config.json", sentence_transformers={"activation_fn": "torch.nn.modules.linear.Identity"})],
        "faults": {"no dense layer": zero("classifier.dense")},
    },
    "qwen3-cross": {  # a causal model with a classifier of the last token, in pieces, without tokens around the texts
        "class": "Qwen3ForSequenceClassification", "dtype": "bfloat16", "tokenizer": "plain", "model_max_length": 200,
        "config": {"model_type": "qwen3", "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256,
                   "pad_token_id": 1, "num_labels": 1, "tie_word_embeddings": True},
    },
    "modernbert-cls": {  # as gte-modernbert: windows in two of three layers, no biases
        "class": "ModernBertModel", "dtype": "bfloat16", "tokenizer": "byte-level", "model_max_length": 128,
        "config": {"model_type": "modernbert", "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 5,
                   "num_attention_heads": 4, "max_position_embeddings": 128, "local_attention": 14, "pad_token_id": 1,
                   "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
        "pooling": {"pooling_mode": "cls"}, "modules": lambda: [Normalize()],
        "faults": {"no windows": windows(1000), "a window one wider": windows(16), "a window one narrower": windows(12)},
    },
    "modernbert-mean": {  # biases everywhere, a full layer in two, keys of older versions
        "class": "ModernBertModel", "dtype": "float16", "tokenizer": "byte-level", "model_max_length": 100,
        "config": {"model_type": "modernbert", "hidden_size": 36, "intermediate_size": 50, "num_hidden_layers": 4,
                   "num_attention_heads": 3, "max_position_embeddings": 100, "local_attention": 21, "pad_token_id": 1,
                   "global_attn_every_n_layers": 2, "global_rope_theta": 4000.0, "local_rope_theta": 300.0, "norm_bias": True,
                   "attention_bias": True, "mlp_bias": True, "norm_eps": 0.01, "hidden_activation": "gelu_pytorch_tanh",
                   "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
        "pooling": {"pooling_mode": "mean"}, "modules": list,
        "files": [without("config.json", "layer_types", "rope_parameters"),
                  setting("config.json", global_rope_theta=4000.0, local_rope_theta=300.0, global_attn_every_n_layers=2)],
        "faults": {"another epsilon": epsilon, "norm biases missing": zero("norm.bias"), "no windows": windows(1000)},
    },
    "modernbert-cross": {  # the mean of a pair
        "class": "ModernBertForSequenceClassification", "dtype": "bfloat16", "tokenizer": "byte-level", "model_max_length": 90,
        "config": {"model_type": "modernbert", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "max_position_embeddings": 100, "local_attention": 10, "pad_token_id": 1,
                   "classifier_pooling": "mean", "classifier_bias": True, "num_labels": 1, "classifier_activation": "silu",
                   "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
        "faults": {"no norm's spread": zero("head.dense.bias")},
    },
    "modernbert-cross-cls": {  # the first token of a pair, norms with biases
        "class": "ModernBertForSequenceClassification", "dtype": "float32", "tokenizer": "byte-level", "model_max_length": 90,
        "config": {"model_type": "modernbert", "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2,
                   "num_attention_heads": 2, "max_position_embeddings": 100, "local_attention": 10, "pad_token_id": 1,
                   "classifier_pooling": "cls", "num_labels": 2, "norm_bias": True,
                   "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
        "faults": {"norm biases missing": zero("head.norm.bias")},
    },
    "distilbert-mean": {
        "class": "DistilBertModel", "dtype": "bfloat16", "tokenizer": "wordpiece", "model_max_length": 64,
        "config": {"model_type": "distilbert", "dim": 40, "hidden_dim": 72, "n_layers": 3, "n_heads": 5,
                   "max_position_embeddings": 64, "pad_token_id": 0},
        "pooling": {"pooling_mode": "mean"}, "modules": lambda: [Normalize()],
        "faults": {"positions one later": shift_positions},
    },
    "distilbert-relu": {
        "class": "DistilBertForMaskedLM", "dtype": "float32", "tokenizer": "wordpiece-cased", "model_max_length": 64,
        "config": {"model_type": "distilbert", "dim": 24, "hidden_dim": 48, "n_layers": 2, "n_heads": 2, "activation": "relu",
                   "max_position_embeddings": 70, "pad_token_id": 0},
        "pooling": {"pooling_mode": "cls"}, "modules": list,
    },
    "distilbert-cross": {
        "class": "DistilBertForSequenceClassification", "dtype": "float16", "tokenizer": "wordpiece", "model_max_length": 64,
        "config": {"model_type": "distilbert", "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4,
                   "max_position_embeddings": 64, "pad_token_id": 0, "num_labels": 1},
        "faults": {"no dense layer": zero("pre_classifier")},
    },
    "nomic-bert-mean": {  # as nomic-embed-text, under the names of transformers
        "class": "NomicBertModel", "dtype": "bfloat16", "tokenizer": "wordpiece", "model_max_length": 64,
        "config": {"model_type": "nomic_bert", "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3,
                   "num_attention_heads": 4, "max_position_embeddings": 64, "layer_norm_eps": 1e-12, "pad_token_id": 0},
        "pooling": {"pooling_mode": "mean"}, "modules": lambda: [Normalize()],
        "prompts": {"query": "search_query: ", "document": "search_document: "}, "ask": [{}, {"prompt_name": "query"}],
        "faults": {"no token types": zero("token_type_embeddings"), "GELU": activation(nn.GELU())},
    },
    "nomic-bert-cls": {
        "class": "NomicBertModel", "dtype": "float16", "tokenizer": "wordpiece-cased", "model_max_length": 50,
        "config": {"model_type": "nomic_bert", "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "type_vocab_size": 1,
                   "num_attention_heads": 2, "max_position_embeddings": 60, "layer_norm_eps": 0.01, "pad_token_id": 0,
                   "hidden_act": "gelu", "rope_parameters": {"rope_type": "default", "rope_theta": 200.0}},
        "pooling": {"pooling_mode": "cls"}, "modules": list,
        "faults": {"another epsilon": epsilon},
    },
    "gemma3-mean": {  # as EmbeddingGemma: two dense layers after the mean, prompts
        "class": "Gemma3TextModel", "dtype": "bfloat16", "tokenizer": "gemma", "model_max_length": 100,
        "config": {**GEMMA, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
                   "num_key_value_heads": 1, "head_dim": 16, "sliding_window": 12, "sliding_window_pattern": 3,
                   "query_pre_attn_scalar": 16},
        "pooling": {"pooling_mode": "mean"},
        "modules": lambda: [Dense(48, 96, bias=False, activation_function=nn.Identity()),
                            Dense(96, 48, bias=False, activation_function=nn.Identity()), Normalize()],
        "prompts": {"query": "task: search result | query: ", "document": "title: none | text: "},
        "ask": [{}, {"prompt_name": "query"}],
    },
    "gemma3-cls": {  # an odd window, two query heads for a key head
        "class": "Gemma3TextModel", "dtype": "float32", "tokenizer": "gemma", "model_max_length": 100,
        "config": {**GEMMA, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "head_dim": 12, "sliding_window": 9, "query_pre_attn_scalar": 20, "rms_norm_eps": 0.01,
                   "layer_types": ["sliding_attention", "full_attention"]},
        "pooling": {"pooling_mode": "cls"}, "modules": lambda: [Normalize()],
    },
    "gemma3-last": {  # the window as wide as the context, all layers windowed
        "class": "Gemma3TextModel", "dtype": "float16", "tokenizer": "gemma", "model_max_length": 100,
        "config": {**GEMMA, "hidden_size": 40, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
                   "num_key_value_heads": 2, "head_dim": 24, "sliding_window": 50, "query_pre_attn_scalar": 24,
                   "layer_types": ["sliding_attention", "sliding_attention"], "hidden_activation": "gelu"},
        "pooling": {"pooling_mode": "lasttoken"}, "modules": list,
    },
}  # fmt: skip
