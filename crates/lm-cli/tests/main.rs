//! Integration tests in one program.

mod batch;
mod chat;
mod chat_media;
mod cli;
mod conversations;
mod embed;
mod generate;
mod gguf;
mod grammar;
mod hub;
mod ids;
mod imatrix;
mod inspect;
mod json_lines;
mod mcp;
mod mcp_errors;
mod mcp_login;
mod mcp_terminal;
mod memory;
mod parse;
mod program;
mod pty;
mod reference;
mod rerank;
mod serve;
#[path = "../../../testdata/shared.rs"]
mod shared;
mod template;
mod terminal;
