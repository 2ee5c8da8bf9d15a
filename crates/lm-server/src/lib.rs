#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod app;
mod config;
mod connections;
mod error;
mod guards;
mod metrics;
mod models;
mod openapi;
mod page;
mod response;
mod route;
mod routes;
mod run;
mod server;
mod state;
mod tools;

pub use config::{ApiKeys, ServerConfig, ServerLimits};
pub use error::{Error, Result};
pub use models::ServedModel;
pub use run::{EndSignal, run};
pub use server::{Server, ShutdownHandle};
pub use tools::ServedTools;
