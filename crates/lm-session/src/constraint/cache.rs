//! LRU cache of compiled grammars.

/// Maximum number of cached grammars.
const MAX_GRAMMARS: usize = 64;
/// Maximum estimated memory of the cached grammars.
const MAX_BYTES: usize = 128 << 20;

/// Compiled grammars keyed by their whole text, most recently used last.
pub(super) struct GrammarCache<T> {
    grammars: Vec<Entry<T>>,
}

struct Entry<T> {
    text: String,
    grammar: T,
    bytes: usize,
}

impl<T> Default for GrammarCache<T> {
    fn default() -> Self {
        Self { grammars: Vec::new() }
    }
}

impl<T: Clone> GrammarCache<T> {
    pub fn get(&mut self, text: &str) -> Option<T> {
        let found = self.grammars.iter().position(|entry| entry.text == text)?;
        let entry = self.grammars.remove(found);
        let grammar = entry.grammar.clone();
        self.grammars.push(entry);
        Some(grammar)
    }

    /// Inserts a grammar of `bytes` of memory, and evicts the least recently used ones beyond the bounds. A
    /// grammar that alone exceeds them is not cached.
    pub fn insert(&mut self, text: String, grammar: T, bytes: usize) {
        self.grammars.retain(|entry| entry.text != text); // Two threads may have compiled the same.
        self.grammars.push(Entry { text, grammar, bytes });
        while self.grammars.len() > MAX_GRAMMARS || self.bytes() > MAX_BYTES {
            self.grammars.remove(0);
        }
    }

    /// Memory of the grammars.
    pub fn bytes(&self) -> usize {
        self.grammars.iter().map(|entry| entry.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_grammars_are_evicted_by_memory() {
        let mut cache = GrammarCache::default();
        let insert =
            |cache: &mut GrammarCache<u8>, text: &str, bytes| cache.insert(text.to_owned(), 0, bytes);
        for text in ["a", "b", "c", "d"] {
            insert(&mut cache, text, MAX_BYTES / 4);
        }
        assert!(cache.get("a").is_some(), "all four fit");
        insert(&mut cache, "e", MAX_BYTES / 2);
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|text| cache.get(text).is_some()),
            [true, false, false, true, true]
        );
        insert(&mut cache, "e", 1);
        assert_eq!(cache.bytes(), MAX_BYTES / 2 + 1, "its memory is counted once");
        insert(&mut cache, "f", MAX_BYTES + 1);
        assert_eq!(cache.bytes(), 0, "one that is too large is not kept");
    }

    #[test]
    fn number_of_grammars_is_bounded() {
        let mut cache = GrammarCache::default();
        (0..=MAX_GRAMMARS).for_each(|number| cache.insert(number.to_string(), number, 1));
        assert_eq!((cache.get("0"), cache.get("1")), (None, Some(1)));
    }
}
