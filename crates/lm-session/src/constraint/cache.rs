//! LRU cache of compiled grammars.

use super::CompiledConstraint;

/// Maximum number of cached grammars.
const MAX_GRAMMARS: usize = 64;
/// Maximum total bytes of grammar text in the cache; the compiled form is up to 30 times larger.
const MAX_BYTES: usize = 4 << 20;

/// Compiled grammars keyed by their whole text, most recently used last.
#[derive(Default)]
pub(super) struct GrammarCache {
    grammars: Vec<(String, CompiledConstraint)>,
}

impl GrammarCache {
    pub(super) fn get(&mut self, text: &str) -> Option<CompiledConstraint> {
        let found = self.grammars.iter().position(|(key, _)| key == text)?;
        let entry = self.grammars.remove(found);
        let grammar = entry.1.clone();
        self.grammars.push(entry);
        Some(grammar)
    }

    pub(super) fn insert(&mut self, text: String, grammar: CompiledConstraint) {
        self.grammars.retain(|(key, _)| *key != text); // Two threads may have compiled the same.
        self.grammars.push((text, grammar));
        while self.grammars.len() > MAX_GRAMMARS || self.bytes() > MAX_BYTES {
            self.grammars.remove(0);
        }
    }

    fn bytes(&self) -> usize {
        self.grammars.iter().map(|(text, _)| text.len()).sum()
    }
}
