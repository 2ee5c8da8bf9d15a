//! Integration tests in one program; those that measure their process are programs of their own.

mod argument_schemas;
mod async_agents;
mod common;
mod compile_errors;
mod devices;
mod examples;
mod get_json_schema;
mod hf_transformers_tool_use;
mod langchain_tool_calling;
mod litert_lm_conversation;
mod litert_lm_tool_use;
mod openai_tool_use_flow;
mod readme;
mod tool_methods;
mod toolset_selection;
