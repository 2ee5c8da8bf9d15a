//! The program in the repository's README, run as a doc test.
#![doc = include_str!("../../../README.md")]
