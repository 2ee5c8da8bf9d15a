//! Constraints as data.

use lm_tokenizer::TokenId;
use serde::{Deserialize, Serialize};

use crate::constraint::ConstraintSpec;

/// A constraint at its start, as data: [`Constraint::record`](crate::Constraint::record).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ConstraintRecord {
    /// A compiled grammar.
    Grammar(ConstraintSpec),
    /// A [`ChannelBudget`](crate::ChannelBudget).
    Budget {
        /// Start of the channel.
        start: String,
        /// End of the channel.
        end: String,
        /// Tokens that close it.
        closing: Vec<TokenId>,
        /// Maximum number of tokens in the channel.
        tokens: usize,
        /// True if the output starts inside the channel.
        inside: bool,
        /// Constraint on the whole output.
        inner: Option<Box<ConstraintRecord>>,
    },
}
