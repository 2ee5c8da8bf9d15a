//! A synthetic `tokenizer.json` of any size.

use serde_json::{Map, Value, json};

/// Creates a byte-level BPE tokenizer with `size` tokens: 256 bytes, then merges of an earlier token and a
/// letter, then the tokens `added`.
pub(super) fn of_size(size: usize, added: &[&str]) -> Value {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut tokens: Vec<String> = (0..=u8::MAX).map(|byte| char_of_byte(byte).to_string()).collect();
    let mut merges = Vec::new();
    let merged = size.saturating_sub(added.len());
    for i in 0..merged.saturating_sub(tokens.len()) {
        let (left, right) = (tokens[i / LETTERS.len()].clone(), char::from(LETTERS[i % LETTERS.len()]));
        tokens.push(format!("{left}{right}"));
        merges.push(json!([left, right.to_string()]));
    }
    let vocab: Map<String, Value> =
        tokens.into_iter().enumerate().map(|(id, token)| (token, json!(id))).collect();
    let added = added.iter().enumerate().map(|(i, text)| added_token(merged + i, text));
    let added: Vec<_> = added.collect();
    let byte_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": byte_level,
        "post_processor": null,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab, "merges": merges,
        },
    })
}

fn added_token(id: usize, text: &str) -> Value {
    json!({
        "id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true,
    })
}

/// The character of a byte in byte-level vocabularies: itself if it is printable, otherwise one from U+0100
/// on.
fn char_of_byte(byte: u8) -> char {
    let seen = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if seen(byte) {
        return char::from(byte);
    }
    let unseen_before = (0..byte).filter(|&byte| !seen(byte)).count() as u32;
    char::from_u32(0x100 + unseen_before).unwrap_or('?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokenizer_has_the_requested_size() {
        let tokenizer = of_size(5000, &["<image>"]);
        assert_eq!(tokenizer["model"]["vocab"].as_object().map(Map::len), Some(4999));
        assert_eq!(tokenizer["added_tokens"][0]["id"], 4999);
        assert_eq!(char_of_byte(b' '), 'Ġ');
    }
}
