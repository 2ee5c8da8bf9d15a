//! The engine as a provider of rig.

use lm_conversation::{ConversationConfig, Engine};
use rig_core::providers::openai::OpenAI;
use rig_core::providers::openai::wire::{Auth, Dialect, OpenAIConfig, Quirks};

use crate::client::EngineClient;

/// The engine's chat completions as rig describes providers: without a key, and with formatted answers beside
/// tools.
pub const DIALECT: Dialect = Dialect::gateway("lm", "lm://engine/v1", "LM_API_KEY").with_quirks(quirks());

const fn quirks() -> Quirks {
    let mut quirks = Quirks::openai();
    quirks.auth = Auth::OptionalBearer;
    quirks.response_format_with_tools = true;
    quirks.accepts_file_ids = false;
    quirks
}

/// Creates a provider whose completion and embedding models run on `engine`, in this process. `config` has
/// the values that rig's requests leave open, such as the sampler; its preface is not used. The models' names
/// are labels: an engine has one model.
///
/// ```
/// use lm_rig::{ConversationConfig, provider};
/// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
/// // In a program: `Engine::load(..)`.
/// let model = provider(&engine, ConversationConfig::from_engine(&engine)).completion(engine.name());
/// assert_eq!(model.name(), "lm");
/// ```
pub fn provider(engine: &Engine, config: ConversationConfig) -> OpenAI {
    OpenAIConfig::with_key(&DIALECT, "").connect(EngineClient::new(engine, config))
}
