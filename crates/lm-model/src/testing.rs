//! Fakes for the tests of the layers above (feature `test-util`).

mod fake_audio;
mod fake_lm;
mod fake_vision;
mod hooked_lm;
mod noise;
mod random;
mod script;

pub use self::fake_audio::FakeAudio;
pub use self::fake_lm::FakeLm;
pub use self::fake_vision::FakeVision;
pub use self::hooked_lm::HookedLm;
pub use self::script::Reply;
pub use lm_tokenizer::testing::{tokenizer, tokenizer_json};
