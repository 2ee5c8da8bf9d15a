//! Ollama's chat and generation: requests, and responses of scripted replies, compared with the committed
//! vectors.
//!
//! `validate.py` parses the vectors with the types of Ollama's Python client.

use std::time::{Duration, Instant};

use crate::support::{CALLS, check, scripted};
use lm_api::{
    ApiError, ChatEngine, ChatRequest, ConversationEvent, Limits, OllamaRequest, OllamaWriter,
    ResponseFormat, ResponseWriter, Value,
};
use lm_conversation::{FinishReason, Finished, Message, Reply, Role, ThinkingMode, Timing, Usage};
use lm_template::{Media, Part};
use serde_json::json;

const THOUGHT: &str = "<think>\nA greeting.\n</think>\nHello, Zürich!";

fn with(mut body: Value, fields: Value) -> Value {
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    body
}

fn read(fields: Value) -> Result<ChatRequest, ApiError> {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    let body = json!({
        "model": "scripted",
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [tool("get_weather"), tool("now")],
    });
    OllamaRequest::chat(with(body, fields), &Limits::default())
}

fn read_prompt(fields: Value) -> Result<ChatRequest, ApiError> {
    OllamaRequest::generate(with(json!({"model": "scripted", "prompt": "Hello"}), fields), &Limits::default())
}

fn start(
    reply: &'static str,
    request: ChatRequest,
    writer: fn(&ChatRequest, &str) -> OllamaWriter,
) -> lm_api::Running<OllamaWriter> {
    let (engine, config) = scripted(&[reply], "hermes");
    ChatEngine::new(engine, config).start(request, writer).expect("it starts")
}

/// Replaces what differs in each run.
fn fixed(mut object: Value) -> Value {
    object["created_at"] = "2026-01-01T00:00:00Z".into();
    for field in ["total_duration", "prompt_eval_duration", "eval_duration"] {
        if let Some(duration) = object.get_mut(field) {
            assert!(duration.is_u64(), "{field}: {duration}");
            *duration = 1.into();
        }
    }
    object
}

fn whole(reply: &'static str, fields: Value) -> Value {
    let request = read(fields).expect("a request");
    fixed(start(reply, request, OllamaWriter::chat).wait().expect("an object"))
}

fn lines(reply: &'static str, fields: Value) -> Vec<Value> {
    let request = read(fields).expect("a request");
    start(reply, request, OllamaWriter::chat)
        .frames()
        .map(|frame| fixed(frame.expect("a line").data))
        .collect()
}

#[test]
fn objects_equal_the_vectors() {
    check("ollama_chat_thinking.json", &whole(THOUGHT, json!({})));
    check("ollama_chat_calls.json", &whole(CALLS, json!({})));
    check("ollama_chat_length.json", &whole("Hello, Zürich!", json!({"options": {"num_predict": 5}})));
    check("ollama_lines_thinking.json", &lines(THOUGHT, json!({})).into());
    check("ollama_lines_calls.json", &lines(CALLS, json!({})).into());
    let request = read_prompt(json!({"system": "Be brief."})).expect("a request");
    let object = start(THOUGHT, request, OllamaWriter::generate).wait().expect("an object");
    check("ollama_generate.json", &fixed(object));
}

#[test]
fn streamed_lines_add_up_to_the_object() {
    for reply in ["Hello, Zürich!", THOUGHT, CALLS] {
        let (lines, whole) = (lines(reply, json!({})), whole(reply, json!({})));
        let (last, others) = lines.split_last().expect("a last line");
        assert!(others.iter().all(|line| line["done"] == false) && last["done"] == true);
        for field in ["content", "thinking"] {
            let text: String = lines.iter().filter_map(|line| line["message"][field].as_str()).collect();
            assert_eq!(text, whole["message"][field].as_str().unwrap_or_default(), "{field}");
        }
        let calls = lines.iter().filter_map(|line| line["message"]["tool_calls"].as_array()).flatten();
        let calls: Vec<_> = calls.map(|call| call["function"].clone()).collect();
        let expected = whole["message"]["tool_calls"].as_array().into_iter().flatten();
        assert_eq!(calls, expected.map(|call| call["function"].clone()).collect::<Vec<_>>());
        for field in ["done_reason", "eval_count", "prompt_eval_count"] {
            assert_eq!(last[field], whole[field], "{field}");
        }
    }
}

#[test]
fn durations_are_nanoseconds() {
    let timing =
        Timing { prefill: Duration::from_millis(2), decode: Duration::from_secs(3), ..Timing::default() };
    let finish = Finished {
        reason: FinishReason::EndToken,
        usage: Usage::default(),
        timing,
        seed: None,
        steered: None,
        masked: None,
    };
    let reply = Reply::new(Message::assistant("Hello!"), finish);
    let began = Instant::now();
    let mut writer = OllamaWriter::chat(&read(json!({})).expect("a request"), "scripted");
    std::thread::sleep(Duration::from_millis(5));
    let last = writer.frames(0, &ConversationEvent::Finished(reply)).remove(0).data;
    assert_eq!(
        (&last["prompt_eval_duration"], &last["eval_duration"]),
        (&json!(2_000_000), &json!(3_000_000_000_u64))
    );
    let total = Duration::from_nanos(last["total_duration"].as_u64().expect("a duration"));
    assert!(total >= Duration::from_millis(5) && total <= began.elapsed(), "{total:?}");
}

#[test]
fn fields_reach_the_turn() {
    let request = read(json!({
        "options": {
            "num_predict": 7, "temperature": 0.5, "top_k": 4, "top_p": 0.9, "min_p": 0.1, "seed": 3,
            "stop": ["a"], "repeat_penalty": 1.5, "num_ctx": 2048, "num_gpu": 1,
        },
        "format": "json", "think": "low", "keep_alive": "5m", "stream": false,
    }));
    let request = request.expect("a request");
    let sampling = &request.sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.min_p), (Some(0.5), Some(0.9), Some(0.1)));
    assert_eq!((sampling.top_k, sampling.seed, sampling.repetition_penalty), (Some(4), Some(3), Some(1.5)));
    assert_eq!((request.max_output_tokens, request.stop.len()), (Some(("options.num_predict", 7)), 1));
    assert_eq!((request.turn.thinking.mode, request.stream), (ThinkingMode::On, None));
    assert_eq!(request.preface.extra_context["reasoning_effort"], "low");
    assert_eq!(request.turn.response_format, Some(ResponseFormat::JsonObject));
    let schema = json!({"type": "object"});
    let request = read(json!({"format": schema, "think": false, "options": {"num_predict": -1}}));
    let request = request.expect("a request");
    assert_eq!(request.turn.response_format, Some(ResponseFormat::JsonSchema(schema)));
    assert_eq!((request.turn.thinking.mode, request.max_output_tokens), (ThinkingMode::Off, None));
    assert!(request.stream.is_some(), "streamed unless the request says otherwise");
}

#[test]
fn system_text_precedes_the_prompt() {
    let request = read_prompt(json!({"system": "Be brief."})).expect("a request");
    let messages = request.preface.messages.iter().chain([&request.last]);
    let read: Vec<_> = messages.map(|message| (message.role.clone(), message.content.text())).collect();
    assert_eq!(read, [(Role::System, "Be brief.".to_owned()), (Role::User, "Hello".to_owned())]);
}

#[test]
fn history_uses_ollama_field_names() {
    let call = json!({"function": {"name": "now", "arguments": {"zone": "UTC"}}});
    let request = read(json!({"messages": [
        {"role": "user", "content": "Hello", "images": []},
        {"role": "assistant", "content": "", "thinking": "A clock.", "tool_calls": [call]},
        {"role": "tool", "content": "Noon.", "tool_name": "now"},
    ]}));
    let request = request.expect("a request");
    let assistant = &request.preface.messages[1];
    assert_eq!(assistant.reasoning_content.as_deref(), Some("A clock."));
    assert_eq!(assistant.tool_calls[0].arguments["zone"], "UTC");
    assert_eq!(request.last.name.as_deref(), Some("now"));
}

#[test]
fn invalid_field_is_named() {
    for (request, param) in [
        (read(json!({"messages": null})), "messages"),
        (read(json!({"messages": []})), "messages"),
        (
            read(json!({"messages": [{"role": "user", "content": "a", "images": ["iVBO", "%"]}]})),
            "messages[0].images[1]",
        ),
        (
            read(
                json!({"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]}),
            ),
            "messages[0].content[0].type",
        ),
        (read(json!({"options": 1})), "options"),
        (read(json!({"options": {"temperature": "hot"}})), "options.temperature"),
        (read(json!({"options": {"temperature": -1}})), "options.temperature"),
        (read(json!({"options": {"repeat_penalty": -1}})), "options.repeat_penalty"),
        (read(json!({"options": {"num_predict": 0}})), "options.num_predict"),
        (read(json!({"options": {"stop": [""]}})), "options.stop"),
        (read(json!({"think": "max"})), "think"),
        (read(json!({"format": "xml"})), "format"),
        (read(json!({"stream": "yes"})), "stream"),
        (read(json!({"top_logprobs": 2})), "top_logprobs"),
        (read_prompt(json!({"prompt": null})), "prompt"),
        (read_prompt(json!({"raw": true})), "raw"),
        (read_prompt(json!({"suffix": "a"})), "suffix"),
        (read_prompt(json!({"images": ["%"]})), "images[0]"),
        (read_prompt(json!({"images": "iVBO"})), "images"),
    ] {
        let error = request.expect_err("is invalid");
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{error}");
    }
    let absent = json!({"raw": false, "suffix": "", "context": null, "images": null, "template": ""});
    assert!(read_prompt(absent).is_ok());
}

#[test]
fn images_are_before_the_text() {
    let expected = [Part::Image(Media::from_bytes(*b"\x89PN")), Part::Text("a".to_owned())];
    // Some clients send data URLs.
    for image in ["iVBO", "data:image/png;base64,iVBO", "DATA:;BASE64,iVBO"] {
        let chat = read(json!({"messages": [{"role": "user", "content": "a", "images": [image]}]}));
        let generate = read_prompt(json!({"prompt": "a", "images": [image]}));
        for request in [chat, generate] {
            assert_eq!(request.expect("a request").last.content.parts(), expected, "{image}");
        }
    }
}

#[test]
fn images_need_no_text() {
    let image = Part::Image(Media::from_bytes(*b"\x89PN"));
    let text = |text: &str| Part::Text(text.to_owned());
    for (content, expected) in [
        (json!({}), text("")),
        (json!({"content": null}), text("")),
        (json!({"content": [{"type": "text", "text": "a"}]}), text("a")),
    ] {
        let mut message = json!({"role": "user", "images": ["iVBO"]});
        message.as_object_mut().expect("an object").extend(content.as_object().expect("an object").clone());
        let request = read(json!({"messages": [message]})).expect("a request");
        assert_eq!(request.last.content.parts(), [image.clone(), expected], "{content}");
    }
}

#[test]
fn empty_system_text_is_no_message() {
    let request = read_prompt(json!({"system": ""})).expect("a request");
    assert!(request.preface.messages.is_empty());
}

#[test]
fn texts_without_the_template_are_continued() {
    let (engine, config) = scripted(&[" sum"], "hermes");
    let chat = ChatEngine::new(engine, config);
    let read = |body: Value| OllamaRequest::text(body, &Limits::default());
    let request = read(json!({"prompt": "The", "raw": true, "stream": false, "logprobs": true}));
    let running = chat.continue_text(request.expect("a request"), OllamaWriter::generate);
    let object = running.expect("it starts").wait().expect("a response");
    assert_eq!((&object["response"], &object["done"]), (&json!(" sum"), &json!(true)));
    let scored = object["logprobs"].as_array().expect("log probabilities");
    assert!(!scored.is_empty() && scored[0]["logprob"].is_number(), "{object}");

    let request = read(json!({"prompt": "The", "suffix": "end"})).expect("a request");
    let error = chat.continue_text(request, OllamaWriter::generate).expect_err("it has no such tokens");
    assert_eq!((error.param.as_deref(), error.code), (Some("suffix"), Some("unsupported_parameter")));
    for (fields, param) in [
        (json!({"raw": true, "system": "Be brief."}), "system"),
        (json!({"suffix": "end", "images": ["iVBO"]}), "images"),
        (json!({"raw": true, "think": true}), "think"),
    ] {
        let mut body = json!({"prompt": "The"});
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        assert_eq!(read(body).expect_err(param).param.as_deref(), Some(param));
    }
}

#[test]
fn streamed_pieces_have_their_log_probabilities() {
    let (engine, config) = scripted(&["One, two."], "hermes");
    let body =
        json!({"messages": [{"role": "user", "content": "Count."}], "logprobs": true, "top_logprobs": 2});
    let request = OllamaRequest::chat(body, &Limits::default()).expect("a request");
    let running = ChatEngine::new(engine, config).start(request, OllamaWriter::chat).expect("it starts");
    let lines: Vec<Value> = running.frames().map(|frame| frame.expect("a frame").data).collect();
    let scored: Vec<&Value> = lines.iter().filter_map(|line| line["logprobs"].as_array()).flatten().collect();
    let text: String = scored.iter().filter_map(|token| token["token"].as_str()).collect();
    assert_eq!(text, "One, two.");
    assert!(scored.iter().all(|token| token["top_logprobs"].as_array().is_some_and(|top| top.len() == 2)));
}

#[test]
fn fields_of_messages_that_ask_for_nothing_are_accepted_with_raw() {
    for fields in
        [json!({"think": false}), json!({"system": ""}), json!({"images": []}), json!({"tools": []})]
    {
        let body = with(json!({"prompt": "The", "raw": true}), fields.clone());
        assert!(OllamaRequest::text(body, &Limits::default()).is_ok(), "{fields}");
    }
}
