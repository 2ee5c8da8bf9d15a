//! The Responses API: calls, reasoning, and items of the input as messages.

use lm_api::{ChatEngine, Frame, Limits, ResponseStore, ResponsesRequest, ResponsesWriter, Value};
use serde_json::json;

use crate::support::{CALLS, scripted, with_counted_ids};

fn engine(reply: &'static str) -> ChatEngine {
    let (engine, config) = scripted(&[reply, reply], "hermes");
    ChatEngine::new(engine, config)
}

fn request(input: Value, store: &ResponseStore) -> ResponsesRequest {
    let location = json!({"type": "object", "properties": {"location": {"type": "string"}}});
    let tools = json!([
        {"type": "function", "name": "get_weather", "parameters": location, "strict": true},
        {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}},
    ]);
    let body = json!({"input": input, "tools": tools, "reasoning": {"effort": "low"}});
    ResponsesRequest::from_json_within(body, store, &Limits::default()).expect("a request")
}

fn object(reply: &'static str) -> Value {
    let store = ResponseStore::default();
    let request = request(json!("Hi"), &store);
    let running =
        engine(reply).start(request.chat.clone(), |_, model| ResponsesWriter::new(request, model, &store));
    running.expect("it starts").wait().expect("a response")
}

fn frames(reply: &'static str) -> Vec<Frame> {
    let store = ResponseStore::default();
    let request = request(json!("Hi"), &store);
    let running =
        engine(reply).start(request.chat.clone(), |_, model| ResponsesWriter::new(request, model, &store));
    running.expect("it starts").frames().map(|frame| frame.expect("a frame")).collect()
}

/// Items without their ids, which differ in each run.
fn without_ids(items: &Value) -> Vec<Value> {
    let mut items = items.as_array().expect("items").clone();
    for item in &mut items {
        assert!(item["id"].as_str().is_some_and(|id| id.contains('_')), "{item}");
        item["id"] = Value::Null;
    }
    items
}

#[test]
fn calls_are_items_with_text_arguments() {
    let response = object(CALLS);
    let items = without_ids(&response["output"]);
    let call = |call_id: &str, name: &str, arguments: &str| json!({"id": null, "type": "function_call", "status": "completed", "call_id": call_id, "name": name, "arguments": arguments});
    let [first, second] = &items[..] else { panic!("{items:?}") };
    let id = |item: &Value| item["call_id"].as_str().expect("an id").to_owned();
    assert_eq!(first, &call(&id(first), "get_weather", r#"{"location":"Zürich"}"#));
    assert_eq!(second, &call(&id(second), "now", "{}"));
    assert_ne!(id(first), id(second));
    assert_eq!((&response["status"], &response["reasoning"]["effort"]), (&json!("completed"), &json!("low")));
}

#[test]
fn streamed_calls_build_the_same_items() {
    let frames = frames(CALLS);
    let of = |name: &str| {
        frames
            .iter()
            .filter(|frame| frame.event == Some(name))
            .map(|frame| frame.data.clone())
            .collect::<Vec<_>>()
    };
    for (index, arguments) in [r#"{"location": "Zürich"}"#, "{}"].into_iter().enumerate() {
        let is_of = |data: &&Value| data["output_index"] == index;
        let deltas = of("response.function_call_arguments.delta");
        let text: String =
            deltas.iter().filter(is_of).map(|data| data["delta"].as_str().expect("text")).collect();
        let done = of("response.function_call_arguments.done");
        assert_eq!((text.as_str(), &done[index]["arguments"]), (arguments, &json!(arguments)));
        let added = &of("response.output_item.added")[index]["item"];
        let finished = &of("response.output_item.done")[index]["item"];
        assert_eq!((&added["status"], &added["arguments"]), (&json!("in_progress"), &json!("")));
        for key in ["id", "call_id", "name"] {
            assert_eq!(added[key], finished[key]);
        }
        assert!(deltas.iter().filter(is_of).all(|data| data["item_id"] == added["id"]));
    }
    let last = frames.last().expect("frames");
    let calls = |items: &Value| {
        let items = items.as_array().expect("items").iter();
        with_counted_ids(&items.map(|item| json!([item["call_id"], item["name"]])).collect())
    };
    assert_eq!(last.event, Some("response.completed"));
    assert_eq!(calls(&last.data["response"]["output"]), calls(&object(CALLS)["output"]));
}

#[test]
fn reasoning_is_a_separate_item() {
    let reply = "<think>\nLet me see.\n</think>\n\nYes.";
    let text = |kind: &str, text: &str| match kind {
        "reasoning" => {
            json!({"id": null, "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]})
        }
        _ => json!({
            "id": null, "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
        }),
    };
    let expected = [text("reasoning", "Let me see."), text("message", "Yes.")];
    let response = object(reply);
    assert_eq!(without_ids(&response["output"]), expected);
    assert!(
        response["usage"]["output_tokens_details"]["reasoning_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 5)
    );
    let frames = frames(reply);
    let last = frames.last().expect("frames");
    assert_eq!(without_ids(&last.data["response"]["output"]), expected);
    let deltas = frames.iter().filter(|frame| frame.event == Some("response.reasoning_text.delta"));
    let streamed: String =
        deltas.map(|frame| frame.data["delta"].as_str().expect("text").to_owned()).collect();
    assert_eq!(streamed, "Let me see.");
}

#[test]
fn items_of_a_turn_form_one_message() {
    let input = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
        {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": "{\"location\": \"Paris\"}"},
        {"type": "function_call", "call_id": "b", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "Sunny"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "Noon"}]},
    ]);
    let ResponsesRequest { chat, .. } = request(input, &ResponseStore::default());
    let [user, assistant, result] = &chat.preface.messages[..] else { panic!("{:?}", chat.preface.messages) };
    assert_eq!(
        (user.content.text().as_str(), assistant.content.text().as_str()),
        ("Weather?", "One moment.")
    );
    assert_eq!(assistant.reasoning_content.as_deref(), Some("Hm."));
    let calls: Vec<_> =
        assistant.tool_calls.iter().map(|call| (call.id.as_deref(), call.name.as_str())).collect();
    assert_eq!(calls, [(Some("a"), "get_weather"), (Some("b"), "now")]);
    assert_eq!((result.content.text().as_str(), chat.last.content.text().as_str()), ("Sunny", "Noon"));
}

#[test]
fn log_probabilities_of_thoughts_are_left_out() {
    const THOUGHT: &str = "<think>\nA greeting.\n</think>\nHello, Ann!";
    let tokens = |list: &Value| -> String {
        let tokens = list.as_array().expect("a list").iter();
        tokens.map(|token| token["token"].as_str().expect("a text")).collect()
    };
    let start = |stream: bool| {
        let store = ResponseStore::default();
        let body =
            json!({"input": "Hi", "top_logprobs": 1, "reasoning": {"effort": "low"}, "stream": stream});
        let request =
            ResponsesRequest::from_json_within(body, &store, &Limits::default()).expect("a request");
        let chat = request.chat.clone();
        let writer = |_: &_, model: &str| ResponsesWriter::new(request, model, &store);
        engine(THOUGHT).start(chat, writer).expect("it starts")
    };
    let object = start(false).wait().expect("a response");
    let whole = tokens(&object["output"][1]["content"][0]["logprobs"]);
    let frames: Vec<Frame> = start(true).frames().map(|frame| frame.expect("a frame")).collect();
    let deltas = frames.iter().filter(|frame| frame.event == Some("response.output_text.delta"));
    let streamed: String = deltas.map(|frame| tokens(&frame.data["logprobs"])).collect();
    for scored in [whole, streamed] {
        assert!(scored.ends_with("Hello, Ann!") && !scored.contains("greeting"), "{scored:?}");
    }
}
