//! Outcomes of a cell.

use lm_conversation::{Reply, Value};

/// The outcome of a cell.
pub enum Outcome {
    /// The reply has calls, and each fits the tool.
    Calls(Vec<Value>),
    /// A call does not fit a keyword that has no grammar; the reply names it in `relaxed`.
    Relaxed(String),
    /// The reply is text, because no call fits the budget.
    Text,
    /// Refused before the first token: the shortest call does not fit the budget, and fits the one that the error names.
    RefusedBudget,
    /// Refused before the first token: the schema has no grammar.
    RefusedSchema(String),
    /// Anything else.
    Wrong(String),
}

/// The reason why a turn gives no reply.
#[derive(Debug)]
pub enum Refusal {
    Budget { needed: usize, available: usize },
    Schema(String),
    AfterTokens(String),
}

impl Outcome {
    /// Judges the calls of a reply by the tool's schema.
    pub fn of_calls(parameters: &Value, reply: &Reply) -> Self {
        let mut all = Vec::new();
        for call in reply.tool_calls() {
            let arguments = Value::Object(call.arguments.clone());
            let error = jsonschema::validate(parameters, &arguments).err();
            if let Some(error) = error.filter(|_| call.name == "lookup") {
                let path = error.schema_path().to_string();
                let named =
                    reply.relaxed.iter().any(|relaxed| path.split('/').any(|part| part == relaxed.keyword));
                let message = format!("`{path}` does not hold for {arguments}");
                return if named { Self::Relaxed(message) } else { Self::Wrong(message) };
            }
            if call.name != "lookup" {
                return Self::Wrong(format!("a call of `{}`", call.name));
            }
            all.push(arguments);
        }
        Self::Calls(all)
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Calls(_) => "calls",
            Self::Relaxed(_) => "relaxed",
            Self::Text => "text",
            Self::RefusedBudget => "refused: budget",
            Self::RefusedSchema(_) => "refused: schema",
            Self::Wrong(_) => "wrong",
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Relaxed(message) | Self::RefusedSchema(message) | Self::Wrong(message) => message,
            Self::Calls(_) | Self::Text | Self::RefusedBudget => "",
        }
    }
}
