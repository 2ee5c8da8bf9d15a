//! Arguments shared by several commands.

mod chat_template;
mod conversation;
mod filters;
#[cfg(any(feature = "mcp", feature = "serve"))]
pub mod listen;
mod load;
mod model_path;
pub mod numbers;
mod prompt;
mod sampling;
mod text;

pub use chat_template::TemplateArgs;
#[cfg(feature = "serve")]
pub use conversation::CallTreatment;
pub use conversation::{CallArgs, ChatArgs, OverflowArg};
pub use load::{LoadArgs, RunArgs, check_context, quantized_format};
pub use model_path::{ModelPath, names_model, takes_model};
pub use prompt::{PromptArgs, PromptSource, refuse_model};
pub use sampling::{SamplerArgs, adapter};
pub use text::{TextArgs, read_text};

/// Invalid use of the command line that the parser of arguments cannot see. The exit code is 2, as for its
/// own errors.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Creates a [`UsageError`].
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}
