//! Sets of tools: their declarations, and the execution of calls.

use crate::validation::ArgumentSchema;
use crate::{Error, Invocation, Result, Tool, ToolError};
use lm_template::{Message, ToolCall, ToolSpec};
use serde_json::{Map, Value, json};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// The tools that a model may call, in the order of their declarations. Cloning is cheap.
///
/// ```
/// use lm_tools::{ToolCall, Toolset, tool};
/// use serde_json::json;
///
/// /// Multiply a and b.
/// #[tool]
/// fn multiply(/** first int */ a: i64, /** second int */ b: i64) -> i64 {
///     a * b
/// }
///
/// let tools = Toolset::new().with(multiply::tool())?;
/// let call = ToolCall::from_json(json!({"name": "multiply", "arguments": {"a": 3, "b": 5}, "id": "call_0"}))?;
/// let expected = json!({"role": "tool", "content": "15", "tool_call_id": "call_0", "name": "multiply"});
/// assert_eq!(tools.call(&call).to_json(), expected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Toolset {
    entries: Vec<Arc<Entry>>,
}

struct Entry {
    spec: ToolSpec,
    schema: ArgumentSchema,
    tool: Box<dyn Tool>,
}

impl Toolset {
    /// Creates an empty toolset.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// When there is a tool with this name, or the declared parameters are not a valid JSON schema. Schemas with
    /// references to other files or hosts are rejected: nothing is fetched.
    pub fn with(mut self, tool: impl Tool + 'static) -> Result<Self> {
        let spec = tool.spec();
        if self.entry(spec.name()).is_some() {
            return Err(Error::DuplicateTool { name: spec.name().to_owned() });
        }
        let schema = ArgumentSchema::compile(&spec)?;
        self.entries.push(Arc::new(Entry { spec, schema, tool: Box::new(tool) }));
        Ok(self)
    }

    /// Adds a tool with a JSON declaration that runs a closure.
    ///
    /// ```
    /// use lm_tools::{ToolSpec, Toolset};
    /// use serde_json::json;
    ///
    /// let spec = ToolSpec::from_json(json!({
    ///     "name": "shout",
    ///     "description": "Say it louder.",
    ///     "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    /// }))?;
    /// let tools = Toolset::new().with_fn(spec, |arguments| {
    ///     Ok(arguments["text"].as_str().unwrap_or_default().to_uppercase().into())
    /// })?;
    /// assert_eq!(tools.specs()[0].name(), "shout");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn with_fn<F>(self, spec: ToolSpec, run: F) -> Result<Self>
    where
        F: Fn(Map<String, Value>) -> Result<Value, ToolError> + Send + Sync + 'static,
    {
        self.with(DeclaredTool { spec, run })
    }

    /// Declarations of the tools, for a [`Preface`](lm_template::Preface).
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.entries.iter().map(|entry| entry.spec.clone()).collect()
    }

    /// Executes a call and returns its tool message, with the call's id and name.
    ///
    /// A text result is the message's text, an object its JSON; other values become text in JSON syntax. This never
    /// fails: for an unknown name, invalid arguments, a tool's error or a tool's panic, the result is
    /// `{"tool_name": …, "error": …}`, which the model can read. (A panic in a program built with `panic = "abort"`
    /// aborts the program.)
    pub fn call(&self, call: &ToolCall) -> Message {
        let _span = tracing::info_span!("tool_call", tool = call.name).entered();
        let started = Instant::now();
        let result = self.run(call);
        tracing::debug!(elapsed_ms = started.elapsed().as_millis(), failed = result.is_err());
        let result = result.unwrap_or_else(|error| json!({"tool_name": call.name, "error": error}));
        Message::tool(call.id.as_deref(), call.name.as_str(), message_content(result))
    }

    /// Executes a call in LangChain's format; see [`call`](Self::call).
    pub fn invoke(&self, invocation: &Invocation) -> Message {
        self.call(&ToolCall::from(invocation))
    }

    fn run(&self, call: &ToolCall) -> Result<Value, String> {
        let entry = self.entry(&call.name).ok_or("Tool not found")?;
        let arguments = Value::Object(call.arguments.clone());
        entry.schema.check(&arguments).map_err(|error| error.to_string())?;
        // Unwind safety is the tool's responsibility.
        match catch_unwind(AssertUnwindSafe(|| entry.tool.call(call.arguments.clone()))) {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(payload) => Err(format!("the tool panicked: {}", panic_message(payload.as_ref()))),
        }
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.spec.name() == name).map(AsRef::as_ref)
    }
}

impl std::fmt::Debug for Toolset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| entry.spec.name())).finish()
    }
}

struct DeclaredTool<F> {
    spec: ToolSpec,
    run: F,
}

impl<F> Tool for DeclaredTool<F>
where
    F: Fn(Map<String, Value>) -> Result<Value, ToolError> + Send + Sync,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(&self, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        (self.run)(arguments)
    }
}

/// Numbers and booleans become text, as in chat APIs; so do lists, which templates would read as parts of a message.
fn message_content(result: Value) -> Value {
    match result {
        Value::String(_) | Value::Object(_) => result,
        other => Value::String(other.to_string()),
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests;
