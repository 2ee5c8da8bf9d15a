//! A toolset as an MCP server.

mod handler;
mod http;
mod listen;

pub use http::HttpListen;
pub use listen::{Listen, Server, serve};
