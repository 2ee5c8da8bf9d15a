//! End-of-sequence tokens.

use super::vocabulary::{TokenType, Vocabulary};
use crate::TokenId;

/// Tokens of chat formats that end a reply or hand over to a tool.
///
/// Source: `eos_token_id` of these models' `generation_config.json`; llama.cpp finds them by their texts too.
const END_TOKENS: &[&str] = &[
    "<eos>",
    "<end_of_turn>",         // Gemma 2, 3
    "<turn|>",               // Gemma 4
    "<|tool_response>",      // Gemma 4: the reply waits for a tool
    "<|call|>",              // gpt-oss: the reply waits for a tool
    "<|return|>",            // gpt-oss
    "<|end|>",               // Phi 3
    "<|end_of_text|>",       // Llama 3, Granite
    "<|endoftext|>",         // GPT-2, Qwen, Phi
    "<|eom_id|>",            // Llama 3: the reply waits for a tool
    "<|eot_id|>",            // Llama 3
    "<|eot|>",               // Llama 4
    "<|im_end|>",            // ChatML
    "<｜end▁of▁sentence｜>", // DeepSeek
];

/// In gpt-oss' format the first token ends one message of a reply, the second the whole reply.
const NOT_LAST: (&str, &str) = ("<|end|>", "<|return|>");

/// Returns the ids that the file names, and those of [`END_TOKENS`] that are not ordinary text, ascending.
pub(super) fn find(vocabulary: &Vocabulary) -> Vec<TokenId> {
    let steers = |id: &TokenId| {
        matches!(vocabulary.token(*id).ty, TokenType::Control | TokenType::UserDefined | TokenType::Unknown)
    };
    let is_last = |text: &&&str| **text != NOT_LAST.0 || vocabulary.id(NOT_LAST.1).is_none();
    let known = END_TOKENS.iter().filter(is_last).filter_map(|text| vocabulary.id(text)).filter(steers);
    let mut ids: Vec<TokenId> = vocabulary.end_ids.iter().copied().chain(known).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
