//! Resources and prompts of servers.
#![cfg(unix)]

use lm_mcp::{Error, Mcp, ServerConfig};
use lm_template::{Content, Message, Part, Role};
use serde_json::{Map, Value, json};

/// A server that answers each method with the rest of a line of `$1`, which begins with the method's name;
/// other requests are refused.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  method=$(printf '%s' "$line" | sed -n 's/.*"method":"\([^"]*\)".*/\1/p')
  [ -z "$id" ] && continue
  result=$(printf '%s\n' "$1" | sed -n "s|^$method ||p")
  if [ -n "$result" ]; then printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
  else printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"not here"}}\n' "$id"; fi
done
"#;

fn server(name: &str, capabilities: &Value, answers: &[(&str, Value)]) -> ServerConfig {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}});
    let first = [("initialize", hello)];
    let lines = first.iter().chain(answers).map(|(method, answer)| format!("{method} {answer}\n"));
    ServerConfig::command(name, "sh", ["-c".to_owned(), SERVER.to_owned(), "sh".to_owned(), lines.collect()])
}

fn library(name: &str) -> ServerConfig {
    let resource =
        json!({"uri": "a://b", "name": "b", "mimeType": "text/plain", "size": 5, "description": "A file."});
    let template =
        json!({"uriTemplate": "a://{x}", "name": "x", "title": "Any", "description": "One of them."});
    let contents = json!([
        {"uri": "a://b", "text": "hello"},
        {"uri": "a://c", "blob": "AAEC", "mimeType": "image/png"},
    ]);
    let argument = json!({"name": "code", "description": "The code.", "required": true});
    let prompt =
        json!({"name": "review", "description": "Reviews.", "arguments": [argument, {"name": "style"}]});
    let text = |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
    let messages = json!([text("user", "Review this."), text("assistant", "Gladly.")]);
    let answers = [
        ("resources/list", json!({"resources": [resource]})),
        ("resources/read", json!({"contents": contents})),
        ("resources/templates/list", json!({"resourceTemplates": [template]})),
        ("prompts/list", json!({"prompts": [prompt]})),
        ("prompts/get", json!({"messages": messages})),
    ];
    server(name, &json!({"resources": {}, "prompts": {}}), &answers)
}

fn connect(servers: Vec<ServerConfig>) -> Mcp {
    Mcp::builder().servers(servers).connect().expect("servers")
}

fn code() -> Map<String, Value> {
    Map::from_iter([("code".to_owned(), "x".into())])
}

#[test]
fn resources_are_listed_and_read() {
    let mcp = connect(vec![library("one")]);
    let listed = mcp.resources();
    assert_eq!(listed.problems, []);
    let [resource] = &listed.items[..] else { panic!("{listed:?}") };
    assert_eq!((&*resource.server, &*resource.uri, &*resource.title), ("one", "a://b", "b"));
    assert_eq!((resource.mime_type.as_deref(), resource.size), (Some("text/plain"), Some(5)));
    let templates = mcp.resource_templates();
    assert_eq!(templates.problems, []);
    let [template] = &templates.items[..] else { panic!("{templates:?}") };
    assert_eq!((&*template.server, &*template.uri_template, &*template.title), ("one", "a://{x}", "Any"));
    assert_eq!((template.description.as_deref(), &template.mime_type), (Some("One of them."), &None));
    let parts = mcp.read_resource("a://b").expect("a resource");
    assert_eq!(parts[0], Part::Text("[a://b]\nhello\n[a://c]\n".to_owned()));
    assert_eq!(parts[1].note(None).as_deref(), Some("[image: image/png, 3 bytes, not shown]"));
}

#[test]
fn prompts_are_listed_and_get_their_arguments() {
    let mcp = connect(vec![library("one")]);
    let listed = mcp.prompts();
    let [prompt] = &listed.items[..] else { panic!("{listed:?}") };
    assert_eq!((&*prompt.name, prompt.description.as_deref()), ("review", Some("Reviews.")));
    let required: Vec<_> =
        prompt.arguments.iter().map(|argument| (&*argument.name, argument.required)).collect();
    assert_eq!(required, [("code", true), ("style", false)]);
    for name in ["review", "one/review"] {
        let messages = mcp.prompt(name, code()).expect("a prompt");
        let shown: Vec<_> =
            messages.iter().map(|Message { role, content, .. }| (role, content.text())).collect();
        let expected = [(&Role::User, "Review this.".to_owned()), (&Role::Assistant, "Gladly.".to_owned())];
        assert_eq!(shown, expected);
        assert!(matches!(messages[0].content, Content::Text(_)));
    }
    let error = mcp.prompt("review", Map::new()).expect_err("no code");
    assert_eq!(error.to_string(), "the prompt `review` needs the argument `code`");
}

#[test]
fn several_servers_have_one_list_and_their_own_errors() {
    let failing = server("bad", &json!({"resources": {}, "prompts": {}}), &[]);
    let plain = server("plain", &json!({"tools": {}}), &[("tools/list", json!({"tools": []}))]);
    let mcp = connect(vec![failing, library("one"), plain, library("two")]);
    let (resources, prompts) = (mcp.resources(), mcp.prompts());
    assert_eq!((resources.items.len(), prompts.items.len()), (2, 2));
    for problems in [resources.problems, prompts.problems] {
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        assert!(problem.server == "bad" && problem.message.contains("not here"), "{problem}");
    }
    assert!(mcp.read_resource("a://b").is_ok(), "the first server does not have it");
    let error = mcp.prompt("review", code()).expect_err("two of them");
    assert!(error.to_string().ends_with("expected one of one/review, two/review"), "{error}");
    assert!(mcp.prompt("two/review", code()).is_ok());
    let error = mcp.prompt("other", code()).expect_err("none");
    assert_eq!(error.to_string(), "no MCP server has a prompt `other`");
}

#[test]
fn servers_without_the_capability_are_not_asked() {
    let plain = server("plain", &json!({"tools": {}}), &[("tools/list", json!({"tools": []}))]);
    let mcp = connect(vec![plain]);
    assert_eq!((mcp.resources().items, mcp.prompts().items), (vec![], vec![]));
    assert!(matches!(mcp.read_resource("a://b"), Err(Error::NoResource { .. })));
    let none = Mcp::builder().connect().expect("no servers");
    assert!(none.resources().items.is_empty() && none.prompt("review", code()).is_err());
}
