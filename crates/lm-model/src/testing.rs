//! Fakes for the tests of the layers above (feature `test-util`).

mod fake_lm;
mod noise;
mod random;
mod script;
mod tokenizer;

pub use self::fake_lm::FakeLm;
pub use self::script::Reply;
pub use self::tokenizer::{tokenizer, tokenizer_json};
