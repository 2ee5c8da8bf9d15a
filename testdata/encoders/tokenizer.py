"""Small tokenizers of the three kinds that encoders have: WordPiece, Unigram, byte-level BPE."""

from __future__ import annotations

from typing import NamedTuple

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = (
    "rain",
    "The rain in the town ran on and on, didn't it?",
    "one on one, and then the other one went on in the rain; the town ran on and on in the rain, on and on and on and on",
    "Übergröße: 10 €\nin two  lines [SEP] naïve 東京 ½",
)
CORPUS = [*TEXTS, "and then the other one went on", "a town of one", "it went on in two lines", "10 100 1000 over under"] * 4


class Made(NamedTuple):
    tokenizer: Tokenizer
    names: dict[str, str]


def special(*texts: str) -> list[AddedToken]:
    return [AddedToken(text, special=True, normalized=False) for text in texts]


def word_piece(lowercase: bool = True) -> Made:
    """As BERT's: [PAD] is the first token."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    trainer = trainers.WordPieceTrainer(vocab_size=220, special_tokens=special(*names.values()), show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    made.decoder = decoders.WordPiece()
    ids = [(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=ids
    )
    return Made(made, names)


def unigram() -> Made:
    """As XLM-RoBERTa's: <s> <pad> </s> <unk>."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" {2,}", " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=special(*names.values()), unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator(CORPUS, trainer)
    made.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    ids = [(name, made.token_to_id(name)) for name in ("<s>", "</s>")]
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=ids
    )
    return Made(made, {**names, "cls_token": "<s>", "sep_token": "</s>"})


def byte_level(roberta: bool = False) -> Made:
    """As RoBERTa's or ModernBERT's; the padding token is the fourth or the second."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    start, end = ("<s>", "</s>") if roberta else ("[CLS]", "[SEP]")
    names = {"cls_token": start, "sep_token": end, "unk_token": "<unk>", "pad_token": "<pad>"}
    order = list(names.values()) if roberta else [names[key] for key in ("unk_token", "pad_token", "cls_token", "sep_token")]
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), special_tokens=special(*order),
        show_progress=False,
    )  # fmt: skip
    made.train_from_iterator(CORPUS, trainer)
    ids = [(name, made.token_to_id(name)) for name in (start, end)]
    if roberta:
        made.post_processor = processors.RobertaProcessing(ids[1], ids[0], True, False)
    else:
        made.post_processor = processors.TemplateProcessing(
            single=f"{start}:0 $A:0 {end}:0", pair=f"{start}:0 $A:0 {end}:0 $B:1 {end}:1", special_tokens=ids
        )
    return Made(made, names)


def plain() -> Made:
    """As a decoder's: no tokens around a text."""
    made, names = byte_level()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return Made(made, {"pad_token": "<pad>"})


def gemma() -> Made:
    """As Gemma's: <bos> before a text and <eos> after it."""
    made, _ = unigram()
    ids = [(name, made.token_to_id(name)) for name in ("<s>", "</s>")]
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=ids)
    return Made(made, {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"})


MAKERS = {
    "wordpiece": word_piece,
    "wordpiece-cased": lambda: word_piece(lowercase=False),
    "unigram": unigram,
    "byte-level": byte_level,
    "roberta": lambda: byte_level(roberta=True),
    "plain": plain,
    "gemma": gemma,
}
