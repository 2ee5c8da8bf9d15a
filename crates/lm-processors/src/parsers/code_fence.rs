//! Code blocks around calls.

/// Start and end marker of a code block.
pub(crate) const FENCE: &str = "```";

/// Maximum length of the word after a fence; longer text is not a fence.
const MAX_WORD_BYTES: usize = 32;

/// Length of the code fence (backticks and a word) at the start of `text`; 0 if there is none, `None` if more
/// text is needed to decide.
pub(crate) fn fence(text: &str) -> Option<usize> {
    let Some(rest) = text.strip_prefix(FENCE) else {
        return (text.is_empty() || !FENCE.starts_with(text)).then_some(0);
    };
    match rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        Some(word) => Some(if word > MAX_WORD_BYTES { 0 } else { FENCE.len() + word }),
        None => (rest.len() > MAX_WORD_BYTES).then_some(0),
    }
}
