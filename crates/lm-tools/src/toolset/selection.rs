//! Parts of a toolset, and its tools under other names.

use super::{Entry, Toolset};
use crate::error::{Error, Result};
use std::sync::Arc;

/// Maximum length of a tool name in the common APIs.
const MAX_NAME_LEN: usize = 64;

impl Toolset {
    /// Renames each tool to `PREFIX_NAME`: `get` with the prefix `weather` becomes `weather_get`.
    ///
    /// # Errors
    /// [`Error::InvalidName`] when a name is longer than 64 characters then, or the prefix has characters
    /// other than ASCII letters, digits, `_` and `-`.
    pub fn with_prefix(mut self, prefix: &str) -> Result<Self> {
        for entry in &mut self.entries {
            let name = format!("{prefix}_{}", entry.spec.name());
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.len() > MAX_NAME_LEN || !name.chars().all(is_allowed) {
                return Err(Error::InvalidName { name });
            }
            let renamed = Entry { spec: entry.spec.clone().with_name(name), ..(**entry).clone() };
            *entry = Arc::new(renamed);
        }
        Ok(self)
    }

    /// The tools with these names, in the order of this toolset, for a turn or an agent.
    ///
    /// # Errors
    /// [`Error::UnknownTool`] for an unknown name.
    pub fn select<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let names = self.known(names)?;
        Ok(self.filtered(|name| names.contains(&name)))
    }

    /// The tools except those with these names.
    ///
    /// # Errors
    /// [`Error::UnknownTool`] for an unknown name.
    pub fn without<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let names = self.known(names)?;
        Ok(self.filtered(|name| !names.contains(&name)))
    }

    /// Returns true for an external tool ([`with_external`](Self::with_external)).
    pub fn is_external(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.is_external)
    }

    /// Names of the tools, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.spec.name())
    }

    /// Number of tools.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no tools.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn known<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<&'a str>> {
        let names: Vec<&str> = names.into_iter().collect();
        match names.iter().find(|name| self.entry(name).is_none()) {
            None => Ok(names),
            Some(&name) => Err(Error::UnknownTool {
                name: name.to_owned(),
                known: self.names().map(str::to_owned).collect(),
            }),
        }
    }

    fn filtered(&self, is_kept: impl Fn(&str) -> bool) -> Self {
        let mut tools = self.clone();
        tools.entries.retain(|entry| is_kept(entry.spec.name()));
        tools
    }
}
