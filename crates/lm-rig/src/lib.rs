#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod client;
mod provider;

pub use client::EngineClient;
pub use lm_api::ApiError;
pub use lm_conversation::{
    CancelHandle, ConversationConfig, Device, Engine, EngineSettings, LoadOptions, ModelFolder,
};
pub use provider::{DIALECT, provider};
pub use rig_core;
