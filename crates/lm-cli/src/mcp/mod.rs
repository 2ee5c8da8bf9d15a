//! Tools of MCP servers in a chat.

#[cfg(feature = "mcp")]
mod address;
mod approval;
#[cfg(feature = "mcp")]
mod asker;
#[cfg(feature = "mcp")]
mod catalog;
mod chat_tools;
#[cfg(feature = "mcp")]
mod hint;
#[cfg(not(feature = "mcp"))]
#[path = "none.rs"]
mod servers;
#[cfg(feature = "mcp")]
mod servers;
#[cfg(feature = "mcp")]
mod source;
#[cfg(feature = "mcp")]
mod tokens;
#[cfg(feature = "mcp")]
mod waiting;

#[cfg(feature = "mcp")]
pub use address::{check_program, is_address};
pub use approval::{Approver, AskedCall};
pub use chat_tools::ChatTools;
#[cfg(feature = "mcp")]
pub use chat_tools::described;
#[cfg(feature = "mcp")]
pub use hint::hint;
#[cfg(feature = "serve")]
pub use servers::McpCallArgs;
#[cfg(not(feature = "mcp"))]
pub use servers::hint;
pub use servers::{McpArgs, Servers};
#[cfg(feature = "mcp")]
pub use servers::{ServerArgs, of_file};
#[cfg(feature = "mcp")]
pub use tokens::tokens;
