//! Outcomes of a cell.

use lm_conversation::{Reply, Value};

/// The outcome of a cell.
pub enum Outcome {
    /// The reply has calls, and each matches the tool's schema.
    Calls(Vec<Value>),
    /// A typed error: all sampled calls violate a keyword without a grammar.
    Unfit(String),
    /// The reply is text, because no call fits the budget.
    Text,
    /// Rejected before the first token: the shortest call exceeds the budget, and fits the one that the error
    /// names.
    RefusedBudget,
    /// Rejected before the first token: the schema has no grammar.
    RefusedSchema(String),
    /// Anything else.
    Wrong(String),
}

/// The reason why a turn gives no reply.
#[derive(Debug)]
pub enum Refusal {
    Budget { needed: usize, available: usize },
    Schema(String),
    Unfit(String),
    AfterTokens(String),
}

impl Outcome {
    /// Validates the calls of a reply against the tool's schema.
    pub fn of_calls(parameters: &Value, reply: &Reply) -> Self {
        let mut all = Vec::new();
        for call in reply.tool_calls() {
            let arguments = Value::Object(call.arguments.clone());
            let error = jsonschema::validate(parameters, &arguments).err();
            if let Some(error) = error.filter(|_| call.name == "lookup") {
                return Self::Wrong(format!("`{}` does not hold for {arguments}", error.schema_path()));
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
            Self::Unfit(_) => "unfit",
            Self::Text => "text",
            Self::RefusedBudget => "refused: budget",
            Self::RefusedSchema(_) => "refused: schema",
            Self::Wrong(_) => "wrong",
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Unfit(message) | Self::RefusedSchema(message) | Self::Wrong(message) => message,
            Self::Calls(_) | Self::Text | Self::RefusedBudget => "",
        }
    }
}
