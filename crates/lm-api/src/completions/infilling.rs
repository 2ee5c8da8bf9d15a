//! Prompts for a text between two others.

use lm_conversation::TokenId;
use lm_session::{TextSegment, Tokenizer};

use crate::error::{ApiError, Result};
use crate::text_inputs::{TextInput, api_error};

/// Tokens of a family of models around the parts of a text, in this order: `prefix` before the text before
/// the gap, `suffix` before the text after it, `middle` before the text to write.
struct Markers {
    prefix: &'static str,
    suffix: &'static str,
    middle: &'static str,
    /// Tokens that end the text, beside these.
    ends: &'static [&'static str],
}

const MARKERS: [Markers; 6] = [
    // Qwen2.5-Coder, CodeGemma
    Markers {
        prefix: "<|fim_prefix|>",
        suffix: "<|fim_suffix|>",
        middle: "<|fim_middle|>",
        ends: &["<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|file_separator|>"],
    },
    // StarCoder, Granite Code
    Markers {
        prefix: "<fim_prefix>",
        suffix: "<fim_suffix>",
        middle: "<fim_middle>",
        ends: &["<fim_pad>", "<file_sep>"],
    },
    // Granite 3
    Markers { prefix: "<|fim_begin|>", suffix: "<|fim_hole|>", middle: "<|fim_end|>", ends: &[] },
    // DeepSeek Coder
    Markers {
        prefix: "<｜fim▁begin｜>", suffix: "<｜fim▁hole｜>", middle: "<｜fim▁end｜>", ends: &[]
    },
    // GLM
    Markers { prefix: "<|code_prefix|>", suffix: "<|code_suffix|>", middle: "<|code_middle|>", ends: &[] },
    // Code Llama
    Markers { prefix: "▁<PRE>", suffix: "▁<SUF>", middle: "▁<MID>", ends: &["▁<EOT>"] },
];

/// Ids of a model's tokens for infilling.
#[derive(Debug)]
pub(crate) struct Infilling {
    parts: [TokenId; 3],
    /// Tokens that end the text.
    pub ends: Vec<TokenId>,
}

impl Infilling {
    /// The tokens of a model; `None` if it has none.
    pub fn of(tokenizer: &Tokenizer) -> Option<Self> {
        MARKERS.iter().find_map(|markers| {
            let id = |text: &str| tokenizer.token_id(text);
            let parts = [id(markers.prefix)?, id(markers.suffix)?, id(markers.middle)?];
            let ends = parts.into_iter().chain(markers.ends.iter().copied().filter_map(id)).collect();
            Some(Self { parts, ends })
        })
    }

    /// Tokens of a prompt for the text between `before` and `after`, of the fields `at` and `suffix`.
    ///
    /// # Errors
    /// When a text cannot be encoded.
    pub fn prompt(
        &self,
        tokenizer: &Tokenizer,
        before: &TextInput,
        after: &str,
        at: &str,
    ) -> Result<Vec<TokenId>> {
        let encoded = |text: &str, at: &str| {
            let ids = tokenizer.encode_segments(&[TextSegment::Content(text)]);
            ids.map_err(|error| api_error(at, error.into()))
        };
        let before = match before {
            TextInput::Text(text) => encoded(text, at)?,
            TextInput::Ids(ids) => ids.clone(),
        };
        let first = tokenizer.prefix_ids().map_err(|error| api_error(at, error.into()))?;
        let [prefix, suffix, middle] = self.parts;
        Ok([first, vec![prefix], before, vec![suffix], encoded(after, "suffix")?, vec![middle]].concat())
    }
}

/// Error of a request to a model without such tokens.
pub(crate) fn unsupported() -> ApiError {
    let message = "`suffix`: the model has no tokens for a text between two others";
    ApiError::invalid_param("suffix", message).with_code("unsupported_parameter")
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    /// A tokenizer of single letters, with these added tokens first.
    fn tokenizer(added: &[&str]) -> Tokenizer {
        let token = |(id, text): (usize, &&str)| json!({"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
        let vocab = added.iter().copied().chain(["a", "b", "c"]).enumerate();
        let vocab: Map<String, Value> = vocab.map(|(id, text)| (text.to_owned(), id.into())).collect();
        let bytes =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
        let json = json!({
            "version": "1.0", "pre_tokenizer": bytes, "decoder": bytes, "added_tokens": added.iter().enumerate().map(token).collect::<Vec<_>>(),
            "model": {"type": "BPE", "vocab": vocab, "merges": []},
        });
        Tokenizer::from_json(json.to_string().as_bytes()).expect("a tokenizer")
    }

    #[test]
    fn prompts_have_the_suffix_before_the_gap() {
        for added in [
            &["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>"][..],
            &["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>"],
            &["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "other"],
        ] {
            let tokenizer = tokenizer(added);
            let infilling = Infilling::of(&tokenizer).expect("it has such tokens");
            let before = TextInput::Text("ab".to_owned());
            let prompt = infilling.prompt(&tokenizer, &before, "c", "prompt").expect("a prompt");
            assert_eq!(prompt, [0, 4, 5, 1, 6, 2], "{added:?}");
            let ends: &[TokenId] = if added[3] == "other" { &[0, 1, 2] } else { &[0, 1, 2, 3] };
            assert_eq!(infilling.ends, ends, "{added:?}");
        }
        assert!(Infilling::of(&tokenizer(&["<|fim_prefix|>"])).is_none());
    }
}
