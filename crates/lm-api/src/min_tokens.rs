//! Minimum number of output tokens.

use std::sync::Arc;

use lm_session::{FilterFactory, History, LogitsFilter, TokenId, TokenLogits};

/// Filter that keeps the tokens that end a text from being sampled before it has a number of tokens. Where a
/// grammar leaves nothing else, the text ends.
#[derive(Debug, Clone)]
struct MinTokens {
    least: usize,
    ends: Arc<[TokenId]>,
}

/// Creates the filter for texts of at least `least` tokens.
pub(crate) fn min_tokens(least: usize, ends: Arc<[TokenId]>) -> FilterFactory {
    let filter = MinTokens { least, ends };
    FilterFactory::new(move || filter.clone())
}

impl LogitsFilter for MinTokens {
    fn apply(&mut self, logits: &mut TokenLogits, history: &History<'_>) {
        if history.generated.len() >= self.least {
            return;
        }
        if logits.ids().iter().any(|id| !self.ends.contains(id)) {
            logits.retain(|id, _| !self.ends.contains(&id));
        }
    }
}
