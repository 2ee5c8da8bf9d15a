#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod app;
mod background;
mod config;
mod connections;
mod downloads;
mod guards;
mod metrics;
mod models;
mod openapi;
mod page;
mod rendering;
mod response;
mod route;
mod routes;
mod run;
mod server;
mod start_error;
mod state;
mod tools;

pub use config::{ApiKeys, Preset, ServerConfig, ServerLimits};
pub use downloads::{DownloadProgress, ServedDownloads};
pub use models::ServedModel;
pub use run::{EndSignal, run};
pub use server::{Server, ShutdownHandle};
pub use start_error::{Error, Result};
pub use tools::ServedTools;
