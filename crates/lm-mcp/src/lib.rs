#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod client;
mod config;
mod error;
mod names;
mod runtime;
mod server;

pub use client::{
    Listed, Mcp, McpBuilder, McpLimits, McpPrompt, McpPromptArgument, McpResource, McpResourceTemplate,
    McpServer, McpTool, Problem,
};
pub use config::{CommandConfig, HttpConfig, McpServers, ServerConfig, ServerTransport, UnknownKey};
pub use error::{Error, Result};
pub use lm_tools::Toolset;
pub use server::{HttpListen, Listen, Server, serve};
