//! A small tokenizer for tests (feature `test-util`).

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::token_table::byte_of_char;
use crate::{TokenId, Tokenizer};

/// Merges in the byte-level alphabet (`Ġ` is a space), so that words are several bytes long.
const MERGES: &[(&str, &str)] = &[
    ("h", "e"),
    ("Ġ", "t"),
    ("Ġt", "he"),
    ("i", "n"),
    ("in", "g"),
    ("o", "r"),
    ("Ġ", "w"),
    ("Ġw", "or"),
    ("l", "d"),
    ("Ġwor", "ld"),
    ("l", "l"),
    ("he", "ll"),
    ("hell", "o"),
    ("u", "s"),
    ("e", "r"),
    ("us", "er"),
    ("{", "\""),
    ("\"", ":"),
];

const SPECIAL: &[&str] = &["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const ADDED: &[&str] =
    &["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"];

/// A small byte-level tokenizer with the ChatML tokens: 256 bytes, a few merges, nine added tokens.
///
/// The end-of-sequence ids are `<|im_end|>` and `<|endoftext|>`.
pub fn tokenizer() -> Tokenizer {
    let tokenizer = Tokenizer::from_json(tokenizer_json().as_bytes()).expect("the test tokenizer is valid");
    let end_ids: Vec<TokenId> =
        ["<|im_end|>", "<|endoftext|>"].iter().filter_map(|text| tokenizer.token_id(text)).collect();
    tokenizer.with_end_ids(end_ids)
}

/// The `tokenizer.json` of [`tokenizer`].
pub fn tokenizer_json() -> String {
    let alphabet: HashMap<u8, char> = byte_of_char().into_iter().map(|(c, byte)| (byte, c)).collect();
    let mut vocab = Map::new();
    for byte in 0..=u8::MAX {
        vocab.insert(alphabet[&byte].to_string(), json!(byte));
    }
    for (left, right) in MERGES {
        let id = vocab.len();
        vocab.insert(format!("{left}{right}"), json!(id));
    }
    let first_added = vocab.len();
    let added: Vec<Value> = SPECIAL
        .iter()
        .map(|text| (text, true))
        .chain(ADDED.iter().map(|text| (text, false)))
        .enumerate()
        .map(|(i, (text, special))| {
            json!({
                "id": first_added + i, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": special,
            })
        })
        .collect();
    let byte_level = |use_regex| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": byte_level(true),
        "post_processor": null,
        "decoder": byte_level(true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab, "merges": MERGES.iter().map(|(left, right)| json!([left, right])).collect::<Vec<_>>(),
        },
    })
    .to_string()
}
