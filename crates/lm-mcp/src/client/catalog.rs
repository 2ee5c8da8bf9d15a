//! Resources, templates of resources, and prompts of servers.

use super::connection::Connection;
use super::content;
use super::link::Link;
use super::{McpLimits, Problem};
use crate::{Error, Result};
use lm_template::{Content, Message, Part, Role};
use lm_tools::{Map, Value};
use rmcp::ServiceError;
use rmcp::model::{
    ErrorCode, GetPromptRequestParams, GetPromptResponse, PaginatedRequestParams, Prompt, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, Resource, ResourceTemplate, ServerCapabilities,
};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of resources or prompts of a server; the others are left out.
const MAX_LISTED: usize = 1024;

/// A resource that a server lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpResource {
    /// The server.
    pub server: String,
    /// Its address, for [`Mcp::read_resource`](crate::Mcp::read_resource).
    pub uri: String,
    /// Its title, or else its name.
    pub title: String,
    /// Description of its content.
    pub description: Option<String>,
    /// MIME type of its content.
    pub mime_type: Option<String>,
    /// Bytes of its content.
    pub size: Option<u64>,
}

/// A template of the addresses of resources that a server lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpResourceTemplate {
    /// The server.
    pub server: String,
    /// The template, RFC 6570, such as `file:///{path}`. With its variables filled in, it is an address for
    /// [`Mcp::read_resource`](crate::Mcp::read_resource).
    pub uri_template: String,
    /// Its title, or else its name.
    pub title: String,
    /// Description of its resources.
    pub description: Option<String>,
    /// MIME type of their contents, if all have the same.
    pub mime_type: Option<String>,
}

/// A prompt that a server lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpPrompt {
    /// The server.
    pub server: String,
    /// Its name, for [`Mcp::prompt`](crate::Mcp::prompt).
    pub name: String,
    /// Description of its purpose.
    pub description: Option<String>,
    /// Its arguments.
    pub arguments: Vec<McpPromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpPromptArgument {
    /// Its name.
    pub name: String,
    /// Description of its values.
    pub description: Option<String>,
    /// True if the prompt needs it.
    pub required: bool,
}

/// Items that the servers list, and the problems of servers that list none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed<T> {
    /// The items, in the order of the servers.
    pub items: Vec<T>,
    /// Servers whose list cannot be read, or is too long.
    pub problems: Vec<Problem>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: Vec::new(), problems: Vec::new() }
    }
}

/// A server to ask for its resources and prompts.
#[derive(Clone)]
pub(super) struct Library {
    pub link: Arc<Link>,
    pub limits: McpLimits,
}

/// A page of a list, and the cursor of the next one.
type Page<T> = Pin<Box<dyn Future<Output = Result<(Vec<T>, Option<String>), ServiceError>> + Send>>;

/// A list of servers.
struct List<T, U> {
    /// Returns true if the server has such lists.
    exists: fn(&ServerCapabilities) -> bool,
    page: fn(Arc<Connection>, PaginatedRequestParams) -> Page<T>,
    item: fn(&Library, T) -> U,
    plural: &'static str,
    /// True if a server that has no such method has an empty list.
    is_optional: bool,
}

const RESOURCES: List<Resource, McpResource> = List {
    exists: |capabilities| capabilities.resources.is_some(),
    page: |connection, at| {
        Box::pin(async move {
            let list = connection.peer.list_resources(Some(at)).await?;
            Ok((list.resources, list.next_cursor))
        })
    },
    item: |library, resource| McpResource {
        server: library.name(),
        uri: resource.uri,
        title: resource.title.unwrap_or(resource.name),
        description: resource.description,
        mime_type: resource.mime_type,
        size: resource.size,
    },
    plural: "resources",
    is_optional: false,
};

const TEMPLATES: List<ResourceTemplate, McpResourceTemplate> = List {
    exists: RESOURCES.exists,
    page: |connection, at| {
        Box::pin(async move {
            let list = connection.peer.list_resource_templates(Some(at)).await?;
            Ok((list.resource_templates, list.next_cursor))
        })
    },
    item: |library, template| McpResourceTemplate {
        server: library.name(),
        uri_template: template.uri_template,
        title: template.title.unwrap_or(template.name),
        description: template.description,
        mime_type: template.mime_type,
    },
    plural: "resource templates",
    is_optional: true,
};

const PROMPTS: List<Prompt, McpPrompt> = List {
    exists: |capabilities| capabilities.prompts.is_some(),
    page: |connection, at| {
        Box::pin(async move {
            let list = connection.peer.list_prompts(Some(at)).await?;
            Ok((list.prompts, list.next_cursor))
        })
    },
    item: |library, prompt| McpPrompt {
        server: library.name(),
        name: prompt.name,
        description: prompt.description.or(prompt.title),
        arguments: prompt
            .arguments
            .into_iter()
            .flatten()
            .map(|argument| McpPromptArgument {
                name: argument.name,
                description: argument.description.or(argument.title),
                required: argument.required == Some(true),
            })
            .collect(),
    },
    plural: "prompts",
    is_optional: false,
};

/// Lists the resources of all servers.
pub(super) async fn resources(libraries: Vec<Library>) -> Listed<McpResource> {
    list(&libraries, &RESOURCES).await
}

/// Lists the templates of resources of all servers.
pub(super) async fn templates(libraries: Vec<Library>) -> Listed<McpResourceTemplate> {
    list(&libraries, &TEMPLATES).await
}

/// Lists the prompts of all servers.
pub(super) async fn prompts(libraries: Vec<Library>) -> Listed<McpPrompt> {
    list(&libraries, &PROMPTS).await
}

/// Reads a resource from the first server that has it.
pub(super) async fn read_resource(libraries: Vec<Library>, uri: String) -> Result<Vec<Part>> {
    let mut failed = Error::NoResource { uri: uri.clone() };
    for library in libraries.iter().filter(|library| library.has(RESOURCES.exists)) {
        match library.read(uri.clone()).await {
            Ok(parts) => return Ok(parts),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Gets the messages of a prompt, named `NAME` or `SERVER/NAME`.
pub(super) async fn prompt(
    libraries: Vec<Library>,
    name: String,
    arguments: Map<String, Value>,
) -> Result<Vec<Message>> {
    let listed = list(&libraries, &PROMPTS).await.items;
    let qualified = |prompt: &McpPrompt| format!("{}/{}", prompt.server, prompt.name);
    let mut found = listed.iter().filter(|prompt| prompt.name == name || qualified(prompt) == name);
    let (Some(prompt), None) = (found.next(), found.next()) else {
        let named = listed.iter().filter(|prompt| prompt.name == name).map(qualified);
        return Err(Error::NoPrompt { several: named.collect(), name });
    };
    let is_missing =
        |argument: &&McpPromptArgument| argument.required && !arguments.contains_key(&argument.name);
    if let Some(missing) = prompt.arguments.iter().find(is_missing) {
        return Err(Error::MissingArgument { prompt: name, argument: missing.name.clone() });
    }
    let library = libraries.iter().find(|library| *library.link.server == *prompt.server);
    let library = library.ok_or_else(|| Error::NoPrompt { name, several: Vec::new() })?;
    library.messages(prompt.name.clone(), arguments).await
}

async fn list<T, U>(libraries: &[Library], kind: &List<T, U>) -> Listed<U> {
    let mut listed = Listed::default();
    for library in libraries.iter().filter(|library| library.has(kind.exists)) {
        let mut items = Vec::new();
        let pages = library.pages(kind, &mut items);
        let problem = match tokio::time::timeout(library.limits.start_timeout, pages).await {
            Ok(Ok(())) => None,
            Ok(Err(message)) => Some(message),
            Err(_) => Some(late(library.limits.start_timeout)),
        };
        listed.items.extend(items.into_iter().map(|item| (kind.item)(library, item)));
        let server = library.name();
        listed.problems.extend(problem.map(|message| Problem { server, tool: None, message }));
    }
    listed
}

fn late(timeout: Duration) -> String {
    format!("no answer after {} s", timeout.as_secs_f32())
}

impl Library {
    fn name(&self) -> String {
        self.link.server.to_string()
    }

    fn has(&self, exists: fn(&ServerCapabilities) -> bool) -> bool {
        self.link.connection().info().is_some_and(|info| exists(&info.capabilities))
    }

    /// Reads the pages of a list; an error is its description.
    async fn pages<T, U>(&self, kind: &List<T, U>, items: &mut Vec<T>) -> Result<(), String> {
        let mut cursor = None;
        // Each page must have an item: otherwise the list may be endless.
        for _ in 0..MAX_LISTED {
            let connection = self.link.usable().await?;
            let page = (kind.page)(connection.clone(), PaginatedRequestParams::default().with_cursor(cursor));
            let (more, next) = match page.await {
                Ok(page) => page,
                Err(ServiceError::McpError(error))
                    if kind.is_optional && error.code == ErrorCode::METHOD_NOT_FOUND =>
                {
                    return Ok(());
                }
                Err(error) => return Err(connection.failure(error).await),
            };
            let room = MAX_LISTED - items.len();
            let is_whole = more.len() <= room;
            items.extend(more.into_iter().take(room));
            cursor = next.filter(|_| is_whole);
            if is_whole && cursor.is_none() {
                return Ok(());
            }
            if !is_whole {
                break;
            }
        }
        Err(format!("it has more than {MAX_LISTED} {}: the others are left out", kind.plural))
    }

    async fn read(&self, uri: String) -> Result<Vec<Part>> {
        let params = ReadResourceRequestParams::new(uri);
        let connection = self.connection().await?;
        match self.within(&connection, connection.peer.read_resource_once(params)).await? {
            ReadResourceResponse::Complete(result) => {
                Ok(content::joined(result.contents.iter().flat_map(content::embedded)))
            }
            _ => Err(self.asks_for_more()),
        }
    }

    async fn messages(&self, name: String, arguments: Map<String, Value>) -> Result<Vec<Message>> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let connection = self.connection().await?;
        match self.within(&connection, connection.peer.get_prompt_once(params)).await? {
            GetPromptResponse::Complete(result) => Ok(result.messages.iter().map(message).collect()),
            _ => Err(self.asks_for_more()),
        }
    }

    async fn connection(&self) -> Result<Arc<Connection>> {
        self.link.usable().await.map_err(|message| Error::Request { message })
    }

    /// Waits for an answer within the time limit of a call.
    async fn within<T>(
        &self,
        connection: &Connection,
        answer: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T> {
        let timeout = self.limits.call_timeout.unwrap_or(Duration::MAX);
        let message = match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => connection.failure(error).await,
            Err(_) => format!("MCP server `{}`: {}", self.link.server, late(timeout)),
        };
        Err(Error::Request { message })
    }

    fn asks_for_more(&self) -> Error {
        let message = format!(
            "MCP server `{}` asks for more than the arguments, which this program does not support",
            self.link.server
        );
        Error::Request { message }
    }
}

fn message(message: &PromptMessage) -> Message {
    let role = if message.role == rmcp::model::Role::User { Role::User } else { Role::Assistant };
    let mut parts = content::joined(content::parts(&message.content).into_iter());
    let content = match (parts.pop(), parts.is_empty()) {
        (None, _) => Content::Text(String::new()),
        (Some(Part::Text(text)), true) => Content::Text(text),
        (Some(last), _) => {
            parts.push(last);
            Content::Parts(parts)
        }
    };
    Message::new(role, content)
}
