//! A model of a tokenizer: text in angle brackets, or capitals in square ones, is one token.

use lm_processors::{MarkerTokens, ModelDataProcessor, ProcessorEvent};

/// Length of the token at the start of `text`.
pub fn token(text: &str) -> Option<usize> {
    let (close, inside): (char, fn(char) -> bool) = match text.chars().next()? {
        '<' => ('>', |c| !c.is_whitespace() && !"<\"=>".contains(c)),
        '[' => (']', |c| c.is_ascii_uppercase() || c == '_'),
        _ => return None,
    };
    let end = text[1..].find(|c| !inside(c))? + 1;
    (text[end..].starts_with(close) && end > 1).then_some(end + close.len_utf8())
}

/// Tokens in the markers of a family.
pub fn tokens(processor: &dyn ModelDataProcessor) -> MarkerTokens {
    MarkerTokens::in_markers(processor.markers(), token)
}

/// Tokens in the markers of all families.
pub fn all_tokens() -> Vec<String> {
    let markers = lm_processors::ALL
        .iter()
        .flat_map(|family| tokens(family.processor).iter().map(str::to_owned).collect::<Vec<_>>());
    let mut all: Vec<String> = markers.collect();
    all.sort();
    all.dedup();
    all
}

/// A piece of a reply: its text, and true if it is one added token.
pub type Piece<'a> = (&'a str, bool);

/// A text split into its tokens and ordinary text.
pub fn tokenized<'a>(text: &'a str, tokens: &MarkerTokens) -> Vec<Piece<'a>> {
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        let longest = tokens.iter().filter(|token| text[at..].starts_with(token)).map(str::len).max();
        let Some(len) = longest else {
            at = text.ceil_char_boundary(at + 1);
            continue;
        };
        pieces.extend([(&text[start..at], false), (&text[at..at + len], true)]);
        at += len;
        start = at;
    }
    pieces.push((&text[start..], false));
    pieces.retain(|(text, _)| !text.is_empty());
    pieces
}

/// Feeds the next piece to a parser.
pub fn push(parser: &mut dyn lm_processors::OutputParser, (text, token): Piece<'_>) -> Vec<ProcessorEvent> {
    if token { parser.push_token(text) } else { parser.push(text) }
}
