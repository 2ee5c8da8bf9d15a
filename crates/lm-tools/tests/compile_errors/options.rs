// Options that do not exist, or do not fit together.
use lm_tools::{CallContext, tool};

/// Has an unknown option.
#[tool(readonly)]
fn unknown() {}

/// Has a wrong name.
#[tool(name = "two words")]
fn name() {}

/// Has a wrong time.
#[tool(timeout = "5")]
fn time() {}

/// Has a result without a name.
#[tool(output_schema)]
fn result() -> impl ToString {
    ""
}

/// Has unknown options of arguments.
#[tool]
fn arguments(#[arg(minimum = 1)] a: i64, #[arg(items(default = 1))] b: Vec<i64>) {}

/// Has a default twice.
#[tool]
fn twice(#[arg(default = 1, default = 2)] a: i64) {}

/// Has a default that is never used.
#[tool]
fn optional(#[arg(default = 1)] a: Option<i64>) {}

/// Has defaults outside of their limits.
#[tool]
fn outside(
    #[arg(range(1..=10), default = 0)] a: i64,
    #[arg(length(1..), default = "")] b: String,
    #[arg(choices("x", "y"), default = "z")] c: String,
) {}

/// Has empty ranges.
#[tool]
fn empty(#[arg(range(10..=1))] a: i64, #[arg(length(..))] b: String, #[arg(range(5))] c: i64) {}

/// Has two arguments of one name.
#[tool]
fn names(#[arg(rename = "b")] a: i64, b: i64) {}

/// Has an option of an argument that the model does not see.
#[tool]
fn hidden(#[arg(rename = "c")] context: &CallContext) {}

/// Has two descriptions.
///
/// Args:
///     a: A number.
#[tool]
fn described(#[arg(description = "A number.")] a: i64) {}

/// Has defaults just outside of their limits.
#[tool]
fn edges(
    #[arg(range(0..10), default = 10)] excluded: i64,
    #[arg(range(0.5..1.0), default = 1.0)] share: f64,
    #[arg(length(4..), default = "été")] characters: String,
) {}

/// Has patterns that are not regular expressions.
#[tool]
fn patterns(
    #[arg(pattern = "^(a|b")] open: String,
    #[arg(items(pattern = "[a-"))] class: Vec<String>,
    #[arg(pattern = "*.txt")] glob: String,
) {}
