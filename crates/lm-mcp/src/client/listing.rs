//! The tools of a server, within limits.

use super::link::Link;
use super::tool::McpTool;
use super::{McpLimits, Problem};
use crate::names::{self, shown};
use crate::{Error, Result};
use lm_tools::{ToolAnnotations, ToolSpec, Value};
use rmcp::ServiceError;
use rmcp::model::{
    ClientRequest, CustomResult, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool,
};
use std::sync::Arc;
use tokio::runtime::Handle;

/// The usable tools of a server, and the problems of the others.
#[derive(Clone, Default)]
pub(super) struct Listing {
    pub tools: Vec<McpTool>,
    pub problems: Vec<Problem>,
}

/// A server to list the tools of.
#[derive(Clone)]
pub(super) struct Source {
    pub link: Arc<Link>,
    /// Text before the names of the tools.
    pub prefix: String,
    pub limits: McpLimits,
    /// Runtime of the calls.
    pub runtime: Handle,
}

/// Reads the list of a server's tools within the time limit.
pub(super) async fn list(source: Source) -> Result<Listing> {
    let (server, timeout) = (source.link.server.to_string(), source.limits.start_timeout);
    let late = |_| Error::StartTimeout { server, timeout, output: String::new() };
    tokio::time::timeout(timeout, list_pages(source)).await.map_err(late)?
}

async fn list_pages(source: Source) -> Result<Listing> {
    let (connection, limits) = (source.link.connection(), source.limits);
    let mut listing = Listing::default();
    if connection.info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(listing);
    }
    let (mut cursor, mut pages, mut listed) = (None, 0, 0);
    loop {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest {
            method: Default::default(),
            params: Some(params),
            extensions: Default::default(),
        });
        let response = connection.peer.send_request(request).await;
        let page = match response.and_then(Page::read) {
            Ok(page) => page,
            Err(error) => return Err(connection.error(error).await),
        };
        pages += 1;
        for tool in page.tools {
            listed += 1;
            match tool.map_err(|problem| source.problem(problem)).and_then(|tool| source.remote(tool)) {
                _ if listed > limits.max_tools => {}
                Ok(tool) => listing.tools.push(tool),
                Err(problem) => listing.problems.push(problem),
            }
        }
        cursor = page.cursor;
        // Each page must have a tool: otherwise the list may be endless.
        if listed > limits.max_tools || cursor.is_some() && pages > limits.max_tools {
            let message = format!("it has more than {} tools: the others are left out", limits.max_tools);
            listing.problems.push(Problem { server: connection.server.to_string(), tool: None, message });
            return Ok(listing);
        }
        if cursor.is_none() {
            return Ok(listing);
        }
    }
}

/// A page of a list, whose tools are read one by one: an odd one costs no other.
struct Page {
    tools: Vec<Result<Tool, OddTool>>,
    cursor: Option<String>,
}

/// A declaration that is none.
struct OddTool {
    name: Option<String>,
    message: String,
}

impl Page {
    /// Reads a response. One with an odd tool has no type of its own.
    fn read(response: ServerResult) -> Result<Self, ServiceError> {
        let page = match response {
            ServerResult::ListToolsResult(page) => {
                return Ok(Self {
                    tools: page.tools.into_iter().map(Ok).collect(),
                    cursor: page.next_cursor,
                });
            }
            ServerResult::CustomResult(CustomResult(page)) => page,
            _ => return Err(ServiceError::UnexpectedResponse),
        };
        let tools = page["tools"].as_array().ok_or(ServiceError::UnexpectedResponse)?;
        let cursor = page["nextCursor"].as_str().map(str::to_owned);
        Ok(Self { tools: tools.iter().map(declaration).collect(), cursor })
    }
}

/// Reads a declaration.
fn declaration(tool: &Value) -> Result<Tool, OddTool> {
    let schema = match &tool["inputSchema"] {
        Value::Object(_) => None,
        Value::Null => Some("its `inputSchema` is missing".to_owned()),
        other => Some(format!("its `inputSchema` is {}, not an object", kind(other))),
    };
    let read = schema.map_or_else(
        || {
            serde_json::from_value(tool.clone())
                .map_err(|error| format!("its declaration is invalid: {error}"))
        },
        Err,
    );
    read.map_err(|message| OddTool { name: tool["name"].as_str().map(str::to_owned), message })
}

/// Type of a JSON value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl Source {
    fn problem(&self, OddTool { name, message }: OddTool) -> Problem {
        let tool = Some(name.as_deref().map_or_else(|| "without a name".to_owned(), shown));
        Problem { server: self.link.server.to_string(), tool, message }
    }

    /// Converts a declaration.
    fn remote(&self, tool: Tool) -> Result<McpTool, Problem> {
        let (name, limits) = (tool.name.to_string(), self.limits);
        let problem = |message: String| Problem {
            server: self.link.server.to_string(),
            tool: Some(shown(&name)),
            message,
        };
        if name.is_empty() {
            return Err(problem("it has no name".to_owned()));
        }
        let parameters = parameters(&tool, limits).map_err(problem)?;
        let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let description = cut(description, limits.max_description_bytes);
        let output_schema = tool.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()));
        Ok(McpTool {
            link: self.link.clone(),
            runtime: self.runtime.clone(),
            spec: ToolSpec::new(names::tool_name(&self.prefix, &name), description, parameters),
            annotations: annotations(&tool),
            output_schema: output_schema.filter(|schema| fault(schema, limits).is_none()),
            timeout: limits.call_timeout,
            remote_name: name,
        })
    }
}

/// The schema of the arguments, an object.
fn parameters(tool: &Tool, limits: McpLimits) -> Result<Value, String> {
    let mut schema = Value::Object((*tool.input_schema).clone());
    if let Some(fault) = fault(&schema, limits) {
        return Err(fault);
    }
    match &schema["type"] {
        Value::Null => schema["type"] = "object".into(),
        Value::String(kind) if kind == "object" => {}
        other => return Err(format!("its arguments are of the type {other}, not an object")),
    }
    Ok(schema)
}

/// Limit that a schema exceeds.
fn fault(schema: &Value, limits: McpLimits) -> Option<String> {
    if depth(schema) > limits.max_schema_depth {
        return Some(format!("its schema has more than {} levels", limits.max_schema_depth));
    }
    let bytes = schema.to_string().len();
    let limit = limits.max_schema_bytes;
    (bytes > limit).then(|| format!("its schema has {bytes} bytes, more than {limit}"))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

fn annotations(tool: &Tool) -> ToolAnnotations {
    let hints = tool.annotations.clone().unwrap_or_default();
    ToolAnnotations {
        title: hints.title.or_else(|| tool.title.clone()),
        read_only: hints.read_only_hint,
        destructive: hints.destructive_hint,
        idempotent: hints.idempotent_hint,
        open_world: hints.open_world_hint,
    }
}

fn cut(text: &str, max: usize) -> String {
    match text.len() > max {
        true => format!("{}…", &text[..text.floor_char_boundary(max)]),
        false => text.to_owned(),
    }
}
