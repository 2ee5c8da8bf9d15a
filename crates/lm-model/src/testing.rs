//! Fakes for the tests of the layers above (feature `test-util`).

mod fake_lm;
mod tokenizer;

pub use self::fake_lm::{FakeLm, Reply};
pub use self::tokenizer::{tokenizer, tokenizer_json};
