//! Token bitmask.

use lm_tokenizer::TokenId;

/// Bits per word.
const BITS: usize = u32::BITS as usize;

/// Bitmask of the allowed next tokens.
///
/// ```
/// use lm_session::TokenMask;
///
/// let mut mask = TokenMask::new(100);
/// mask.allow(7);
/// mask.allow(40);
/// mask.allow(100); // outside: without effect
/// assert_eq!(mask.ids().collect::<Vec<_>>(), [7, 40]);
/// assert!(!mask.allows(100));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenMask {
    /// Token `i` is bit `i % 32` of word `i / 32`; bits from `width` on are 0.
    words: Vec<u32>,
    width: usize,
}

impl TokenMask {
    /// Number of tokens per word of [`TokenMask::words`].
    pub(crate) const WORD_LEN: usize = BITS;

    /// Creates a mask for logits of `width` tokens that allows none.
    pub fn new(width: usize) -> Self {
        Self { words: vec![0; width.div_ceil(BITS)], width }
    }

    /// Number of tokens that the mask covers.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Forbids every token.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Allows every token.
    pub fn allow_all(&mut self) {
        self.words.fill(u32::MAX);
        self.clear_rest();
    }

    /// Allows `id`; no effect if it is outside of the width.
    pub fn allow(&mut self, id: TokenId) {
        if (id as usize) < self.width {
            self.words[id as usize / BITS] |= 1 << (id as usize % BITS);
        }
    }

    /// Forbids `id`.
    pub fn forbid(&mut self, id: TokenId) {
        if let Some(word) = self.words.get_mut(id as usize / BITS) {
            *word &= !(1 << (id as usize % BITS));
        }
    }

    /// Returns true if `id` is allowed.
    pub fn allows(&self, id: TokenId) -> bool {
        self.words.get(id as usize / BITS).is_some_and(|word| word >> (id as usize % BITS) & 1 == 1)
    }

    /// Number of allowed tokens.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns true if no token is allowed.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Iterates over the allowed tokens in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = TokenId> {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let rest = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
            rest.take_while(|&rest| rest != 0)
                .map(move |rest| (index * BITS) as TokenId + rest.trailing_zeros())
        })
    }

    /// Size of the bits in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// The bits, 32 tokens a word.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Copies bits up to the width; the rest become 0.
    pub(crate) fn copy_from(&mut self, words: &[u32]) {
        let common = self.words.len().min(words.len());
        self.words[..common].copy_from_slice(&words[..common]);
        self.words[common..].fill(0);
        self.clear_rest();
    }

    fn clear_rest(&mut self) {
        if let Some(last) = self.words.last_mut().filter(|_| !self.width.is_multiple_of(BITS)) {
            *last &= (1 << (self.width % BITS)) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_beyond_the_width_stay_clear() {
        for width in [0, 1, 31, 32, 33, 70] {
            let mut mask = TokenMask::new(width);
            mask.allow_all();
            assert_eq!((mask.count(), mask.ids().count()), (width, width));
            mask.copy_from(&[u32::MAX; 3]);
            assert_eq!(mask.count(), width);
            mask.copy_from(&[1]);
            assert_eq!(mask.count(), width.min(1));
        }
    }

    #[test]
    fn ids_are_the_allowed_ones() {
        let mut mask = TokenMask::new(70);
        [69, 31, 0, 32].into_iter().for_each(|id| mask.allow(id));
        mask.forbid(0);
        mask.forbid(1000);
        assert_eq!(mask.ids().collect::<Vec<_>>(), [31, 32, 69]);
        assert!(mask.allows(69) && !mask.allows(0) && !mask.allows(1000) && !mask.is_empty());
    }
}
