//! Invalid vocabularies of GGUF files give typed errors that name the key; irregular but valid ones load.

use lm_tokenizer::{Error, SpecialTokens, TextSegment, TokenKind, Tokenizer};

use crate::gguf_writer::{Metadata, Value};

/// The 256 byte characters, and `more` tokens with their types.
fn byte_level(merges: &[&str], more: &[(&str, i32)]) -> Metadata {
    let shifted = (0x100..).filter_map(char::from_u32);
    let printable = (0..=0xFF_u8).filter(|byte| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF));
    let mut tokens: Vec<String> = printable.map(|byte| char::from(byte).to_string()).collect();
    tokens.extend(shifted.take(256 - tokens.len()).map(String::from));
    let mut types = vec![1; 256];
    for (token, ty) in more {
        tokens.push((*token).to_owned());
        types.push(*ty);
    }
    Metadata::default()
        .with("general.architecture", "llama")
        .with("tokenizer.ggml.model", "gpt2")
        .with("tokenizer.ggml.pre", "gpt-2")
        .with("tokenizer.ggml.tokens", Value::Texts(tokens))
        .with("tokenizer.ggml.token_type", Value::Ints(types))
        .with("tokenizer.ggml.merges", Value::Texts(merges.iter().map(|merge| (*merge).to_owned()).collect()))
}

/// `<unk>` and these pieces with descending scores.
fn sentencepiece(pieces: &[&str]) -> Metadata {
    let tokens: Vec<String> = ["<unk>"].iter().chain(pieces).map(|piece| (*piece).to_owned()).collect();
    let types = (0..tokens.len()).map(|id| if id == 0 { 2 } else { 1 }).collect();
    let scores = (0..tokens.len()).map(|id| -(id as f32)).collect();
    Metadata::default()
        .with("general.architecture", "llama")
        .with("tokenizer.ggml.model", "llama")
        .with("tokenizer.ggml.tokens", Value::Texts(tokens))
        .with("tokenizer.ggml.token_type", Value::Ints(types))
        .with("tokenizer.ggml.scores", Value::Floats(scores))
        .with("tokenizer.ggml.unknown_token_id", Value::U32(0))
}

/// Expects the file to be rejected with an error of this kind that contains these words.
fn check(metadata: &Metadata, is: fn(&Error) -> bool, words: &[&str]) {
    let error = metadata.tokenizer().expect_err(words[0]);
    assert!(is(&error), "{error:?}");
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let message = format!("{error}: {}", cause.unwrap_or_default());
    for word in words {
        assert!(message.contains(word), "no {word} in {message}");
    }
}

fn is_invalid(error: &Error) -> bool {
    matches!(error, Error::Format(lm_formats::Error::InvalidValue { .. }))
}

fn is_unsupported(error: &Error) -> bool {
    matches!(error, Error::Format(lm_formats::Error::UnsupportedValue { .. }))
}

fn is_gguf(error: &Error) -> bool {
    matches!(error, Error::Format(lm_formats::Error::Gguf { .. }))
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode_segments(&[TextSegment::Content(text)]).expect("any text has ids")
}

#[test]
fn unknown_kinds_list_the_known() {
    let good = byte_level(&[], &[]);
    check(
        &good.clone().with("tokenizer.ggml.model", "wordlevel"),
        is_unsupported,
        &["wordlevel", "bert, gemma4, gpt2, llama, t5"],
    );
    check(
        &good.clone().with("tokenizer.ggml.pre", "new"),
        is_unsupported,
        &["`tokenizer.ggml.pre` is new", "qwen2"],
    );
    for (key, may_lack) in
        [("model", false), ("pre", true), ("tokens", false), ("token_type", true), ("merges", false)]
    {
        let key = format!("tokenizer.ggml.{key}");
        if !may_lack {
            check(&good.clone().without(&key), is_gguf, &[&key]);
        }
        check(&good.clone().with(&key, Value::U32(1)), is_gguf, &[&key]);
    }
    let trimmed = sentencepiece(&["a"]).with("tokenizer.ggml.remove_extra_whitespaces", Value::Bool(true));
    check(&trimmed, is_unsupported, &["remove_extra_whitespaces", "false"]);
}

#[test]
fn merges_of_unknown_tokens_are_rejected() {
    for merge in ["a", "a ", " b", "", "aa b", "a bb", "a b c", "a b"] {
        check(&byte_level(&[merge], &[]), is_invalid, &["tokenizer.ggml.merges[0]", "two tokens"]);
    }
    check(&byte_level(&["a b", "ab a"], &[("ab", 1)]), is_invalid, &["tokenizer.ggml.merges[1]"]);
    let unused = byte_level(&["a b"], &[("ab", 5)]);
    check(&unused, is_invalid, &["tokenizer.ggml.merges[0]"]);
}

/// Text encodes to the last of them; the others decode to the same text.
#[test]
fn tokens_of_equal_spelling_have_equal_text() {
    let more = [("ab", 1), ("<x>", 3), ("ab", 1), ("<x>", 3), ("c d", 4), ("ab", 1)];
    let tokenizer = byte_level(&["a b"], &more).tokenizer().expect("is valid");
    assert_eq!(tokenizer.vocab_size(), 262);
    assert_eq!(tokenizer.encode("ab<x>c d").expect("has ids"), [261, 259, 260]);
    for (id, text) in [(256, "ab"), (258, "ab"), (261, "ab"), (257, "<x>"), (259, "<x>")] {
        assert_eq!(tokenizer.token_bytes(id), text.as_bytes(), "{id}");
    }
    assert_eq!(tokenizer.token_kind(257), TokenKind::Special);
    assert_eq!(tokenizer.token_kind(256), TokenKind::Text);
}

/// Control tokens with the type of ordinary text, as in files of careless converters: those that the chat
/// template writes and no merges lead to become control tokens.
#[test]
fn markers_of_the_template_are_control_tokens() {
    let more = [("ab", 1), ("<|im_start|>", 1), ("<|im_end|>", 1), ("<|other|>", 1), ("<a>", 1)];
    let file = byte_level(&["a b"], &more);
    let (split, ids_of_end) = (file.clone().tokenizer().expect("is valid"), [258]);
    assert_ne!(split.encode("<|im_end|>").expect("has ids"), ids_of_end);
    assert!(!split.end_ids().contains(&258));
    let template = "<|im_start|>{{ messages[0].content }}<|im_end|>";
    let tokenizer = file.with("tokenizer.chat_template", template).tokenizer().expect("is valid");
    assert_eq!(tokenizer.encode("<|im_start|>ab<|im_end|>").expect("has ids"), [257, 256, 258]);
    assert_eq!(tokenizer.token_kind(258), TokenKind::Special);
    assert_eq!(tokenizer.token_kind(259), TokenKind::Text, "the template does not write it");
    assert_ne!(ids(&tokenizer, "<|im_end|>"), ids_of_end, "a user's text stays text");
    assert!(tokenizer.end_ids().contains(&258));
}

/// A merge is longer than its parts, so that circular merges terminate too.
#[test]
fn cyclic_merges_end() {
    let more = [("ab", 1), ("ba", 1), ("aba", 1), ("bab", 1), ("abab", 1)];
    let merges = ["ab a", "a b", "b a", "a ba", "ba b", "ab ab", "aba b", "a bab", "a b", "b a"];
    let tokenizer = byte_level(&merges, &more).tokenizer().expect("the pairs are tokens");
    let text = "ab".repeat(500);
    assert_eq!(tokenizer.decode(&ids(&tokenizer, &text), SpecialTokens::Keep), text);
}

#[test]
fn mismatched_token_arrays_are_rejected() {
    let none = byte_level(&[], &[]).with("tokenizer.ggml.tokens", Value::Texts(vec![]));
    check(&none, is_invalid, &["tokenizer.ggml.tokens", "a list of 0"]);
    let short = byte_level(&[], &[]).with("tokenizer.ggml.token_type", Value::Ints(vec![1]));
    check(&short, is_invalid, &["tokenizer.ggml.token_type", "a list of 1", "256"]);
    for ty in [7, -1, i32::MIN] {
        let ty_text = format!("is {ty}");
        check(
            &byte_level(&[], &[("x y", ty)]),
            is_unsupported,
            &["tokenizer.ggml.token_type[256]", &ty_text, "1 (normal)"],
        );
    }
    let scores =
        |scores: Vec<f32>| sentencepiece(&["a"]).with("tokenizer.ggml.scores", Value::Floats(scores));
    check(&scores(vec![0.0]), is_invalid, &["tokenizer.ggml.scores", "a list of 1"]);
    check(&scores(vec![0.0, f32::NAN]), is_invalid, &["tokenizer.ggml.scores[1]", "NaN"]);
    assert!(scores(vec![f32::NEG_INFINITY, f32::INFINITY]).tokenizer().is_ok());
}

/// Programs write -1, or an id of a larger vocabulary, where there is no such token.
#[test]
fn special_token_outside_of_the_vocabulary_is_none() {
    for name in ["bos", "eos", "eot", "eom", "mask", "padding", "separator", "unknown"] {
        let key = format!("tokenizer.ggml.{name}_token_id");
        for id in [256, u32::MAX - 1, u32::MAX] {
            let tokenizer = byte_level(&[], &[]).with(&key, Value::U32(id)).tokenizer();
            let tokenizer = tokenizer.unwrap_or_else(|error| panic!("{key} = {id}: {error}"));
            assert!(tokenizer.end_ids().is_empty(), "{key} = {id}");
            assert_eq!(tokenizer.encode_prompt("a").expect("any text has ids").len(), 1, "{key} = {id}");
        }
        let text = byte_level(&[], &[]).with(&key, "none");
        if ["eos", "eot", "eom", "unknown"].contains(&name) {
            assert!(text.tokenizer().is_err(), "{key} is a text");
        }
    }
    let known = byte_level(&[], &[("</s>", 3)]).with("tokenizer.ggml.eos_token_id", Value::U32(256));
    let unset = known.with("tokenizer.ggml.eot_token_id", Value::U32(u32::MAX));
    assert_eq!(unset.tokenizer().expect("a tokenizer").end_ids(), [256]);
}

/// As in llama.cpp: the file's keys, or by the kind of the vocabulary.
#[test]
fn tokens_around_a_raw_prompt_are_those_of_the_file() {
    let file = || {
        byte_level(&[], &[("<s>", 3), ("</s>", 3)])
            .with("tokenizer.ggml.bos_token_id", Value::U32(256))
            .with("tokenizer.ggml.eos_token_id", Value::U32(257))
    };
    let (bos, eos) = ("tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token");
    let prompt = |metadata: Metadata, text: &str| {
        let tokenizer = metadata.tokenizer().expect("a tokenizer");
        let ids = tokenizer.encode_prompt(text).expect("any text has ids");
        let prefix = tokenizer.prefix_ids().expect("any text has ids");
        (ids.iter().map(|&id| id.min(300)).collect::<Vec<_>>(), prefix)
    };
    let a = ids(&file().tokenizer().expect("a tokenizer"), "a")[0];
    assert_eq!(prompt(file(), "a"), (vec![a], vec![]));
    assert_eq!(prompt(file().with(bos, Value::Bool(true)), "a"), (vec![256, a], vec![256]));
    let both = || file().with(bos, Value::Bool(true)).with(eos, Value::Bool(true));
    assert_eq!(prompt(both(), "a"), (vec![256, a, 257], vec![256]));
    // A text that spells the token has it once.
    assert_eq!(prompt(file().with(bos, Value::Bool(true)), "<s>a"), (vec![256, a], vec![256]));
    assert_eq!(prompt(file().with("tokenizer.ggml.pre", "llama-bpe"), "a").1, [256]);
    let off = file().with("tokenizer.ggml.pre", "llama-bpe").with(bos, Value::Bool(false));
    assert!(prompt(off, "a").1.is_empty());
    // Without an id there is no token to add.
    let unnamed = byte_level(&[], &[]).with(bos, Value::Bool(true));
    assert!(prompt(unnamed, "a").1.is_empty());
    let pieces = sentencepiece(&["a", "▁", "b"]);
    assert_eq!(prompt(pieces, "a").1, [1], "its unnamed default");
    let ended = sentencepiece(&["a", "▁", "b"]).without("tokenizer.ggml.eos_token_id");
    let ids = prompt(ended.with(eos, Value::Bool(true)), "a").0;
    assert_eq!((ids.first(), ids.last()), (Some(&1), Some(&2)), "its unnamed defaults");
}

#[test]
fn unspellable_text_needs_an_unknown_token() {
    let without = sentencepiece(&["a"]).without("tokenizer.ggml.unknown_token_id");
    check(&without, is_invalid, &["tokenizer.ggml.unknown_token_id", "<0x00>"]);
    let tokenizer = sentencepiece(&["a", "▁"]).tokenizer().expect("there is one");
    assert_eq!(ids(&tokenizer, "aéa"), [2, 1, 0, 1]);
    assert_eq!(tokenizer.token_kind(0), TokenKind::Special);
}

#[test]
fn too_long_pieces_are_rejected() {
    let long = "é".repeat(600);
    check(&sentencepiece(&["é", &long]), is_invalid, &["tokenizer.ggml.tokens[2]", "600 characters"]);
    let control =
        sentencepiece(&["é", &long, "▁"]).with("tokenizer.ggml.token_type", Value::Ints(vec![2, 1, 3, 1]));
    let tokenizer = control.tokenizer().expect("it is found as a whole");
    assert_eq!(tokenizer.encode(&long).expect("has ids"), [2]);
}

#[test]
fn unused_and_empty_tokens_are_never_encoded() {
    let more = [("ab", 5), ("", 1), ("ab", 1), ("", 3), ("<end>", 3), ("", 5)];
    let tokenizer = byte_level(&["a b"], &more).tokenizer().expect("only one of them is in use");
    assert_eq!((tokenizer.logits_width(), tokenizer.vocab_size()), (262, 261));
    assert_eq!(ids(&tokenizer, "ab"), [258]);
    for id in [256, 257, 259, 261] {
        assert_eq!(
            (tokenizer.token_bytes(id), tokenizer.token_kind(id)),
            (&b""[..], TokenKind::Text),
            "{id}"
        );
    }
}
