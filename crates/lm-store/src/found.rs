//! Results of a search.

use crate::store::Summary;

/// A conversation that a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The conversation.
    pub summary: Summary,
    /// Id of the newest message with the words; `None` if they are in the title only.
    pub message: Option<String>,
    /// Part of that message around the first word, or the title.
    pub excerpt: String,
}
