//! Tools of MCP servers in a chat.

mod approval;
mod chat_tools;
#[cfg(not(feature = "mcp"))]
#[path = "none.rs"]
mod servers;
#[cfg(feature = "mcp")]
mod servers;
#[cfg(feature = "mcp")]
mod source;

pub use approval::Person;
pub use chat_tools::ChatTools;
#[cfg(feature = "mcp")]
pub use chat_tools::described;
pub use servers::{McpArgs, Servers};
