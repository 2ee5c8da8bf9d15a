// This compiles: the errors of the other files are their own.
use lm_tools::{CallContext, Toolset, tool, tools, toolset};
use std::sync::Arc;

/// Waits.
#[tool(timeout = "5s", strict, idempotent)]
pub fn wait(context: &CallContext, #[arg(range(1..=10), default = 1)] seconds: u8) {}

/// Has defaults at the edges of their limits.
#[tool]
pub fn edges(
    #[arg(range(0..10), default = 9)] last: i64,
    #[arg(range(-1..=10), default = -1)] first: i64,
    #[arg(length(..=3), default = "été")] characters: String,
) {}

/// Has patterns of ECMA-262, which other syntaxes of regular expressions do not have.
#[tool]
pub fn patterns(
    #[arg(pattern = r"^(?!draft)\w+$")] look_ahead: String,
    #[arg(pattern = r"^(a|b)\1$")] back_reference: String,
    #[arg(pattern = "^[^]*$")] any: String,
) {}

pub struct Notes(Vec<String>);

#[tools]
impl Notes {
    /// Lists the notes.
    #[tool(read_only)]
    pub async fn list(&self, #[arg(length(1..=80), pattern = "^a")] text: Option<String>) -> Vec<String> {
        self.0.clone()
    }
}

pub fn all(notes: &Arc<Notes>) -> lm_tools::Result<Toolset> {
    toolset![wait, notes.tools()]
}
