//! Counts with their nouns: `1 token`, `2 tokens`.

/// A count and its noun, given in the singular.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn nouns_agree_with_their_counts() {
        let counts = [0, 1, 2].map(|count| counted(count, "prompt token"));
        assert_eq!(counts, ["0 prompt tokens", "1 prompt token", "2 prompt tokens"]);
    }
}
