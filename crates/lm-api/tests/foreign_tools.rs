//! Tools of other kinds than functions: those of an API's servers, custom ones, and namespaces; ids of calls.

use std::collections::HashSet;

use lm_api::{
    AnthropicRequest, ChatCompletions, ChatEngine, ChatRequest, ChunkWriter, Limits, OllamaRequest,
    ResponseStore, ResponsesRequest, ResponsesWriter, Value,
};
use serde_json::json;

use crate::support::scripted;

const PATCH: &str =
    "<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"+ one \\\"line\\\"\"}}\n</tool_call>";
const LOOK: &str = "<tool_call>\n{\"name\": \"mcp__notes__look\", \"arguments\": {}}\n</tool_call>";

fn function(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

fn names(request: &ChatRequest) -> Vec<&str> {
    request.preface.tools.iter().map(|tool| tool.name()).collect()
}

#[test]
fn tools_of_other_servers_are_left_out() {
    let limits = Limits::default();
    let hosted = [
        "web_search_preview",
        "file_search",
        "code_interpreter",
        "image_generation",
        "computer_use_preview",
        "mcp",
    ];
    let tools = |own: Value| -> Value {
        hosted
            .iter()
            .map(|kind| json!({"type": kind}))
            .chain([own, json!({"type": "gadget", "name": "g"})])
            .collect()
    };
    let all: Vec<&str> = hosted.into_iter().chain(["gadget"]).collect();
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let chat = ChatRequest::from_json(json!({"messages": messages, "tools": tools(function("f"))}));
    let flat = json!({"type": "function", "name": "f", "parameters": {"type": "object"}});
    let store = ResponseStore::default();
    let body = json!({"input": "Hi", "tools": tools(flat)});
    let responses = ResponsesRequest::from_json_within(body, &store, &limits).map(|request| request.chat);
    let body = json!({"messages": messages, "tools": tools(function("f"))});
    for request in [chat, responses, OllamaRequest::chat(body, &limits)] {
        let request = request.expect("a request");
        assert_eq!(
            (names(&request), request.dropped_tools()),
            (vec!["f"], &all.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>()[..])
        );
    }
    let dated = ["web_search_20250305", "bash_20250124", "text_editor_20250728", "code_execution_20250825"];
    let tools: Value = dated
        .iter()
        .map(|kind| json!({"type": kind, "name": "server_side"}))
        .chain([json!({"type": "custom", "name": "f", "input_schema": {"type": "object"}})])
        .collect();
    let body =
        |choice: Value| json!({"messages": messages, "max_tokens": 9, "tools": tools, "tool_choice": choice});
    let request = AnthropicRequest::message(body(json!({"type": "auto"})), &limits).expect("a request");
    assert_eq!((names(&request), request.dropped_tools().len()), (vec!["f"], 4));
    let forced = body(json!({"type": "tool", "name": "server_side"}));
    let error = AnthropicRequest::message(forced, &limits).expect_err("it cannot be called");
    assert_eq!(error.param.as_deref(), Some("tool_choice"));
}

fn chat_request(stream: bool) -> ChatRequest {
    let custom = json!({"name": "patch", "description": "Applies a patch.", "format": {"type": "text"}});
    ChatRequest::from_json(json!({
        "messages": [{"role": "user", "content": "Patch it."}],
        "tools": [{"type": "custom", "custom": custom}],
        "tool_choice": {"type": "custom", "custom": {"name": "patch"}},
        "stream": stream,
    }))
    .expect("a request")
}

fn completions(reply: &'static str) -> ChatCompletions {
    let (engine, config) = scripted(&[reply], "hermes");
    ChatCompletions::new(engine, config)
}

#[test]
fn custom_calls_of_chat_completions_have_an_input() {
    let object = completions(PATCH).complete(chat_request(false)).expect("a completion");
    let call = &object["choices"][0]["message"]["tool_calls"][0];
    assert_eq!((&call["type"], &call["function"]), (&json!("custom"), &Value::Null));
    assert_eq!(call["custom"], json!({"name": "patch", "input": "+ one \"line\""}));
    let frames = completions(PATCH).stream(chat_request(true)).expect("it starts");
    let deltas =
        frames.map(|frame| frame.expect("a frame").data["choices"][0]["delta"]["tool_calls"][0].clone());
    let deltas: Vec<Value> = deltas.filter(|delta| !delta.is_null()).collect();
    assert_eq!((&deltas[0]["type"], &deltas[0]["custom"]["name"]), (&json!("custom"), &json!("patch")));
    let input: String = deltas.iter().filter_map(|delta| delta["custom"]["input"].as_str()).collect();
    assert_eq!(input, "+ one \"line\"");

    let answered = json!([
        {"role": "user", "content": "Patch it."}, {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "Done."},
    ]);
    let request = ChatRequest::from_json(json!({"messages": answered})).expect("a request");
    assert_eq!(request.preface.messages[1].tool_calls[0].arguments["input"], "+ one \"line\"");
}

fn responses_request(tools: Value, input: Value) -> ResponsesRequest {
    let body = json!({"input": input, "tools": tools, "tool_choice": "required"});
    ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default())
        .expect("a request")
}

fn running(reply: &'static str, tools: Value) -> lm_api::Running<ResponsesWriter> {
    let (engine, config) = scripted(&[reply], "hermes");
    let request = responses_request(tools, json!("Do it."));
    let (chat, store) = (request.chat.clone(), ResponseStore::default());
    let writer = move |_: &ChatRequest, model: &str| ResponsesWriter::new(request, model, &store);
    ChatEngine::new(engine, config).start(chat, writer).expect("it starts")
}

#[test]
fn custom_calls_of_responses_have_an_input() {
    let tools = json!([{"type": "custom", "name": "patch", "format": {"type": "text"}}]);
    let response = running(PATCH, tools.clone()).wait().expect("a response");
    let item = &response["output"][0];
    assert_eq!((&item["type"], &item["name"]), (&json!("custom_tool_call"), &json!("patch")));
    assert_eq!(item["input"], "+ one \"line\"");
    let frames = running(PATCH, tools.clone()).frames().map(|frame| frame.expect("a frame"));
    let frames: Vec<(Option<&str>, Value)> = frames.map(|frame| (frame.event, frame.data)).collect();
    let of = |name: &str| {
        frames.iter().filter(|(event, _)| *event == Some(name)).map(|(_, data)| data).collect::<Vec<_>>()
    };
    let deltas: String = of("response.custom_tool_call_input.delta")
        .iter()
        .filter_map(|data| data["delta"].as_str())
        .collect();
    assert_eq!(
        (deltas.as_str(), &of("response.custom_tool_call_input.done")[0]["input"]),
        ("+ one \"line\"", &json!("+ one \"line\""))
    );
    assert_eq!(of("response.output_item.done")[0]["item"]["input"], "+ one \"line\"");
    assert!(of("response.function_call_arguments.delta").is_empty());

    let input = json!([
        {"role": "user", "content": "Patch it."}, item,
        {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "Done."}, {"type": "web_search_call", "id": "ws_1"},
    ]);
    let request = responses_request(tools, input).chat;
    assert_eq!(request.preface.messages[1].tool_calls[0].arguments["input"], "+ one \"line\"");
    assert_eq!(request.preface.messages[2].content.text(), "Done.");
    assert_eq!(request.preface.messages[3].tool_calls[0].name, "web_search");
}

#[test]
fn regular_expression_of_a_custom_tool_is_a_pattern() {
    let format = json!({"type": "grammar", "syntax": "regex", "definition": "[+-] .+"});
    let request =
        responses_request(json!([{"type": "custom", "name": "patch", "format": format}]), json!("Hi"));
    let input = &request.chat.preface.tools[0].parameters()["properties"]["input"];
    assert_eq!(input["pattern"], r"^(?:[+\-] [^\n]+)$", "`.` is also a carriage return");
}

#[test]
fn grammar_of_a_custom_tool_without_recursion_is_enforced() {
    let definition = "start: begin hunk+ end\nbegin: \"*** Begin\" LF\nhunk: (\"+\" | \"-\") /.+/ LF\n\
                      end: \"*** End\"\n%import common.LF";
    let tool = |definition: &str| {
        let format = json!({"type": "grammar", "syntax": "lark", "definition": definition});
        json!([{"type": "custom", "name": "patch", "description": "Edits.", "format": format}])
    };
    let request = responses_request(tool(definition), json!("Hi")).chat;
    let spec = &request.preface.tools[0];
    let pattern = spec.parameters()["properties"]["input"]["pattern"].as_str().expect("a pattern");
    assert!(pattern.starts_with("^(?:") && pattern.contains("Begin"), "{pattern}");
    let caseless = responses_request(tool("start: /a/i"), json!("Hi")).chat;
    let input = &caseless.preface.tools[0].parameters()["properties"]["input"];
    assert_eq!(input["pattern"], "^(?:[Aa])$", "flags are no syntax of JSON Schema");
    let shown = spec.to_json();
    assert!(shown["function"]["parameters"]["properties"]["input"].get("pattern").is_none(), "{shown}");
    assert!(
        shown["function"]["description"].as_str().is_some_and(|text| text.contains(definition)),
        "{shown}"
    );
    let tools = json!([{"type": "namespace", "name": "crm", "tools": tool("start: \"yes\" | \"no\"")}]);
    let namespaced = responses_request(tools, json!("Hi")).chat;
    let spec = &namespaced.preface.tools[0];
    let pattern = spec.parameters()["properties"]["input"]["pattern"].as_str();
    assert_eq!((spec.name(), pattern), ("crm__patch", Some("^(?:(?:yes|no))$")));
    // The engine writes what the grammar lets it, not what it would have written.
    let named = json!({"type": "custom", "name": "patch"});
    let body =
        json!({"input": "Hi", "tools": tool(definition), "tool_choice": named, "max_output_tokens": 200});
    let (engine, config) =
        scripted(&["<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"+ none"], "hermes");
    let store = ResponseStore::default();
    let request = ResponsesRequest::from_json_within(body, &store, &Limits::default()).expect("a request");
    let chat = request.chat.clone();
    let running = ChatEngine::new(engine, config)
        .start(chat, |_, model| ResponsesWriter::new(request, model, &store))
        .expect("it starts");
    let object = running.wait().expect("a response");
    let text = object.to_string();
    assert!(!text.contains("+ none"), "{text}");

    let recursive = responses_request(tool("start: \"(\" start? \")\""), json!("Hi")).chat;
    assert!(recursive.preface.tools[0].parameters()["properties"]["input"].get("pattern").is_none());
}

#[test]
fn functions_of_a_namespace_keep_their_names() {
    let look = json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
    let tools =
        json!([{"type": "namespace", "name": "mcp__notes__", "description": "Notes.", "tools": [look]}]);
    let response = running(LOOK, tools.clone()).wait().expect("a response");
    let item = &response["output"][0];
    assert_eq!(
        (&item["type"], &item["name"], &item["namespace"]),
        (&json!("function_call"), &json!("look"), &json!("mcp__notes__"))
    );
    let request = responses_request(
        tools,
        json!([{"role": "user", "content": "Do it."}, item, {"role": "user", "content": "Again."}]),
    )
    .chat;
    assert_eq!(names(&request), ["mcp__notes__look"]);
    assert_eq!(request.preface.messages[1].tool_calls[0].name, "mcp__notes__look");
    let spaced = json!([{"type": "namespace", "name": "crm", "tools": [{"type": "custom", "name": "note"}]}]);
    assert_eq!(names(&responses_request(spaced, json!("Hi")).chat), ["crm__note"]);
}

#[test]
fn ids_of_calls_are_unique_over_replies() {
    let id = |_: usize| {
        let object = completions(PATCH).complete(chat_request(false)).expect("a completion");
        object["choices"][0]["message"]["tool_calls"][0]["id"].as_str().expect("an id").to_owned()
    };
    let ids: HashSet<String> = (0..4).map(id).collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
    let kept = json!([
        {"role": "assistant", "tool_calls": [{"id": "their-own", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "their-own", "content": "1"},
    ]);
    let request = ChatRequest::from_json(json!({"messages": kept})).expect("a request");
    assert_eq!(request.preface.messages[0].tool_calls[0].id.as_deref(), Some("their-own"));
}

#[test]
fn unknown_format_of_a_custom_tool_is_an_error() {
    let read = |format: Value| {
        let body = json!({"input": "Hi", "tools": [{"type": "custom", "name": "c", "format": format}]});
        ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default())
    };
    for (format, at) in [
        (json!("text"), "tools[0].format"),
        (json!({"type": "yaml"}), "tools[0].format"),
        (json!({"type": "grammar", "syntax": "regex"}), "tools[0].format.definition"),
        (json!({"type": "grammar", "syntax": "ebnf", "definition": "a"}), "tools[0].format.syntax"),
    ] {
        assert_eq!(read(format).expect_err("no format").param.as_deref(), Some(at));
    }
    for format in [
        json!(null),
        json!({"type": "text"}),
        json!({"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}),
    ] {
        read(format).expect("a format");
    }
}

#[test]
fn error_of_a_pattern_names_its_definition() {
    let (engine, config) = scripted(&["Hello."], "hermes");
    let engine = ChatEngine::new(engine, config);
    let grammar = json!({"syntax": "regex", "definition": "a("});
    let other = json!({"type": "web_search"});
    let format = json!({"type": "grammar", "syntax": "regex", "definition": "a("});
    let tool = json!({"type": "custom", "name": "c", "format": format});
    let body = json!({"input": "Hi", "tools": [other, tool]});
    let request = ResponsesRequest::from_json_within(body, &ResponseStore::default(), &Limits::default());
    let chat = request.expect("a request").chat;
    let error = engine.start(chat, ChunkWriter::for_request).expect_err("no pattern");
    assert_eq!((error.status, error.param.as_deref()), (400, Some("tools[1].format.definition")), "{error}");
    let tool =
        json!({"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": grammar}}});
    let body = json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [tool]});
    let request = ChatRequest::from_json(body).expect("a request");
    let error = engine.start(request, ChunkWriter::for_request).expect_err("no pattern");
    assert_eq!(error.param.as_deref(), Some("tools[0].custom.format.grammar.definition"), "{error}");
}

#[test]
fn item_reference_is_the_stored_item() {
    let store = ResponseStore::default();
    let (engine, config) = scripted(&["Paris."], "hermes");
    let first = ResponsesRequest::from_json_within(json!({"input": "Where?"}), &store, &Limits::default());
    let first = first.expect("a request");
    let kept = store.clone();
    let writer = move |_: &ChatRequest, model: &str| ResponsesWriter::new(first.clone(), model, &kept);
    let chat = ResponsesRequest::from_json_within(json!({"input": "Where?"}), &store, &Limits::default());
    let running = ChatEngine::new(engine, config).start(chat.expect("a request").chat, writer);
    let response = running.expect("it starts").wait().expect("a response");
    let id = &response["output"][0]["id"];
    let read = |id: &Value| {
        let input = json!([{"type": "item_reference", "id": id}, {"role": "user", "content": "And then?"}]);
        ResponsesRequest::from_json_within(json!({"input": input}), &store, &Limits::default())
    };
    assert_eq!(read(id).expect("it is stored").chat.preface.messages[0].content.text(), "Paris.");
    let error = read(&"msg_0".into()).expect_err("it is unknown");
    assert_eq!((error.status, error.param.as_deref()), (404, Some("input[0].id")));
}

#[test]
fn no_text_of_a_turn_is_lost() {
    let refused = json!({"role": "assistant", "content": null, "refusal": "I cannot."});
    let body = json!({"messages": [{"role": "user", "content": "Hi"}, refused, {"role": "user", "content": "Why?"}]});
    let request = ChatRequest::from_json(body).expect("a request");
    assert_eq!(request.preface.messages[1].content.text(), "I cannot.");
    let empty = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": []}]);
    let body = json!({"messages": empty, "max_tokens": 5});
    let request = AnthropicRequest::message(body, &Limits::default()).expect("a request");
    assert!(!request.continues && request.last.role == lm_api::Message::user("").role);
    assert_eq!(request.preface.messages.len(), 2);
}
