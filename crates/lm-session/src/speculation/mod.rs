//! Speculative decoding: draft tokens, and their profitable number.
//!
//! A draft is the continuation of an earlier occurrence of a sequence's last tokens in the sequence itself
//! (prompt lookup), or else that of a draft model. Its tokens run in one step with the last token, and each
//! row is sampled as in plain decoding, as long as the sampled token is the drafted one.

mod acceptance;
mod draft_model;
mod drafter;
mod params;

pub use draft_model::DraftModel;
pub(crate) use drafter::Drafter;
pub use params::Speculation;
