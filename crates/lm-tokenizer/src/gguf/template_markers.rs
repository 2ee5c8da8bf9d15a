//! Markers of the chat template that a file's vocabulary has as ordinary text.
//!
//! Some files give all added tokens the type of ordinary text. The model's merges do not lead to them, so
//! that the markers that the template writes would be split into several tokens that the model has never seen
//! in their place.

use lm_formats::GgufMetadata;

use super::vocabulary::{TokenType, Vocabulary};
use crate::TokenId;
use crate::{Error, Result};

/// Start of the keys of chat templates.
const TEMPLATES: &str = "tokenizer.chat_template";

/// Makes the tokens of ordinary text control tokens that are spelled as markers, that a chat template
/// contains, and whose text the model encodes to other tokens. Logs each.
pub(super) fn promote(
    metadata: &GgufMetadata,
    library: &tokenizers::Tokenizer,
    vocabulary: &mut Vocabulary,
) -> Result<()> {
    let mut templates = Vec::new();
    for (key, _) in metadata.keys().filter(|(key, _)| is_template(key)) {
        // One of another type is reported where it is rendered.
        templates.extend(metadata.str(key).ok().flatten());
    }
    let is_candidate =
        |text: &str| is_marker(text) && templates.iter().any(|template| template.contains(text));
    let normal =
        vocabulary.used().filter(|(_, token)| token.ty == TokenType::Normal && is_candidate(&token.text));
    let candidates: Vec<(TokenId, String)> = normal.map(|(id, token)| (id, token.text.clone())).collect();
    for (id, text) in candidates {
        let encoding = library.encode(text.as_str(), false).map_err(Error::Library)?;
        if *encoding.get_ids() != [id] {
            tracing::warn!(
                file = metadata.file(),
                id,
                text,
                "a marker of the chat template has the type of ordinary text: it becomes a control token"
            );
            vocabulary.respell(id, text, TokenType::Control);
        }
    }
    Ok(())
}

/// Returns true for the key of a template, and not for that of the list of their names.
fn is_template(key: &str) -> bool {
    key.strip_prefix(TEMPLATES).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns true for the spelling of a marker: a word in angle or square brackets.
fn is_marker(text: &str) -> bool {
    let within = |open, close| text.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    let word = within('<', '>').or_else(|| within('[', ']'));
    word.is_some_and(|word| !word.is_empty() && !word.contains(char::is_whitespace))
}
