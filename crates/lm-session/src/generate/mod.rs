//! The tokens of one reply: sampling under a constraint, forced tokens, stop strings; and outputs of a
//! prompt's rows.

mod generating;
mod guide;
mod prompt_rows;
mod steering;
mod stop;

pub(crate) use generating::{Clock, Generated, Generating, accepted};
pub(crate) use guide::{Guide, GuideVocabulary};
pub(crate) use prompt_rows::{PromptOutput, PromptRows};
pub(crate) use steering::ClosingTokens;
pub(crate) use stop::{Matched, StopMatcher};
