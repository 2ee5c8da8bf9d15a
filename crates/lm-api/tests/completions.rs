//! Completions of prompts without messages: fields, and responses against vectors.

use crate::support::check;
use lm_api::{ApiError, ChatEngine, CompletionRequest, ConversationConfig, Limits, Value};
use lm_session::testing::scripted_engine;
use serde_json::json;

/// A valid body with these fields added.
fn body(fields: Value) -> Value {
    let mut body = json!({"prompt": "Say hello:", "temperature": 0});
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    body
}

fn engine<const N: usize>(replies: [&'static str; N]) -> ChatEngine {
    let engine = scripted_engine(replies);
    let config = ConversationConfig::from_engine(&engine);
    ChatEngine::new(engine, config)
}

fn request(fields: Value) -> CompletionRequest {
    CompletionRequest::from_json(body(fields.clone())).unwrap_or_else(|error| panic!("{fields}: {error}"))
}

fn object(engine: &ChatEngine, fields: Value) -> Value {
    let running = engine.complete(request(fields.clone()));
    let object =
        running.and_then(|running| running.wait()).unwrap_or_else(|error| panic!("{fields}: {error}"));
    constant(object)
}

/// Replaces what differs from run to run.
fn constant(mut object: Value) -> Value {
    assert!(object["id"].as_str().is_some_and(|id| id.starts_with("cmpl-")), "{object}");
    assert!(object["created"].as_u64().is_some_and(|time| time > 1_700_000_000), "{object}");
    (object["id"], object["created"]) = (json!("cmpl-1"), json!(1));
    object
}

fn chunks(engine: &ChatEngine, fields: Value) -> Vec<Value> {
    let frames = engine.complete(request(fields)).expect("it starts").frames();
    frames.map(|frame| constant(frame.expect("a frame").data)).collect()
}

/// Texts of the choices of a stream.
fn texts(chunks: &[Value], choices: usize) -> Vec<String> {
    let mut texts = vec![String::new(); choices];
    for choice in chunks.iter().flat_map(|chunk| chunk["choices"].as_array().expect("choices")) {
        let index = choice["index"].as_u64().and_then(|index| usize::try_from(index).ok()).expect("an index");
        texts[index] += choice["text"].as_str().expect("text");
    }
    texts
}

#[test]
fn texts_equal_the_vectors() {
    check("text_completion.json", &object(&engine(["Hello, you!"]), json!({"max_tokens": 30})));
    let scored = json!({"logprobs": 2, "max_tokens": 4});
    check("text_completion_logprobs.json", &object(&engine(["Zürich"]), scored.clone()));
    let mut streamed = scored.clone();
    (streamed["stream"], streamed["stream_options"]) = (json!(true), json!({"include_usage": true}));
    let chunks = chunks(&engine(["Zürich"]), streamed);
    check("text_chunks_logprobs.json", &chunks.into());
    let mut echo = scored;
    echo["echo"] = json!(true);
    check("text_completion_echo.json", &object(&engine(["Zürich"]), echo));
}

#[test]
fn streamed_logprobs_equal_those_of_the_object() {
    let fields = json!({"echo": true, "logprobs": 2, "max_tokens": 4});
    let whole = object(&engine(["Zürich"]), fields.clone())["choices"][0]["logprobs"].clone();
    let mut streamed = fields;
    streamed["stream"] = true.into();
    let chunks = chunks(&engine(["Zürich"]), streamed);
    for name in ["tokens", "token_logprobs", "text_offset"] {
        let pieces = chunks.iter().flat_map(|chunk| chunk["choices"][0]["logprobs"][name].as_array());
        assert_eq!(pieces.flatten().cloned().collect::<Value>(), whole[name], "{name}");
    }
}

#[test]
fn choices_follow_the_order_of_prompts() {
    let engine = || engine(["One.", "One.", "One.", "One."]);
    let fields = json!({"prompt": ["First", "Second one"], "n": 2, "echo": true, "best_of": 2});
    let whole = object(&engine(), fields.clone());
    let choices = whole["choices"].as_array().expect("choices");
    let seen: Vec<_> = choices.iter().map(|choice| choice["text"].as_str().expect("text")).collect();
    assert_eq!(seen, ["FirstOne.", "FirstOne.", "Second oneOne.", "Second oneOne."]);
    assert_eq!(choices.iter().map(|choice| &choice["index"]).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let alone =
        |prompt: &str| object(&engine(), json!({"prompt": prompt}))["usage"]["prompt_tokens"].as_u64();
    let prompts = alone("First").zip(alone("Second one")).map(|(first, second)| first + second);
    assert_eq!(whole["usage"]["prompt_tokens"].as_u64(), prompts, "each prompt counts once");

    let mut fields = fields;
    (fields["stream"], fields["stream_options"]) = (json!(true), json!({"include_usage": true}));
    let chunks = chunks(&engine(), fields);
    assert_eq!(texts(&chunks, 4), seen);
    assert_eq!(
        chunks.last().map(|chunk| chunk["usage"]["total_tokens"].clone()),
        Some(whole["usage"]["total_tokens"].clone())
    );
}

#[test]
fn choices_of_a_prompt_have_distinct_seeds() {
    let texts = |fields: Value| {
        let mut body = json!({"temperature": 100, "max_tokens": 12});
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let choices = object(&engine(["Hello, you!"; 4]), body)["choices"].clone();
        let texts = choices.as_array().expect("choices").iter().map(|choice| choice["text"].clone());
        texts.collect::<Vec<_>>()
    };
    let several = texts(json!({"prompt": ["Say hello:", "Say hello:"], "n": 2, "seed": 5}));
    let (first, second) = (texts(json!({"seed": 5})).remove(0), texts(json!({"seed": 6})).remove(0));
    assert_ne!(first, second);
    assert_eq!(several, [first.clone(), second.clone(), first, second], "the seed counts up for each prompt");
}

#[test]
fn token_id_prompt_equals_text_prompt() {
    let engine = || engine(["Hello"]);
    let ids = scripted_engine([""]).tokenizer().encode("Say hello:").expect("it encodes");
    let text = object(&engine(), json!({"echo": true}));
    for prompt in [json!(ids), json!([ids])] {
        assert_eq!(object(&engine(), json!({"echo": true, "prompt": prompt})), text);
    }
}

#[test]
fn prompt_is_scored_without_output() {
    let whole = object(&engine(["Hello"]), json!({"echo": true, "max_tokens": 0, "logprobs": 0}));
    let choice = &whole["choices"][0];
    assert_eq!((&choice["text"], &choice["finish_reason"]), (&json!("Say hello:"), &json!("length")));
    assert_eq!(whole["usage"]["completion_tokens"], 0);
    let scores = choice["logprobs"]["token_logprobs"].as_array().expect("scores");
    assert_eq!(Some(scores.len() as u64), whole["usage"]["prompt_tokens"].as_u64());
    assert!(scores[0].is_null() && scores[1..].iter().all(|score| score.as_f64().is_some_and(|it| it < 0.0)));
}

#[test]
fn stop_sequences_formats_and_biases_apply() {
    let stopped = object(&engine(["Hello, you!"]), json!({"stop": [", "]}));
    assert_eq!(stopped["choices"][0]["text"], "Hello");
    assert_eq!(stopped["choices"][0]["finish_reason"], "stop");
    let longer = object(&engine(["Hi"]), json!({"min_tokens": 9}))["usage"]["completion_tokens"].as_u64();
    assert!(longer.is_some_and(|tokens| (9..=16).contains(&tokens)), "{longer:?}");
    let text = |fields: Value| object(&engine(["Hello"]), fields)["choices"][0]["text"].clone();
    let number = json!({"guided_regex": "[0-9]{3}"});
    assert!(text(number).as_str().is_some_and(|text| text.len() == 3 && text.parse::<u32>().is_ok()));
    let schema =
        json!({"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["red"]}}}});
    assert_eq!(text(schema), "\"red\"");
    assert_eq!(text(json!({"guided_choice": ["left"]})), "left");
    assert_eq!(text(json!({"guided_grammar": "start: \"a\" \"b\""})), "ab");
    assert_eq!(text(json!({"grammar": "root ::= \"a\" rest\nrest ::= \"c\""})), "ac");
    assert_eq!(text(json!({"structured_outputs": {"grammar": "root ::= \"ad\""}})), "ad");
    let ids = scripted_engine([""]).tokenizer().encode("H").expect("it encodes");
    assert_ne!(text(json!({"logit_bias": {ids[0].to_string(): -100}, "max_tokens": 1})), "H");
}

fn error(fields: Value) -> ApiError {
    let read = CompletionRequest::from_json(body(fields.clone()));
    read.and_then(|request| engine(["Hello"]).complete(request)).map(drop).expect_err(&fields.to_string())
}

#[test]
fn invalid_field_is_named() {
    for (fields, param) in [
        (json!({"prompt": null}), "prompt"),
        (json!({"prompt": ""}), "prompt"),
        (json!({"prompt": []}), "prompt"),
        (json!({"prompt": {}}), "prompt"),
        (json!({"prompt": ["a", ""]}), "prompt[1]"),
        (json!({"prompt": [1, "a"]}), "prompt[1]"),
        (json!({"prompt": [[1], [-1]]}), "prompt[1][0]"),
        (json!({"prompt": [4_000_000_000_u32]}), "prompt"),
        (json!({"prompt": "long ".repeat(100_000)}), "prompt"),
        (json!({"prompt": vec!["a"; 65], "n": 2}), "prompt"),
        (json!({"suffix": "end"}), "suffix"),
        (json!({"best_of": 3, "n": 2}), "best_of"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"logprobs": 21}), "logprobs"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"min_tokens": 17}), "min_tokens"),
        (json!({"echo": "yes"}), "echo"),
        (json!({"stream_options": {}}), "stream_options"),
        (json!({"guided_regex": "("}), "guided_regex"),
        (json!({"guided_json": {"not": {"const": 1}}}), "guided_json"),
        (json!({"temperature": -1}), "temperature"),
    ] {
        let error = error(fields.clone());
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{fields}: {error}");
    }
    for fields in
        [json!({"suffix": null}), json!({"suffix": ""}), json!({"best_of": 1}), json!({"n": 2, "best_of": 2})]
    {
        request(fields);
    }
    let limits = Limits { choices: 1, ..Limits::default() };
    let many = CompletionRequest::from_json_within(body(json!({"prompt": ["a", "b"]})), &limits);
    assert_eq!(many.map(drop).expect_err("a limit").param.as_deref(), Some("prompt"));
}
