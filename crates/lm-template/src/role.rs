//! Role of a message's author.

use std::fmt;

/// Role of a message's author.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Role {
    /// The user.
    #[default]
    User,
    /// The model. Read from `assistant` and `model`, written as `assistant`.
    Assistant,
    /// Instructions for the whole conversation.
    System,
    /// Instructions of the application, for models that distinguish them from the system's.
    Developer,
    /// A tool's result.
    Tool,
    /// Any other role, unchanged; the template accepts or refuses it.
    Other(String),
}

impl Role {
    /// Name in JSON and in templates.
    pub fn as_str(&self) -> &str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
            Role::Developer => "developer",
            Role::Tool => "tool",
            Role::Other(name) => name,
        }
    }
}

impl From<&str> for Role {
    fn from(name: &str) -> Self {
        match name {
            "user" => Role::User,
            "assistant" | "model" => Role::Assistant,
            "system" => Role::System,
            "developer" => Role::Developer,
            "tool" => Role::Tool,
            other => Role::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
