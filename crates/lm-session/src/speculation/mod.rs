//! Speculative decoding by prompt lookup: draft tokens, and the number of them that pays.
//!
//! A draft is the continuation of an earlier occurrence of a sequence's last tokens in the sequence itself. Its tokens run in one
//! step with the last token, and each row is sampled as in plain decoding, as long as the sampled token is the drafted one.

mod acceptance;
mod drafter;

pub(crate) use drafter::Drafter;
