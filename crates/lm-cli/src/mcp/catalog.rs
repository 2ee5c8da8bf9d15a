//! Lines about the resources and prompts of MCP servers.

use lm_mcp::{Listed, McpPrompt, McpResource, McpResourceTemplate};

use crate::screen::one_line;

/// Lines about the items of a list, and about the servers that have none to show.
pub fn shown<T>(listed: &Listed<T>, line: fn(&T) -> String) -> Vec<String> {
    let items = listed.items.iter().map(line);
    items.chain(listed.problems.iter().map(ToString::to_string)).map(|text| one_line(&text)).collect()
}

/// Describes a resource on one line.
pub fn resource(resource: &McpResource) -> String {
    let McpResource { server, uri, title, mime_type, size, description, .. } = resource;
    let kind = mime_type.iter().map(|kind| format!(", {kind}"));
    let size = size.iter().map(|size| format!(", {size} bytes"));
    let about = description.iter().map(|text| format!(": {}", first_line(text)));
    format!("{uri} [{server}] {title}{}", kind.chain(size).chain(about).collect::<String>())
}

/// Describes a template of resources on one line.
pub fn template(template: &McpResourceTemplate) -> String {
    let McpResourceTemplate { server, uri_template, title, mime_type, description, .. } = template;
    let kind = mime_type.iter().map(|kind| format!(", {kind}"));
    let about = description.iter().map(|text| format!(": {}", first_line(text)));
    format!("{uri_template} [{server}] {title}{}", kind.chain(about).collect::<String>())
}

/// Describes a prompt on one line; arguments that it does not need are in brackets.
pub fn prompt(prompt: &McpPrompt) -> String {
    let argument = |argument: &lm_mcp::McpPromptArgument| match argument.required {
        true => format!(" {}=…", argument.name),
        false => format!(" [{}=…]", argument.name),
    };
    let arguments: String = prompt.arguments.iter().map(argument).collect();
    let about = prompt.description.iter().map(|text| format!(": {}", first_line(text)));
    format!("{}{arguments} [{}]{}", prompt.name, prompt.server, about.collect::<String>())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
