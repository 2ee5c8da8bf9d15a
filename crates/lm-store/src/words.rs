//! Words of texts and queries for the full-text index.

/// Text for the index: characters of scripts without spaces are words of their own.
pub(crate) fn indexed(text: &str) -> String {
    if !text.chars().any(is_word) {
        return text.to_owned();
    }
    let mut spaced = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if is_word(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced
}

/// Query of FTS5 for the words of a text: all must occur, the last one as a beginning. `None` without words.
pub(crate) fn query(text: &str) -> Option<String> {
    // More words than a query needs would only cost time.
    let words: Vec<String> = text.split_whitespace().take(32).filter_map(phrase).collect();
    (!words.is_empty()).then(|| words.join(" AND ") + "*")
}

/// Phrase for a word of a query: its characters are not operators.
fn phrase(word: &str) -> Option<String> {
    let word: String = word.chars().take(100).filter(|c| *c != '\0').collect();
    let has_word = word.chars().any(char::is_alphanumeric);
    has_word.then(|| format!("\"{}\"", indexed(&word).trim().replace('"', "\"\"")))
}

/// Characters of scripts that write words without spaces: Han, kana, Hangul, Thai, Lao, Khmer, Burmese.
fn is_word(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3134f}')
}

/// Part of a text around the first of the words, on one line.
pub(crate) fn excerpt(text: &str, query: &str) -> String {
    const BEFORE: usize = 40;
    const LENGTH: usize = 120;
    let lower: Vec<char> = text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect();
    let at = query.split_whitespace().find_map(|word| {
        let word: Vec<char> = word.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
        (!word.is_empty()).then(|| lower.windows(word.len()).position(|part| part == word)).flatten()
    });
    let start = at.unwrap_or(0).saturating_sub(BEFORE);
    let part: String = text.chars().skip(start).take(LENGTH).collect();
    let line = part.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) =
        (if start > 0 { "…" } else { "" }, if lower.len() > start + LENGTH { "…" } else { "" });
    format!("{before}{line}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_no_operators() {
        assert_eq!(query("  "), None);
        assert_eq!(query("- * \"").as_deref(), None);
        assert_eq!(query("a OR b*").as_deref(), Some("\"a\" AND \"OR\" AND \"b*\"*"));
        assert_eq!(query("say \"hi").as_deref(), Some("\"say\" AND \"\"\"hi\"*"));
        assert_eq!(query("天気").as_deref(), Some("\"天  気\"*"));
    }

    #[test]
    fn excerpt_surrounds_the_word() {
        let text = format!("{} The NEEDLE\nis here. {}", "hay ".repeat(50), "straw ".repeat(50));
        let found = excerpt(&text, "needle");
        assert!(
            found.starts_with('…') && found.ends_with('…') && found.contains("NEEDLE is here."),
            "{found}"
        );
        assert_eq!(excerpt("short", "none"), "short");
    }
}
