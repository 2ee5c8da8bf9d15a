//! Built-in tools of the Responses API that clients run, and tools that are left out.

use lm_api::{
    AnthropicRequest, ChatEngine, ChatRequest, Frame, Limits, ResponseStore, ResponsesRequest,
    ResponsesWriter, Result, Value,
};
use serde_json::json;

use crate::support::scripted;

const CALLS: [(&str, &str, &str); 3] = [
    (
        "local_shell",
        "<tool_call>\n{\"name\": \"local_shell\", \"arguments\": {\"command\": [\"ls\", \"-a\"]}}\n</tool_call>",
        r#"{"type": "local_shell_call", "action": {"type": "exec", "env": {}, "command": ["ls", "-a"]}}"#,
    ),
    (
        "shell",
        "<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"commands\": [\"ls\"]}}\n</tool_call>",
        r#"{"type": "shell_call", "action": {"timeout_ms": null, "max_output_length": null, "commands": ["ls"]}}"#,
    ),
    (
        "apply_patch",
        "<tool_call>\n{\"name\": \"apply_patch\", \"arguments\": {\"type\": \"delete_file\", \"path\": \"a.txt\", \"diff\": \"\"}}\n</tool_call>",
        r#"{"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a.txt"}}"#,
    ),
];

fn request(kind: &str, input: Value) -> ResponsesRequest {
    let body =
        json!({"input": input, "tools": [{"type": kind}], "tool_choice": {"type": kind}, "stream": true});
    ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default())
        .expect("a request")
}

fn running(kind: &str, reply: &'static str) -> lm_api::Running<ResponsesWriter> {
    let (engine, config) = scripted(&[reply], "hermes");
    let (request, store) = (request(kind, json!("Go.")), ResponseStore::default());
    let start = |_: &ChatRequest, model: &str| ResponsesWriter::new(request.clone(), model, &store);
    ChatEngine::new(engine, config).start(request.chat.clone(), start).expect("it starts")
}

/// The item without what differs in each run.
fn without_ids(item: &Value) -> Value {
    let mut item = item.clone();
    assert!(item["id"].is_string() && item["call_id"].is_string(), "{item}");
    let members = item.as_object_mut().expect("an object");
    members.retain(|key, _| !["id", "call_id", "status"].contains(&key.as_str()));
    item
}

#[test]
fn calls_are_items_of_their_own_types() {
    for (kind, reply, expected) in CALLS {
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        let object = running(kind, reply).wait().expect("a response");
        let item = &object["output"][0];
        assert_eq!((without_ids(item), &item["status"]), (expected.clone(), &json!("completed")));

        let frames: Vec<Frame> = running(kind, reply).frames().map(|frame| frame.expect("a frame")).collect();
        let items = |event: &str| {
            let of_event = frames.iter().filter(|frame| frame.event == Some(event));
            of_event.map(|frame| without_ids(&frame.data["item"])).collect::<Vec<_>>()
        };
        assert_eq!(items("response.output_item.added"), items("response.output_item.done"), "{kind}");
        assert_eq!(items("response.output_item.done"), [expected], "{kind}");
        let output = &frames.last().expect("frames").data["response"]["output"];
        assert_eq!(output.as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn calls_come_back_as_the_model_wrote_them() {
    for (kind, reply, _) in CALLS {
        let object = running(kind, reply).wait().expect("a response");
        let item = &object["output"][0];
        let output = json!({"type": format!("{kind}_call_output"), "call_id": item["call_id"], "output": "It is done."});
        let request = request(kind, json!([{"role": "user", "content": "Go."}, item, output]));
        let call = &request.chat.preface.messages[1].tool_calls[0];
        let written: Value = serde_json::from_str(reply.lines().nth(1).expect("a call")).expect("JSON");
        assert_eq!(
            (call.name.as_str(), &Value::Object(call.arguments.clone())),
            (kind, &written["arguments"])
        );
        assert_eq!(request.chat.last.tool_call_id, call.id);
    }
}

#[test]
fn choices_of_tools_that_are_left_out_say_why() {
    let limits = Limits::default();
    let responses = |tool: Value, choice: Value| -> Result<ChatRequest> {
        let body = json!({"input": "Hi", "tools": [tool], "tool_choice": choice});
        ResponsesRequest::from_json_within(body, &ResponseStore::default(), &limits)
            .map(|request| request.chat)
    };
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let dated = json!({"type": "bash_20250124", "name": "bash"});
    let body = json!({"messages": messages, "max_tokens": 9, "tools": [dated], "tool_choice": {"type": "tool", "name": "bash"}});
    for (request, kind) in [
        (responses(json!({"type": "web_search"}), json!({"type": "web_search"})), "web_search"),
        (
            responses(
                json!({"type": "mcp", "server_label": "deep"}),
                json!({"type": "mcp", "server_label": "deep"}),
            ),
            "mcp",
        ),
        (responses(json!({"type": "file_search"}), json!("required")), "file_search"),
        (AnthropicRequest::message(body, &limits), "bash_20250124"),
        (
            ChatRequest::from_json(
                json!({"messages": messages, "tools": [{"type": "gadget", "name": "g"}], "tool_choice": {"type": "function", "function": {"name": "g"}}}),
            ),
            "gadget",
        ),
    ] {
        let error = request.expect_err(kind);
        assert_eq!(error.param.as_deref(), Some("tool_choice"));
        assert!(error.message.contains("left out") && error.message.contains(kind), "{error}");
    }
}

#[test]
fn nested_namespaces_keep_the_outer_name() {
    let tool = json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
    let inner = json!({"type": "namespace", "name": "notes", "tools": [tool]});
    let outer = json!({"type": "namespace", "name": "team", "tools": [inner, tool]});
    let body = json!({"input": "Hi", "tools": [outer]});
    let request = ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default());
    let chat = request.expect("a request").chat;
    let names: Vec<_> = chat.preface.tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["team__notes__look", "team__look"]);
}

#[test]
fn regular_expressions_of_custom_tools_are_those_of_guided_regex() {
    for (regex, pattern) in [
        ("(?i)ok", "^(?:[Oo][Kk\u{212a}])$".to_owned()),
        ("[[:digit:]]{2}", "^(?:[0-9]{2,2})$".to_owned()),
        ("[+-] .+", r"^(?:[+\-] [^\n]+)$".to_owned()),
        ("a|b*", "^(?:a|b*)$".to_owned()),
        ("(?=a)a", "^(?:(?=a)a)$".to_owned()),
    ] {
        let format = json!({"type": "grammar", "syntax": "regex", "definition": regex});
        let body = json!({"input": "Hi", "tools": [{"type": "custom", "name": "patch", "format": format}]});
        let request = ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default());
        let chat = request.expect("a request").chat;
        assert_eq!(chat.preface.tools[0].parameters()["properties"]["input"]["pattern"], pattern.as_str());
    }
}
