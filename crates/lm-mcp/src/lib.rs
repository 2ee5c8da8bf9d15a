#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod client;
mod config;
mod error;
mod http_client;
mod names;
mod oauth;
mod runtime;
mod server;

pub use client::{
    Elicitation, ElicitationAnswer, ElicitationMode, Listed, Mcp, McpBuilder, McpLimits, McpPrompt,
    McpPromptArgument, McpResource, McpResourceTemplate, McpServer, McpTool, Problem,
};
pub use config::{
    CommandConfig, HttpConfig, McpServers, OAuthConfig, Protocol, ServerConfig, ServerTransport, UnknownKey,
};
pub use error::{Error, Result};
pub use lm_tools::Toolset;
pub use oauth::{Login, TokenStore};
pub use server::{HttpListen, Listen, Server, serve};
