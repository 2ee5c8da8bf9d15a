//! Earlier occurrences of the end of a text, kept from token to token.

use lm_tokenizer::TokenId;

/// A text, and for each of its tokens the length of the longest common suffix of the text up to that token
/// and of the whole text.
#[derive(Debug, Default)]
pub(crate) struct SuffixMatches {
    tokens: Vec<TokenId>,
    lens: Vec<u32>,
}

impl SuffixMatches {
    /// Replaces the text, in linear time.
    pub fn begin(&mut self, tokens: &[TokenId]) {
        self.tokens = tokens.to_vec();
        let reversed: Vec<TokenId> = tokens.iter().rev().copied().collect();
        self.lens = prefix_matches(&reversed);
        self.lens.reverse();
    }

    /// Appends a token: matches that it continues are extended, all others end.
    pub fn push(&mut self, token: TokenId) {
        let len = self.tokens.len();
        self.tokens.push(token);
        self.lens.push(0);
        self.lens.copy_within(..len, 1);
        self.lens[0] = 0;
        for (len, &earlier) in self.lens.iter_mut().zip(&self.tokens) {
            *len = if earlier == token { *len + 1 } else { 0 };
        }
    }

    /// Number of tokens of the text.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the position after the longest earlier occurrence of the text's last tokens, the latest of
    /// equal ones, and the number of these tokens; `None` if the last token occurs once.
    pub fn longest(&self) -> Option<(usize, usize)> {
        let earlier = self.lens.split_last().map_or(&[][..], |(_, earlier)| earlier);
        let (position, &len) = earlier.iter().enumerate().max_by_key(|(_, len)| **len)?;
        (len > 0).then_some((position + 1, len as usize))
    }

    /// Each token of the text after the first `skipped`, with the number of tokens before it, `skipped` at
    /// the earliest, that are also the last ones of the text.
    pub fn continuations(&self, skipped: usize) -> impl Iterator<Item = (TokenId, usize)> {
        let matches = [0].into_iter().chain(self.lens.iter().copied());
        let all = self.tokens.iter().copied().zip(matches).enumerate().skip(skipped);
        all.map(move |(position, (token, len))| (token, (len as usize).min(position - skipped)))
    }
}

/// Length of the longest common prefix of the whole text and the text from each position on (Z-algorithm).
fn prefix_matches(tokens: &[TokenId]) -> Vec<u32> {
    let mut lens = vec![0; tokens.len()];
    if let Some(first) = lens.first_mut() {
        *first = tokens.len() as u32;
    }
    // The known match that ends last.
    let (mut start, mut end) = (0, 0);
    for position in 1..tokens.len() {
        let known = if position < end { (lens[position - start] as usize).min(end - position) } else { 0 };
        let more = tokens[known..].iter().zip(&tokens[position + known..]).take_while(|(a, b)| a == b);
        let len = known + more.count();
        lens[position] = len as u32;
        if position + len > end {
            (start, end) = (position, position + len);
        }
    }
    lens
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn common_suffix(a: &[TokenId], b: &[TokenId]) -> u32 {
        a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count() as u32
    }

    proptest! {
        #[test]
        fn matches_equal_a_direct_comparison(
            prompt in prop::collection::vec(0u32..3, 0..40), output in prop::collection::vec(0u32..3, 0..40),
        ) {
            let mut matches = SuffixMatches::default();
            matches.begin(&prompt);
            let mut text = prompt.clone();
            for token in [None].into_iter().chain(output.iter().map(Some)) {
                if let Some(&token) = token {
                    matches.push(token);
                    text.push(token);
                }
                let expected: Vec<u32> = (1..=text.len()).map(|end| common_suffix(&text[..end], &text)).collect();
                prop_assert_eq!(&matches.lens, &expected);
                let ends = 1..text.len();
                let longest = ends.map(|end| (end, common_suffix(&text[..end], &text) as usize)).max_by_key(|(_, len)| *len);
                prop_assert_eq!(matches.longest(), longest.filter(|(_, len)| *len > 0));
            }
            prop_assert_eq!(matches.len(), text.len());
        }
    }

    #[test]
    fn skipped_tokens_are_ignored() {
        let mut matches = SuffixMatches::default();
        matches.begin(&[1, 2, 3, 1, 2]);
        let from = |skipped| matches.continuations(skipped).collect::<Vec<_>>();
        assert_eq!(from(0), [(1, 0), (2, 0), (3, 2), (1, 0), (2, 0)]);
        assert_eq!(from(1), [(2, 0), (3, 1), (1, 0), (2, 0)]);
        assert_eq!(from(2), [(3, 0), (1, 0), (2, 0)]);
    }
}
