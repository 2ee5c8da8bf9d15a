//! Truncation of long texts.

/// Cuts a text at a character, with a mark.
pub(crate) fn truncated(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let shown = &text[..text.floor_char_boundary(max)];
    format!("{shown}\n[cut: {} of {} bytes]", shown.len(), text.len())
}
