//! Hints about the effects of a tool.

use serde::{Deserialize, Serialize};

/// Hints about the effects of a tool, for approval policies and user interfaces. The names and the defaults
/// are those of `ToolAnnotations` in the Model Context Protocol (2025-11-25): without a hint, a tool is
/// assumed to write, to be able to destroy, and to reach the outside world.
///
/// A third-party tool may lie: its hints must not decide about safety.
///
/// ```
/// use lm_tools::ToolAnnotations;
///
/// let hints = ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() };
/// assert_eq!(serde_json::to_string(&hints)?, r#"{"readOnlyHint":true}"#);
/// assert!(hints.is_read_only() && !hints.is_destructive());
/// assert!(ToolAnnotations::default().is_destructive());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing. Default false.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// A tool that writes may delete or overwrite. Default true.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// A second call with the same arguments has no further effect. Default false.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool reaches things outside the program, such as the web. Default true.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    /// Returns true if the tool declares itself read-only.
    pub fn is_read_only(&self) -> bool {
        self.read_only.unwrap_or(false)
    }

    /// Returns true if the tool may delete or overwrite; never for one that is read-only.
    pub fn is_destructive(&self) -> bool {
        !self.is_read_only() && self.destructive.unwrap_or(true)
    }

    /// Returns true if the tool declares that a repeated call has no further effect; always for one that is
    /// read-only.
    pub fn is_idempotent(&self) -> bool {
        self.is_read_only() || self.idempotent.unwrap_or(false)
    }

    /// Returns true if the tool may reach things outside the program.
    pub fn is_open_world(&self) -> bool {
        self.open_world.unwrap_or(true)
    }
}
