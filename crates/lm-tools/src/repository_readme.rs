//! The program in the repository's README, which runs here as it stands there.
#![doc = include_str!("../../../README.md")]
