//! Conversations in the forms of other programs, on each API: cut calls, reasoning in parts, results of any
//! form.

use lm_api::{
    AnthropicRequest, BatchReader, BatchRequest, ChatEngine, ChatRequest, Limits, OllamaRequest,
    ResponseStore, ResponsesRequest, Value, json_from_slice,
};
use serde_json::json;

use crate::support::scripted;

fn chat(messages: Value) -> ChatRequest {
    ChatRequest::from_json(json!({"messages": messages})).expect("a request")
}

fn ollama(messages: Value) -> ChatRequest {
    OllamaRequest::chat(json!({"messages": messages}), &Limits::default()).expect("a request")
}

fn anthropic(fields: Value) -> ChatRequest {
    let mut body = json!({"max_tokens": 9});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
    AnthropicRequest::message(body, &Limits::default()).expect("a request")
}

fn responses(input: Value) -> ChatRequest {
    let store = ResponseStore::default();
    let body = json!({"input": input});
    ResponsesRequest::from_json_within(body, &store, &Limits::default()).expect("a request").chat
}

/// The prompt of a request.
fn prompt(request: &ChatRequest) -> String {
    let (engine, config) = scripted(&["Hi."], "hermes");
    ChatEngine::new(engine, config).render(request).expect("it renders").text
}

/// The texts of arguments that no JSON parser takes, or that are no object.
const CUT: [&str; 5] = [r#"{"path": "src/half"#, "half: yes", r#"["half"]"#, r#""half""#, r#"{"half": tru"#];

#[test]
fn cut_arguments_stay_in_the_history() {
    for cut in CUT {
        let call = json!({"id": "c7", "type": "function", "function": {"name": "write", "arguments": cut}});
        let bare = json!({"function": {"name": "write", "arguments": cut}});
        let turns = |call: Value| {
            json!([
                {"role": "user", "content": "Write it."}, {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c7", "content": "It was cut off."}, {"role": "user", "content": "Again."},
            ])
        };
        let block = json!({"type": "tool_use", "id": "c7", "name": "write", "input": cut});
        let result = json!({"type": "tool_result", "tool_use_id": "c7", "content": "It was cut off."});
        let items = json!([
            {"role": "user", "content": "Write it."},
            {"type": "function_call", "call_id": "c7", "name": "write", "arguments": cut},
            {"type": "function_call_output", "call_id": "c7", "output": "It was cut off."},
            {"role": "user", "content": "Again."},
        ]);
        let blocks = json!([
            {"role": "user", "content": "Write it."}, {"role": "assistant", "content": [block]},
            {"role": "user", "content": [result, {"type": "text", "text": "Again."}]},
        ]);
        let line = BatchReader::default().read(Ok(json!({"messages": turns(call.clone())})));
        let Ok(BatchRequest::Chat(line)) = line.request else { panic!("{cut}") };
        for request in [
            chat(turns(call)),
            ollama(turns(bare)),
            responses(items),
            anthropic(json!({"messages": blocks})),
            *line,
        ] {
            let called = request.preface.messages.iter().find_map(|message| message.tool_calls.first());
            assert_eq!(called.and_then(|call| call.arguments_text()), Some(cut));
            let text = prompt(&request);
            assert!(text.contains("half") && text.contains("It was cut off."), "{text}");
        }
    }
}

#[test]
fn lone_surrogates_are_read() {
    let body = br#"{"messages": [{"role": "user", "content": "Half a face: \ud83d"}]}"#;
    let request = ChatRequest::from_json(json_from_slice(body).expect("JSON")).expect("a request");
    assert_eq!(request.last.content.text(), "Half a face: \u{FFFD}");
    let call = json!({"function": {"name": "f", "arguments": r#"{"face": "\ud83d"}"#}});
    let request =
        chat(json!([{"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "Hi"}]));
    assert_eq!(request.preface.messages[0].tool_calls[0].arguments["face"], "\u{FFFD}");
}

#[test]
fn reasoning_parts_are_the_reasoning() {
    let text = json!({"type": "text", "text": "Seven."});
    for part in [
        json!({"type": "thinking", "thinking": "Three and four."}),
        json!({"type": "reasoning", "text": "Three and four."}),
        json!({"type": "reasoning", "reasoning": "Three and four."}),
        json!({"type": "thinking", "thinking": [{"type": "text", "text": "Three and four."}]}),
        json!({"type": "reasoning_text", "text": "Three and four."}),
    ] {
        let turns = |parts: Value| json!([{"role": "user", "content": "3+4?"}, {"role": "assistant", "content": parts}, {"role": "user", "content": "Sure?"}]);
        let both = json!([part, text]);
        for request in [chat(turns(both.clone())), ollama(turns(both.clone())), responses(turns(both))] {
            let message = &request.preface.messages[1];
            assert_eq!(message.reasoning_content.as_deref(), Some("Three and four."), "{part}");
            assert_eq!(message.content.text(), "Seven.");
            assert!(prompt(&request).contains("Seven."));
        }
        let alone = chat(turns(json!([part])));
        assert!(alone.preface.messages[1].content.is_empty() && prompt(&alone).contains("Sure?"), "{part}");
    }
    let encrypted = json!([{"type": "redacted_thinking", "data": "x"}, text]);
    let request =
        chat(json!([{"role": "assistant", "content": encrypted}, {"role": "user", "content": "Sure?"}]));
    assert_eq!(request.preface.messages[0].reasoning_content, None);
}

#[test]
fn empty_turns_of_the_assistant_are_accepted() {
    let user = |text: &str| json!({"role": "user", "content": text});
    for content in [json!(null), json!(""), json!([])] {
        let silent = json!({"role": "assistant", "content": content});
        let turns = json!([user("Are you there?"), silent, user("Hello?")]);
        let requests = [
            chat(turns.clone()),
            ollama(turns.clone()),
            responses(turns.clone()),
            anthropic(json!({"messages": turns})),
        ];
        for request in requests {
            let text = prompt(&request);
            assert!(text.contains("Are you there?") && text.contains("Hello?"), "{content}: {text}");
        }
    }
}

#[test]
fn results_have_the_form_that_they_came_in() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "sky", "arguments": {}}});
    for (result, shown) in [
        (json!({"clouds": "grey-ish"}), r#"{"clouds": "grey-ish"}"#),
        (json!([{"type": "cloud", "colour": "grey-ish"}]), "grey-ish"),
        (json!([1, "grey-ish"]), "grey-ish"),
        (json!([{"type": "text", "text": "grey-ish", "annotations": null}]), "grey-ish"),
        (
            json!({"type": "tool_response", "name": "sky", "response": {"colour": "grey-ish"}}),
            r#"{"colour": "grey-ish"}"#,
        ),
        (json!([{"type": "tool_response", "name": "sky", "response": "grey-ish"}]), "grey-ish"),
        (json!({"name": "sky", "response": {"colour": "grey-ish"}}), r#"{"colour": "grey-ish"}"#),
    ] {
        let turns = json!([
            {"role": "user", "content": "How is it?"}, {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": result},
        ]);
        let items = json!([
            {"role": "user", "content": "How is it?"},
            {"type": "function_call", "call_id": "c1", "name": "sky", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": result},
        ]);
        for request in [chat(turns.clone()), ollama(turns), responses(items)] {
            let text = prompt(&request);
            assert!(text.contains(shown), "{result}: {text}");
        }
    }
}

#[test]
fn limits_of_minus_one_are_off() {
    let turns = json!([{"role": "user", "content": "Hi"}]);
    for field in ["max_tokens", "max_completion_tokens", "n_predict"] {
        let request =
            ChatRequest::from_json(json!({"messages": turns, field: -1, "top_k": -1})).expect(field);
        assert_eq!((request.max_output_tokens, request.sampling.top_k), (None, Some(0)), "{field}");
    }
    let request = ChatRequest::from_json(json!({"messages": turns, "n_predict": 7})).expect("a request");
    assert_eq!(request.max_output_tokens, Some(("n_predict", 7)));
    assert_eq!(anthropic(json!({"messages": turns, "max_tokens": -1})).max_output_tokens, None);
    let (store, limits) = (ResponseStore::default(), Limits::default());
    let body = |limit: i64| json!({"input": "Hi", "max_output_tokens": limit});
    let request = ResponsesRequest::from_json_within(body(-1), &store, &limits).expect("a request");
    assert_eq!(request.chat.max_output_tokens, None);
    let error = ResponsesRequest::from_json_within(body(-2), &store, &limits).expect_err("is invalid");
    assert_eq!(error.param.as_deref(), Some("max_output_tokens"));
}

#[test]
fn billing_header_is_no_instruction() {
    let header = |turn: u32| format!("x-anthropic-billing-header: cc_version=2.1; cch={turn:05x};");
    let block = |text: String| json!({"type": "text", "text": text});
    let turn =
        |system: Value| anthropic(json!({"system": system, "messages": [{"role": "user", "content": "Hi"}]}));
    let of = |turn_number| prompt(&turn(json!([block(header(turn_number)), block("Be exact.".to_owned())])));
    assert_eq!(of(1), of(2));
    assert!(of(1).contains("Be exact.") && !of(1).contains("billing"));
    assert!(turn(json!([block(header(3))])).preface.messages.is_empty());
    let text = prompt(&turn(json!(format!("{}\nBe exact.", header(4)))));
    assert!(text.contains("Be exact.") && !text.contains("billing"), "{text}");
    let quoted = prompt(&turn(json!("Never print x-anthropic-billing-header: lines.")));
    assert!(quoted.contains("Never print x-anthropic-billing-header: lines."));
}
