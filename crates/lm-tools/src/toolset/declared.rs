//! Tools with a declaration given as data.

use super::Toolset;
use crate::context::CallContext;
use crate::error::Result;
use crate::tool::{Tool, ToolOutput};
use crate::tool_error::ToolError;
use lm_template::ToolSpec;
use serde_json::{Map, Value};

/// A declaration and the closure that it declares.
pub(super) struct DeclaredTool<F> {
    pub spec: ToolSpec,
    pub run: F,
    pub is_async: bool,
}

impl<F> Tool for DeclaredTool<F>
where
    F: Fn(Map<String, Value>, &CallContext) -> ToolOutput + Send + Sync,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(&self, arguments: Map<String, Value>, context: &CallContext) -> ToolOutput {
        (self.run)(arguments, context)
    }

    fn is_async(&self) -> bool {
        self.is_async
    }
}

/// A declaration of an external tool.
struct CallersTool(ToolSpec);

impl Tool for CallersTool {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn call(&self, _: Map<String, Value>, _: &CallContext) -> ToolOutput {
        Err(ToolError::failed(NO_CODE)).into()
    }
}

const NO_CODE: &str = "this tool is run by the caller of the toolset, which gave no result";

impl Toolset {
    /// Adds a declaration without code: an external tool, which the caller runs.
    /// [`is_external`](Self::is_external) is true for it, and the toolset's own result of a call is an error,
    /// after the arguments were validated.
    ///
    /// The turn of an [`Agent`](crate::Agent) ends at its calls, when the other calls of the reply have their
    /// results ([`StopReason::ExternalCalls`](crate::StopReason::ExternalCalls)). The next turn begins with
    /// its results, in any order:
    ///
    /// ```
    /// # use lm_tools::testing::{ScriptedReply, scripted_engine};
    /// # use serde_json::json;
    /// use lm_tools::{Agent, Message, StopReason, ToolSpec, Toolset};
    ///
    /// # let script = [ScriptedReply::call("open_file", json!({})), ScriptedReply::text("It is open.")];
    /// # let engine = scripted_engine(script);
    /// let spec = ToolSpec::from_json(json!({"name": "open_file", "description": "Opens a file in the editor."}))?;
    /// let mut agent = Agent::builder(&engine, Toolset::new().with_external(spec)?).build()?;
    /// let mut reply = agent.run("Open my notes.")?;
    /// while let StopReason::ExternalCalls { calls } = &reply.stop {
    ///     let opened = |call: &lm_tools::ToolCall| Message::tool(call.id.as_deref(), &*call.name, "opened".into());
    ///     reply = agent.run(calls.iter().map(opened).collect::<Vec<_>>())?;
    /// }
    /// assert_eq!(reply.text(), "It is open.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A custom loop asks the toolset:
    ///
    /// ```
    /// use lm_tools::{ToolCall, ToolSpec, Toolset};
    /// use serde_json::json;
    ///
    /// let spec = ToolSpec::from_json(json!({"name": "open_file", "description": "Opens a file in the editor."}))?;
    /// let tools = Toolset::new().with_external(spec)?;
    /// let call = ToolCall::new("open_file", Default::default());
    /// assert!(tools.check(&call)?.is_external);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn with_external(self, spec: ToolSpec) -> Result<Self> {
        let mut tools = self.with(CallersTool(spec))?;
        tools.mark_last_external();
        Ok(tools)
    }
}
