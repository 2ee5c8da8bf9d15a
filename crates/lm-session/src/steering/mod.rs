//! Bringing a constrained text to its end within the tokens that are left.
//!
//! For the state that the text is in, a *completion* is known: tokens with which it may end. A sampled token is taken
//! only when a completion that fits is known after it too; otherwise the known one is followed. So what has begun ends in time.

mod completion;
mod tokens;

pub(crate) use completion::{Place, Search};
pub(crate) use tokens::ClosingTokens;
