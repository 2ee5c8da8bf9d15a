//! Sets of tools: their declarations, and the execution of calls.

mod checks;
mod declared;
mod entry;
mod into_tools;
mod selection;

pub use checks::CheckedCall;
pub(crate) use entry::Entry;
pub use into_tools::IntoTools;

use crate::annotations::ToolAnnotations;
use crate::coercion::Coercion;
use crate::context::CallContext;
use crate::context::States;
use crate::error::Result;
use crate::execution::CallLimits;
use crate::execution::{Spawner, Watcher};
use crate::tool::ToolOutput;
use crate::tool_error::ToolError;
use declared::DeclaredTool;
use lm_template::{Declarations, ToolForm, ToolSpec};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::sync::Arc;

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
    states: States,
    limits: CallLimits,
    coercion: Coercion,
    spawner: Option<Spawner>,
    watcher: Arc<Watcher>,
}

impl Toolset {
    /// Creates an empty toolset.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, the tools of a value (`db.tools()`, see [`#[tools]`](macro@crate::tools)), or another
    /// toolset.
    ///
    /// Tools of another toolset keep their states; they run within the limits and on the runtime of this one.
    ///
    /// # Errors
    /// When the name is taken, a needed state is missing, or the declared parameters are not a valid JSON
    /// schema. Schemas with references to other files or hosts are rejected.
    pub fn with(self, tools: impl IntoTools) -> Result<Self> {
        tools.add_to(self)
    }

    /// Adds a state for the tools that are added after it, in place of one of the same type. See
    /// [`State`](crate::State).
    #[must_use]
    pub fn with_state(mut self, state: impl Send + Sync + 'static) -> Self {
        self.states.insert(state);
        self
    }

    /// Sets whether arguments are converted before their validation. Default [`Coercion::Off`].
    #[must_use]
    pub fn with_coercion(mut self, coercion: Coercion) -> Self {
        self.coercion = coercion;
        self
    }

    /// Sets the limits of calls.
    #[must_use]
    pub fn with_limits(mut self, limits: CallLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Runs the futures of asynchronous tools with this function, for example on a runtime:
    /// `move |future| { handle.spawn(future); }` with the handle of a tokio runtime. Without one, each future
    /// runs on its own thread. The thread that reads results as an iterator must not be the only one that
    /// polls the futures.
    #[must_use]
    pub fn with_spawner(
        mut self,
        spawn: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static,
    ) -> Self {
        self.spawner = Some(Arc::new(spawn));
        self
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
        let run = move |arguments, _: &CallContext| run(arguments).into();
        self.with(DeclaredTool { spec, run, is_async: false })
    }

    /// Adds a tool with a JSON declaration that runs an asynchronous closure.
    ///
    /// ```
    /// use lm_tools::{ToolCall, ToolSpec, Toolset};
    /// use serde_json::json;
    ///
    /// let spec = ToolSpec::from_json(json!({"name": "answer", "description": "Returns the answer."}))?;
    /// let tools = Toolset::new().with_async_fn(spec, async |_, _| Ok(42.into()))?;
    /// assert_eq!(tools.call(&ToolCall::new("answer", Default::default())).content.text(), "42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn with_async_fn<F, O>(self, spec: ToolSpec, run: F) -> Result<Self>
    where
        F: Fn(Map<String, Value>, CallContext) -> O + Send + Sync + 'static,
        O: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let run =
            move |arguments, context: &CallContext| ToolOutput::pending(run(arguments, context.clone()));
        self.with(DeclaredTool { spec, run, is_async: true })
    }

    /// Declarations of the tools, for a [`Preface`](lm_template::Preface).
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.entries.iter().map(|entry| entry.spec.clone()).collect()
    }

    /// Declarations of the tools in the form of an API.
    ///
    /// ```
    /// use lm_tools::{ToolForm, demo};
    ///
    /// let gemini = demo().declarations(ToolForm::Gemini);
    /// assert_eq!(gemini.json["functionDeclarations"][0]["name"], "get_weather");
    /// assert_eq!(gemini.dropped, [""; 0], "Gemini's schemas can express these");
    /// ```
    pub fn declarations(&self, form: ToolForm) -> Declarations {
        form.declarations(&self.specs())
    }

    /// Hints about the effects of a tool; `None` for an unknown name.
    pub fn annotations(&self, name: &str) -> Option<&ToolAnnotations> {
        self.entry(name).map(|entry| &entry.annotations)
    }

    /// JSON schema of a tool's result; `None` if the tool does not describe it or the name is unknown.
    pub fn output_schema(&self, name: &str) -> Option<&Value> {
        self.entry(name)?.output_schema.as_ref()
    }

    /// The limits of calls.
    pub fn limits(&self) -> &CallLimits {
        &self.limits
    }

    pub(crate) fn spawner(&self) -> Option<&Spawner> {
        self.spawner.as_ref()
    }

    pub(crate) fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.iter().find(|entry| entry.spec.name() == name)
    }
}

impl std::fmt::Debug for Toolset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| entry.spec.name())).finish()
    }
}

#[cfg(test)]
mod tests;
