//! Steering of a constrained text to its end within the remaining tokens.
//!
//! For the current state of the text, a *completion* is known: tokens after which it may end. A sampled token
//! is accepted only if a fitting completion is known after it as well; otherwise the known completion is
//! followed. So a started text ends in time.

mod completion;
mod tokens;

pub(crate) use completion::{Search, SearchContext};
pub(crate) use tokens::ClosingTokens;
