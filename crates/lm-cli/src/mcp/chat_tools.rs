//! Tools of a chat.

use anyhow::Result;
use lm_tools::{ToolSpec, Toolset, Value};

use super::Servers;
use crate::screen::one_line;

/// The tools of a chat: those of `--tools`, and those of the servers, which may change.
pub struct ChatTools {
    servers: Servers,
    /// The tools without those of the servers.
    base: Toolset,
    all: Toolset,
    generation: u64,
}

impl ChatTools {
    /// Puts tools together.
    ///
    /// # Errors
    /// When two of them have the same name.
    pub fn new(base: Toolset, servers: Servers) -> Result<Self> {
        let generation = servers.generation();
        Ok(Self { all: servers.add_to(base.clone())?, servers, base, generation })
    }

    /// The servers, for their resources and prompts.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The current tools.
    pub fn all(&self) -> &Toolset {
        &self.all
    }

    /// Description of a tool on one line.
    pub fn described(&self, spec: &ToolSpec) -> String {
        described(spec, self.server_of(spec.name()).as_deref())
    }

    /// The server of a tool.
    pub fn server_of(&self, tool: &str) -> Option<String> {
        self.servers.server_of(tool)
    }

    /// Takes over the tools that servers have changed; returns true if there are any.
    ///
    /// # Errors
    /// When two tools now have the same name: the earlier tools stay.
    pub fn refresh(&mut self) -> Result<bool> {
        let generation = self.servers.generation();
        if std::mem::replace(&mut self.generation, generation) == generation {
            return Ok(false);
        }
        self.all = self.servers.add_to(self.base.clone())?;
        Ok(true)
    }
}

/// Describes a tool on one line: its name, arguments, server and description.
pub fn described(spec: &ToolSpec, server: Option<&str>) -> String {
    let properties = spec.parameters().get("properties").and_then(Value::as_object);
    let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let server = server.map(|server| format!(" [{server}]")).unwrap_or_default();
    let description = spec.description().lines().next().unwrap_or_default();
    one_line(&format!("{}({}){server}: {description}", spec.name(), names.join(", ")))
}
