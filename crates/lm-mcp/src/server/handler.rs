//! Requests of clients: the tools and their calls.

use lm_template::{Content, Media, Part};
use lm_tools::{
    CallEvent, CallResult, CancelHandle, RunningCalls, ToolAnnotations, ToolCall, ToolSpec, Toolset, Value,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use std::sync::Arc;
use tokio::sync::watch;

/// Handler of the requests of one client, or of all.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    tools: Toolset,
    list: Arc<[Tool]>,
    /// Dropped with the last clone, which a running call holds.
    _running: watch::Receiver<()>,
}

impl Handler {
    pub fn new(tools: Toolset, running: watch::Receiver<()>) -> Self {
        let list = tools.specs().iter().map(|spec| declaration(&tools, spec)).collect();
        Self { tools, list, _running: running }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("lm", env!("CARGO_PKG_VERSION")))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.list.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: self.list.to_vec(), ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.get_tool(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let call = ToolCall::new(request.name.as_ref(), request.arguments.unwrap_or_default());
        let cancel = CancelHandle::new();
        // Dropping it, as at the end of the connection, cancels the call.
        let mut calls = self.tools.start(vec![call], &cancel, None);
        let mut reports = Reports::to(&context);
        let called = tokio::select! {
            result = finished(&mut calls, &mut reports) => result,
            () = context.ct.cancelled() => {
                cancel.cancel();
                finished(&mut calls, &mut reports).await
            }
        };
        let called = called.ok_or_else(|| ErrorData::internal_error("the call has no result", None))?;
        Ok(CallToolResponse::Complete(result(called, tool.output_schema.is_some())))
    }
}

/// Waits for the result of the single call, and forwards its progress.
async fn finished(calls: &mut RunningCalls, reports: &mut Reports) -> Option<CallResult> {
    loop {
        match calls.recv_event().await? {
            CallEvent::Finished(result) => return Some(*result),
            CallEvent::Progress { progress, .. } => reports.send(progress).await,
            _ => {} // Another attempt.
        }
    }
}

/// Reports of a call's progress to a client that has asked for them.
struct Reports {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    sent: u32,
}

impl Reports {
    fn to(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), token: context.meta.get_progress_token(), sent: 0 }
    }

    /// Sends a report: its number, which increases as the protocol asks, and its text.
    async fn send(&mut self, progress: Value) {
        let Some(token) = self.token.clone() else { return };
        self.sent += 1;
        let text = progress.as_str().map_or_else(|| progress.to_string(), str::to_owned);
        let report = ProgressNotificationParam::new(token, f64::from(self.sent)).with_message(text);
        if let Err(error) = self.peer.notify_progress(report).await {
            tracing::debug!(%error, "a report of progress was not sent");
        }
    }
}

/// Declaration of a tool. MCP has schemas of objects only, for arguments and for results.
fn declaration(tools: &Toolset, spec: &ToolSpec) -> Tool {
    let mut parameters = object(spec.parameters()).unwrap_or_default();
    if !parameters.contains_key("type") {
        parameters.insert("type".to_owned(), "object".into());
    }
    let description = Some(spec.description().to_owned()).filter(|text| !text.is_empty()).map(Into::into);
    let mut tool = Tool::new_with_raw(spec.name().to_owned(), description, Arc::new(parameters));
    let output = tools.output_schema(spec.name()).and_then(object);
    tool.output_schema =
        output.filter(|schema| schema.get("type").is_some_and(|kind| kind == "object")).map(Arc::new);
    if let Some(hints) = tools.annotations(spec.name()) {
        tool.title.clone_from(&hints.title);
        tool.annotations = Some(annotations(hints)).filter(|_| *hints != ToolAnnotations::default());
    }
    tool
}

fn object(value: &Value) -> Option<JsonObject> {
    value.as_object().cloned()
}

fn annotations(hints: &ToolAnnotations) -> rmcp::model::ToolAnnotations {
    let ToolAnnotations { title, read_only, destructive, idempotent, open_world } = hints.clone();
    rmcp::model::ToolAnnotations::from_raw(title, read_only, destructive, idempotent, open_world)
}

/// Converts the result of a call. A tool that declares its results as objects has failed if there is none,
/// such as for one that was cut.
fn result(called: CallResult, is_declared: bool) -> CallToolResult {
    let CallResult { message, error, .. } = called;
    if let Some(error) = error {
        return CallToolResult::error(vec![ContentBlock::text(error.to_string())]);
    }
    let text = vec![ContentBlock::text(message.content.text())];
    match message.content {
        Content::Parts(parts) if !is_declared => {
            CallToolResult::success(parts.into_iter().filter_map(block).collect())
        }
        Content::Json(result) => {
            let mut succeeded = CallToolResult::success(text);
            succeeded.structured_content = Some(result);
            succeeded
        }
        _ if is_declared => CallToolResult::error(text),
        _ => CallToolResult::success(text),
    }
}

/// The block of a part.
fn block(part: Part) -> Option<ContentBlock> {
    let text = part.as_text().map(str::to_owned).or_else(|| part.note(None));
    let mime_type = |media: &Media, kind: &str| media.mime_type().unwrap_or(kind).to_owned();
    match &part {
        Part::Image(media) if let Some(data) = media.to_base64() => {
            Some(ContentBlock::image(data, mime_type(media, "image/*")))
        }
        Part::Audio(media) if let Some(data) = media.to_base64() => {
            Some(ContentBlock::audio(data, mime_type(media, "audio/*")))
        }
        _ => text.map(ContentBlock::text),
    }
}
