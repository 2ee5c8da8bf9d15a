//! Items and blocks that the APIs return are read when a client sends them back.

use lm_api::{
    AnthropicRequest, ChatEngine, ChatRequest, Limits, ResponseStore, ResponsesRequest, Result, Value,
};
use lm_conversation::Role;
use serde_json::json;

use crate::support::scripted;

fn responses(items: &[Value]) -> Result<ChatRequest> {
    let input: Value = [json!({"role": "user", "content": "Begin."})].iter().chain(items).cloned().collect();
    let body = json!({"input": input});
    ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default())
        .map(|request| request.chat)
}

fn anthropic(messages: Value) -> Result<ChatRequest> {
    AnthropicRequest::message(json!({"max_tokens": 9, "messages": messages}), &Limits::default())
}

/// A conversation with these blocks of the assistant between two turns of the user.
fn assistant(blocks: &[Value]) -> Result<ChatRequest> {
    anthropic(json!([
        {"role": "user", "content": "Begin."}, {"role": "assistant", "content": blocks}, {"role": "user", "content": "Go on."},
    ]))
}

/// The prompt of a request.
fn prompt(request: &ChatRequest) -> String {
    let (engine, config) = scripted(&["Hi."], "hermes");
    ChatEngine::new(engine, config).render(request).expect("it renders").text
}

#[test]
fn calls_of_the_api_are_calls_with_results() {
    let operation = json!({"type": "create_file", "path": "new.txt", "diff": "+one"});
    for (items, shown) in [
        (
            vec![
                json!({"type": "local_shell_call", "id": "l1", "call_id": "c1", "status": "completed", "action": {"type": "exec", "command": ["ls", "-a"], "env": {}}}),
                json!({"type": "local_shell_call_output", "id": "c1", "output": "{\"stdout\": \"notes.txt\"}"}),
            ],
            vec!["local_shell", r#"["ls", "-a"]"#, "notes.txt"],
        ),
        (
            vec![
                json!({"type": "shell_call", "id": "s1", "call_id": "c2", "status": "completed", "action": {"commands": ["pwd"], "timeout_ms": null}}),
                json!({"type": "shell_call_output", "call_id": "c2", "output": [{"stdout": "/home", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
            ],
            vec!["shell", "pwd", "/home", "exit_code"],
        ),
        (
            vec![
                json!({"type": "apply_patch_call", "call_id": "c3", "status": "completed", "operation": operation}),
                json!({"type": "apply_patch_call_output", "call_id": "c3", "status": "failed", "output": "no such folder"}),
            ],
            vec!["apply_patch", "new.txt", "+one", "failed", "no such folder"],
        ),
        (
            vec![
                json!({"type": "mcp_call", "id": "m1", "server_label": "deep", "name": "roll", "arguments": "{\"dice\": \"2d4\"}", "output": "five"}),
            ],
            vec!["roll", "2d4", "five"],
        ),
        (
            vec![
                json!({"type": "mcp_call", "id": "m1", "server_label": "deep", "name": "roll", "arguments": "{}", "error": "no dice"}),
            ],
            vec!["roll", "no dice"],
        ),
        (
            vec![
                json!({"type": "mcp_list_tools", "id": "m2", "server_label": "deep", "tools": [{"name": "roll", "input_schema": {"type": "object"}}]}),
            ],
            vec!["mcp_list_tools", "deep", "roll"],
        ),
        (
            vec![
                json!({"type": "mcp_approval_request", "id": "a1", "server_label": "deep", "name": "roll", "arguments": "{\"dice\": 3}"}),
                json!({"type": "mcp_approval_response", "approval_request_id": "a1", "approve": false, "reason": "too many"}),
            ],
            vec!["roll", "approve", "too many"],
        ),
        (
            vec![
                json!({"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "tides"}}),
            ],
            vec!["web_search", "tides", "completed"],
        ),
        (
            vec![
                json!({"type": "file_search_call", "id": "f1", "status": "completed", "queries": ["tides"], "results": [{"filename": "sea.md", "text": "Twice a day."}]}),
            ],
            vec!["file_search", "tides", "sea.md", "Twice a day."],
        ),
        (
            vec![
                json!({"type": "code_interpreter_call", "id": "i1", "status": "completed", "code": "print(7)", "outputs": [{"type": "logs", "logs": "seven"}], "container_id": "x"}),
            ],
            vec!["code_interpreter", "print(7)", "seven"],
        ),
        (
            vec![
                json!({"type": "computer_call", "id": "p1", "call_id": "c4", "status": "completed", "action": {"type": "click", "x": 41}, "pending_safety_checks": []}),
                json!({"type": "computer_call_output", "call_id": "c4", "output": {"type": "computer_screenshot", "file_id": "file-9"}}),
            ],
            vec!["computer", "41", "file-9"],
        ),
        (
            vec![
                json!({"type": "tool_search_call", "call_id": "c5", "arguments": {"query": "maps"}}),
                json!({"type": "tool_search_output", "call_id": "c5", "tools": [{"type": "function", "name": "map", "parameters": {"type": "object"}}]}),
            ],
            vec!["tool_search", "maps"],
        ),
        (
            vec![
                json!({"type": "program", "id": "g1", "call_id": "c6", "code": "run()", "fingerprint": "x"}),
                json!({"type": "program_output", "id": "g2", "call_id": "c6", "result": "done so", "status": "completed"}),
            ],
            vec!["program", "run()", "done so"],
        ),
    ] {
        let request = responses(&items).unwrap_or_else(|error| panic!("{items:?}: {error}"));
        let messages = || request.preface.messages.iter().chain([&request.last]);
        let calls = messages().flat_map(|message| &message.tool_calls).count();
        let results = messages().filter(|message| message.role == Role::Tool).count();
        assert_eq!((calls, results), (1, 1), "{items:?}");
        let call = messages().find_map(|message| message.tool_calls.first()?.id.clone());
        assert!(call.is_some() && messages().any(|message| message.tool_call_id == call), "{items:?}");
        let text = prompt(&request);
        assert!(shown.iter().all(|part| text.contains(part)), "{shown:?}: {text}");
        assert!(request.dropped_contents().is_empty(), "{items:?}");
    }
}

#[test]
fn opaque_items_are_left_out_and_named() {
    let answer = json!({"type": "message", "role": "assistant", "content": "Here it is."});
    for (item, kind) in [
        (json!({"type": "compaction", "encrypted_content": "gAAA"}), "compaction"),
        (json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}), "reasoning"),
        (
            json!({"type": "image_generation_call", "id": "g", "status": "completed", "result": "iVBO", "revised_prompt": "A cat."}),
            "image_generation_call",
        ),
    ] {
        let request = responses(&[item, answer.clone(), json!({"role": "user", "content": "And?"})]);
        let request = request.unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(request.dropped_contents(), [kind]);
        let text = prompt(&request);
        assert!(text.contains("Here it is.") && !text.contains("gAAA") && !text.contains("iVBO"), "{text}");
    }
}

#[test]
fn items_change_tools_and_settings_of_what_follows() {
    let tool = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object"}});
    let settings = json!({"type": "configuration_update", "reasoning": {"effort": "none"}, "text": {"format": {"type": "json_object"}}});
    let items = json!([
        {"type": "additional_tools", "role": "developer", "tools": [tool("map")]},
        settings, {"role": "user", "content": "Begin."},
    ]);
    let body = json!({"input": items, "tools": [tool("now"), tool("map")]});
    let request = ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default());
    let chat = request.expect("a request").chat;
    let names: Vec<_> = chat.preface.tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["now", "map"]);
    assert_eq!(chat.preface.extra_context["reasoning_effort"], "none");
    assert!(chat.turn.response_format.is_some());
}

#[test]
fn unknown_types_are_refused_with_the_known_ones() {
    let error = responses(&[json!({"type": "gadget_call"})]).expect_err("is unknown");
    assert_eq!(error.param.as_deref(), Some("input[1].type"));
    for known in ["message", "apply_patch_call_output", "web_search_call", "item_reference"] {
        assert!(error.message.contains(known), "{error}");
    }
    let error = assistant(&[json!({"type": "gadget"})]).expect_err("is unknown");
    assert_eq!(error.param.as_deref(), Some("messages[1].content[0].type"));
    assert!(error.message.contains("server_tool_use"), "{error}");
}

#[test]
fn blocks_of_server_tools_are_calls_with_results() {
    for (name, input, result, shown) in [
        (
            "web_search",
            json!({"query": "tides"}),
            json!({"type": "web_search_tool_result", "content": [{"type": "web_search_result", "title": "The sea", "url": "https://sea.example", "encrypted_content": "gAAA"}]}),
            vec!["tides", "The sea", "https://sea.example"],
        ),
        (
            "web_fetch",
            json!({"url": "https://sea.example"}),
            json!({"type": "web_fetch_tool_result", "content": {"type": "web_fetch_result", "url": "https://sea.example", "content": {"type": "document", "source": {"type": "text", "data": "Twice a day."}}}}),
            vec!["Twice a day."],
        ),
        (
            "bash_code_execution",
            json!({"command": "ls"}),
            json!({"type": "bash_code_execution_tool_result", "content": {"type": "bash_code_execution_result", "stdout": "notes.txt", "stderr": "", "return_code": 0, "content": []}}),
            vec!["ls", "notes.txt"],
        ),
        (
            "tool_search_tool_regex",
            json!({"query": "map"}),
            json!({"type": "tool_search_tool_result", "content": {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "map_of"}]}}),
            vec!["map_of"],
        ),
    ] {
        let call = json!({"type": "server_tool_use", "id": "s1", "name": name, "input": input});
        let mut result = result;
        result["tool_use_id"] = "s1".into();
        let text = |text: &str| json!({"type": "text", "text": text});
        let request = assistant(&[text("I look."), call, result, text("So it is.")]);
        let request = request.unwrap_or_else(|error| panic!("{name}: {error}"));
        let roles: Vec<_> = request.preface.messages.iter().map(|message| message.role.as_str()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant"], "{name}");
        let text = prompt(&request);
        assert!(
            shown.iter().chain(&["I look.", "So it is.", name]).all(|part| text.contains(part)),
            "{text}"
        );
        assert!(!text.contains("gAAA"));
        let hidden = if name == "web_search" { vec!["web_search_tool_result"] } else { vec![] };
        assert_eq!(request.dropped_contents(), hidden, "{name}");
    }
}

#[test]
fn documents_and_search_results_are_text() {
    let source = json!({"type": "text", "media_type": "text/plain", "data": "Twice a day."});
    let content = json!({"type": "content", "content": [{"type": "text", "text": "Twice a day."}]});
    for (block, shown) in [
        (
            json!({"type": "document", "title": "Tides", "context": "A lexicon.", "source": source, "citations": {"enabled": true}}),
            vec!["Tides", "A lexicon.", "Twice a day."],
        ),
        (json!({"type": "document", "source": content}), vec!["Twice a day."]),
        (
            json!({"type": "search_result", "title": "Tides", "source": "https://sea.example", "content": [{"type": "text", "text": "Twice a day."}]}),
            vec!["Tides", "https://sea.example", "Twice a day."],
        ),
        (json!({"type": "tool_reference", "tool_name": "map_of"}), vec!["map_of"]),
        (json!({"type": "container_upload", "file_id": "file-9"}), vec!["file-9"]),
    ] {
        let of_user = anthropic(json!([{"role": "user", "content": [block]}]));
        let call = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": [block]});
        let of_tool = anthropic(
            json!([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]),
        );
        for request in [of_user, of_tool] {
            let text = prompt(&request.unwrap_or_else(|error| panic!("{block}: {error}")));
            assert!(shown.iter().all(|part| text.contains(part)), "{shown:?}: {text}");
        }
    }
    let pdf = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}});
    let error = anthropic(json!([{"role": "user", "content": [pdf]}])).expect_err("is no text");
    assert_eq!(error.code, Some("unsupported_content"));
}

#[test]
fn blocks_for_the_servers_alone_are_left_out_and_named() {
    let text = json!({"type": "text", "text": "So it is."});
    for (block, dropped) in [
        (json!({"type": "redacted_thinking", "data": "gAAA"}), true),
        (json!({"type": "fallback", "to": {"model": "x"}}), true),
        (json!({"type": "compaction", "content": null, "encrypted_content": "gAAA"}), true),
        (json!({"type": "compaction", "content": "We spoke of tides."}), false),
    ] {
        let request =
            assistant(&[block.clone(), text.clone()]).unwrap_or_else(|error| panic!("{block}: {error}"));
        let kind = block["type"].as_str().expect("a type");
        let expected = if dropped { vec![kind] } else { Vec::new() };
        assert_eq!(request.dropped_contents(), expected, "{block}");
        let text = prompt(&request);
        assert!(text.contains("So it is.") && !text.contains("gAAA"), "{text}");
        assert!(dropped || text.contains("We spoke of tides."), "{text}");
    }
}

#[test]
fn call_with_an_empty_result_has_its_state() {
    let call = json!({"type": "file_search_call", "id": "f1", "status": "incomplete", "queries": ["tides"], "results": []});
    let request = responses(&[call]).expect("a request");
    assert!(request.last.content.text().contains("incomplete"), "{:?}", request.last.content);
}

#[test]
fn approval_answers_its_request_though_it_has_an_id() {
    let request = responses(&[
        json!({"type": "mcp_approval_request", "id": "a1", "server_label": "deep", "name": "roll", "arguments": "{}"}),
        json!({"type": "mcp_approval_response", "id": "r1", "approval_request_id": "a1", "approve": true}),
    ])
    .expect("a request");
    assert_eq!(request.last.tool_call_id.as_deref(), Some("a1"));
}

#[test]
fn file_in_a_result_is_refused_by_its_place() {
    let error = responses(&[
        json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file", "file_id": "file-9"}]}),
    ])
    .expect_err("a file is not read");
    assert_eq!(error.code, Some("unsupported_content"), "{error}");
}

#[test]
fn null_members_of_a_builtin_call_are_not_arguments() {
    let action = json!({"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": null, "user": null});
    let request = responses(&[
        json!({"type": "local_shell_call", "call_id": "c", "action": action}),
        json!({"type": "local_shell_call_output", "call_id": "c", "output": "a"}),
    ])
    .expect("a request");
    let arguments = &request.preface.messages[1].tool_calls[0].arguments;
    assert_eq!(Value::Object(arguments.clone()), json!({"command": ["ls"]}));
}

#[test]
fn last_setting_holds() {
    let update = |effort: &str| json!({"type": "configuration_update", "reasoning": {"effort": effort}});
    let request = responses(&[update("low"), update("high"), json!({"role": "user", "content": "Go."})]);
    assert_eq!(request.expect("a request").preface.extra_context["reasoning_effort"], "high");
}
