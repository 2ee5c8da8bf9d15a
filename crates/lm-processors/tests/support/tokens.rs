//! Markers as a tokenizer has them: what stands in angle brackets, or in square ones in capitals, is one token.

use lm_processors::{MarkerTokens, ModelDataProcessor, ProcessorEvent};

/// The length of the token that `text` begins with.
pub fn token(text: &str) -> Option<usize> {
    let (close, inside): (char, fn(char) -> bool) = match text.chars().next()? {
        '<' => ('>', |c| !c.is_whitespace() && !"<\"=>".contains(c)),
        '[' => (']', |c| c.is_ascii_uppercase() || c == '_'),
        _ => return None,
    };
    let end = text[1..].find(|c| !inside(c))? + 1;
    (text[end..].starts_with(close) && end > 1).then_some(end + close.len_utf8())
}

/// The tokens in the markers of a family.
pub fn tokens(processor: &dyn ModelDataProcessor) -> MarkerTokens {
    MarkerTokens::in_markers(processor.markers(), token)
}

/// The tokens in the markers of a family, all of them tokens.
pub fn all_tokens() -> Vec<String> {
    let markers = lm_processors::ALL
        .iter()
        .flat_map(|family| tokens(family.processor).iter().map(str::to_owned).collect::<Vec<_>>());
    let mut all: Vec<String> = markers.collect();
    all.sort();
    all.dedup();
    all
}

/// A piece of a reply: text, and whether it is one added token.
pub type Piece<'a> = (&'a str, bool);

/// A text whose tokens were written as such.
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

/// What a parser makes of the next piece.
pub fn push(parser: &mut dyn lm_processors::OutputParser, (text, token): Piece<'_>) -> Vec<ProcessorEvent> {
    if token { parser.push_token(text) } else { parser.push(text) }
}
