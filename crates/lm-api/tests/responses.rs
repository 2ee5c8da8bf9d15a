//! Completions and chunks of scripted replies, compared with the committed vectors.
//!
//! `validate.py` parses the vectors with the types of OpenAI's Python client.

use crate::support::{CALLS, check, scripted, with_counted_ids};
use lm_api::{
    ChatCompletions, ChatRequest, ChunkWriter, CompletionHead, ConversationConfig, EmbeddingRequest,
    Embeddings, Value,
};
use lm_conversation::{ConversationEvent, PromptTemplate};
use lm_session::testing::{FakeLm, loaded, scripted_engine, tokenizer};
use lm_session::{Engine, EngineSettings};
use serde_json::{Map, json};

fn completions(replies: &[&'static str]) -> ChatCompletions {
    let (engine, config) = scripted(replies, "hermes");
    ChatCompletions::new(engine, config)
}

fn request(fields: Value) -> ChatRequest {
    let tool =
        |name, parameters| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let location = json!({"type": "object", "properties": {"location": {"type": "string"}}});
    let mut body = json!({
        "model": "scripted",
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [tool("get_weather", location), tool("now", json!({"type": "object"}))],
    });
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    ChatRequest::from_json(body).expect("a request")
}

/// Replaces what differs in each run.
fn fixed(mut object: Value) -> Value {
    object["id"] = "chatcmpl-1".into();
    object["created"] = 1_700_000_000.into();
    object["system_fingerprint"] = "lm".into();
    object
}

fn complete(replies: &[&'static str], fields: Value) -> Value {
    fixed(completions(replies).complete(request(fields)).expect("a completion"))
}

fn stream(replies: &[&'static str], fields: Value) -> Vec<Value> {
    let chunks = completions(replies).stream(request(fields)).expect("a stream");
    chunks.map(|frame| fixed(frame.expect("a chunk").data)).collect()
}

#[test]
fn completions_equal_the_vectors() {
    check("completion_text.json", &complete(&["Hello, Zürich!"], json!({})));
    check("completion_calls.json", &complete(&[CALLS], json!({})));
    check("completion_length.json", &complete(&["Hello, Zürich!"], json!({"max_tokens": 5})));
    let choices =
        complete(&["One.", "Two."], json!({"n": 2, "logprobs": true, "top_logprobs": 2, "max_tokens": 2}));
    check("completion_choices.json", &choices);
}

#[test]
fn embeddings_equal_the_vectors() {
    let embeddings = |format: &str| {
        let body = json!({"model": "random", "input": ["hello", " the"], "encoding_format": format, "dimensions": 8});
        let request = EmbeddingRequest::from_json(body).expect("a request");
        // Texts of one token: the hidden states are the same bits on every processor.
        let model = FakeLm::random(1, tokenizer().logits_width());
        let engine = Engine::new(loaded(model), EngineSettings::default()).expect("an engine");
        Embeddings::new(engine, None).create(&request).expect("embeddings")
    };
    check("embedding_float.json", &embeddings("float"));
    check("embedding_base64.json", &embeddings("base64"));
}

#[test]
fn chunks_equal_the_vectors() {
    let streamed = json!({"stream": true, "stream_options": {"include_usage": true}});
    check("chunks_calls.json", &stream(&[CALLS], streamed).into());
    check("chunks_text.json", &stream(&["Hi €!"], json!({"stream": true})).into());
    let scored = json!({"stream": true, "logprobs": true, "top_logprobs": 1, "n": 2, "max_tokens": 2});
    let mut chunks = stream(&["One.", "Two."], scored);
    // The choices run at the same time: the order among them is open.
    chunks.sort_by_key(|chunk| chunk["choices"][0]["index"].as_u64());
    check("chunks_choices.json", &chunks.into());
}

#[test]
fn progress_of_the_prefill_is_reported_on_request() {
    let progress = |fields: Value| -> Vec<Value> {
        let reported = stream(&["Hi!"], fields).into_iter().filter_map(|mut chunk| {
            assert_eq!(chunk["choices"][0]["finish_reason"].is_null(), chunk.get("timings").is_none());
            chunk.as_object_mut()?.remove("prompt_progress")
        });
        reported.collect()
    };
    assert_eq!(progress(json!({"stream": true})), [] as [Value; 0]);
    let reported = progress(json!({"stream": true, "return_progress": true}));
    let last = reported.last().expect("a report");
    assert!(last["total"].as_u64() > Some(1) && last["total"] == last["processed"], "{last}");
    assert!(last["cache"] == 0 && last["time_ms"].is_u64(), "{last}");
    assert!(reported.is_sorted_by_key(|report| report["processed"].as_u64()), "{reported:?}");
}

#[test]
fn streamed_usage_of_choices_equals_the_completion() {
    let tokens = |object: &Value| {
        ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| object["usage"][name].as_u64())
    };
    let (replies, choices) = (["One.", "Two."], json!({"n": 2, "max_tokens": 2}));
    let mut streamed = choices.clone();
    (streamed["stream"], streamed["stream_options"]) = (json!(true), json!({"include_usage": true}));
    let chunks = stream(&replies, streamed);
    let last = chunks.last().expect("chunks");
    assert_eq!(tokens(last), tokens(&complete(&replies, choices)));
    assert_eq!(tokens(last)[1], Some(4), "of both choices: {last}");
}

#[test]
fn stream_adds_up_to_the_completion() {
    for (reply, fields) in
        [("Hello, Zürich!", json!({})), (CALLS, json!({})), (CALLS, json!({"tool_choice": "required"}))]
    {
        let whole = complete(&[reply], fields.clone());
        let mut streamed = fields;
        streamed["stream"] = true.into();
        let (mut content, mut calls, mut finish) = (String::new(), Vec::<Value>::new(), Vec::new());
        let chunks = stream(&[reply], streamed);
        for (index, chunk) in chunks.iter().enumerate() {
            assert_eq!(chunk["choices"][0]["delta"].get("role").is_some(), index == 0, "{chunk}");
            let delta = &chunk["choices"][0]["delta"];
            content += delta["content"].as_str().unwrap_or_default();
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                let index = call["index"].as_u64().expect("every delta has an index") as usize;
                if index == calls.len() {
                    calls.push(json!({"id": call["id"], "type": call["type"], "function": call["function"]}));
                } else {
                    assert!(
                        call.get("id").or(call.get("type")).or(call["function"].get("name")).is_none(),
                        "{call}"
                    );
                    let arguments = calls[index]["function"]["arguments"].as_str().expect("text").to_owned();
                    let more = call["function"]["arguments"].as_str().expect("text");
                    calls[index]["function"]["arguments"] = (arguments + more).into();
                }
            }
            finish.extend(chunk["choices"][0]["finish_reason"].as_str().map(str::to_owned));
        }
        let choice = &whole["choices"][0];
        assert_eq!(content, choice["message"]["content"].as_str().unwrap_or_default());
        assert_eq!(finish, [choice["finish_reason"].as_str().expect("a reason")]);
        let parsed = |mut calls: Vec<Value>| {
            for call in &mut calls {
                let arguments = call["function"]["arguments"].as_str().expect("arguments are text");
                call["function"]["arguments"] = serde_json::from_str(arguments).expect("they are JSON");
            }
            calls
        };
        let expected = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
        let [calls, expected] = [calls, expected].map(|calls| with_counted_ids(&parsed(calls).into()));
        assert_eq!(calls, expected);
    }
}

#[test]
fn logprob_bytes_spell_the_text() {
    let object = complete(&["Hello, Zürich €!"], json!({"logprobs": true, "top_logprobs": 3}));
    let tokens = object["choices"][0]["logprobs"]["content"].as_array().expect("tokens").clone();
    let bytes = tokens.iter().flat_map(|token| token["bytes"].as_array().expect("bytes").clone());
    let bytes: Vec<u8> = bytes.map(|byte| byte.as_u64().expect("a byte") as u8).collect();
    assert_eq!(String::from_utf8(bytes).expect("text"), "Hello, Zürich €!");
    for token in &tokens {
        let logprob = token["logprob"].as_f64().expect("a number");
        assert!(
            logprob <= 0.0 && token["top_logprobs"].as_array().is_some_and(|top| top.len() <= 3),
            "{token}"
        );
        assert_eq!(token["top_logprobs"][0]["bytes"], token["bytes"], "the reply is greedy");
    }
    let end = usize::from(object["usage"]["completion_tokens"] == tokens.len() + 1);
    assert_eq!(end, 1, "all but the end token: {}", object["usage"]);
}

#[test]
fn nameless_call_is_sent_whole_and_empty_one_as_object() {
    let request = request(json!({"stream": true}));
    let head = CompletionHead { id: "chatcmpl-1".to_owned(), created: 1, model: "m".to_owned() };
    let mut writer = ChunkWriter::new(head, &request);
    let started = |name: Option<&str>, id: Option<&str>| {
        let (name, id) = (name.map(str::to_owned), id.map(str::to_owned));
        ConversationEvent::ToolCallStarted { index: 0, name, id }
    };
    let fragment = |text: &str| ConversationEvent::ToolCallArguments { index: 0, fragment: text.to_owned() };
    let call = |id: &str| {
        ConversationEvent::ToolCall(lm_conversation::ToolCall::new("now", Default::default()).with_id(id))
    };
    let mut calls = Vec::new();
    for event in [
        started(None, None),
        fragment("{}"),
        call("own"),
        started(Some("now"), Some("functions.now:1")),
        call("x"),
    ] {
        for chunk in writer.chunks(0, &event) {
            calls.extend(chunk["choices"][0]["delta"]["tool_calls"].as_array().cloned().unwrap_or_default());
        }
    }
    let first = |index: u32, id: &str, arguments: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": "now", "arguments": arguments}});
    let rest = json!({"index": 1, "function": {"arguments": "{}"}});
    assert_eq!(calls, [first(0, "own", "{}"), first(1, "functions.now:1", ""), rest]);
}

#[test]
fn invalid_request_fails_before_its_stream() {
    let long = "a ".repeat(100_000);
    let request = request(json!({"messages": [{"role": "user", "content": long}], "stream": true, "n": 2}));
    let error = completions(&["x", "y"]).stream(request).expect_err("too long");
    assert_eq!((error.code, error.param.as_deref()), (Some("context_length_exceeded"), Some("messages")));
    for words in ["prompt is too long: ", "this model's maximum context length is "] {
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn unsupported_format_error_names_the_field() {
    let invalid = || json!({"type": "object", "minProperties": "two"});
    for (fields, param) in [
        (json!({"guided_regex": "a("}), "guided_regex"),
        (json!({"guided_grammar": "start: other"}), "guided_grammar"),
        (json!({"guided_json": invalid()}), "guided_json"),
        (json!({"guided_json": {"not": {}}}), "guided_json"),
        (json!({"structured_outputs": {"regex": "a("}}), "structured_outputs.regex"),
        (json!({"structured_outputs": {"json": invalid()}}), "structured_outputs.json"),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"schema": invalid()}}}),
            "response_format",
        ),
    ] {
        let error = completions(&["x"]).complete(request(fields.clone())).expect_err("no grammar");
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{fields}: {error}");
    }
}

#[test]
fn cancelled_stream_ends_with_an_error() {
    let long: &'static str = "and ".repeat(1_000).leak();
    let chunks = completions(&[long]).stream(request(json!({"stream": true}))).expect("a stream");
    chunks.canceller().cancel();
    let mut chunks: Vec<_> = chunks.collect();
    assert_eq!(chunks.pop().expect("an item").expect_err("cancelled").error.status, 499);
    assert!(chunks.iter().all(Result::is_ok), "the error is the last item");
}

#[test]
fn async_completion_equals_blocking() {
    use futures_util::StreamExt;
    let fields = || request(json!({"n": 2, "seed": 1}));
    let started = || completions(&["Hello", "Hello"]).start(fields()).expect("it starts");
    let blocking = fixed(started().wait().expect("a completion"));
    assert_eq!(futures_executor::block_on(started().object()).map(fixed), Ok(blocking));
    let text = |chunks: Vec<Value>, choice| -> String {
        let deltas = chunks.iter().flat_map(|chunk| chunk["choices"].as_array()).flatten();
        deltas
            .filter(|delta| delta["index"] == choice)
            .filter_map(|it| it["delta"]["content"].as_str())
            .collect()
    };
    let chunks = futures_executor::block_on(started().into_stream().collect::<Vec<_>>());
    let chunks: Vec<Value> = chunks.into_iter().map(|frame| frame.expect("no error").data).collect();
    assert_eq!([text(chunks.clone(), 0), text(chunks, 1)], ["Hello", "Hello"]);
}

#[test]
fn cut_reply_with_calls_has_finish_reason_length() {
    use lm_conversation::FinishReason::{ContextFull, EndToken, MaxOutputTokens};
    use lm_conversation::{Finished, Message, Reply, Timing, ToolCall, Usage};
    let text = Message::assistant("Hel");
    let mut call = Message::assistant("");
    call.tool_calls.push(ToolCall::new("f", Map::new()));
    let cases = [
        (&text, ContextFull, "length"),
        (&text, MaxOutputTokens, "length"),
        (&text, EndToken, "stop"),
        (&call, ContextFull, "length"),
        (&call, MaxOutputTokens, "length"),
        (&call, EndToken, "tool_calls"),
    ];
    for (message, reason, expected) in cases {
        let (usage, timing) = (Usage::default(), Timing::default());
        let finish = Finished { reason, usage, timing, seed: None, steered: None, masked: None };
        let reply = Reply::new(message.clone(), finish);
        let choice = lm_api::Choice { reply, logprobs: None, prompt_logprobs: Vec::new() };
        let object = lm_api::completion(&CompletionHead::new("m"), &[choice]);
        assert_eq!(object["choices"][0]["finish_reason"], expected, "{:?}", object["choices"][0]["message"]);
    }
}

#[test]
fn template_refusal_is_an_invalid_request() {
    let engine = scripted_engine(["Hello"]);
    let template = "{{ raise_exception('roles must alternate') }}";
    let template = Some(PromptTemplate::new(template).expect("it compiles"));
    let config = ConversationConfig { template, ..ConversationConfig::from_engine(&engine) };
    let body = json!({"messages": [{"role": "user", "content": "Hello"}]});
    let request = ChatRequest::from_json(body).expect("a request");
    let error = ChatCompletions::new(engine, config).complete(request).expect_err("refused");
    assert_eq!((error.status, error.param.as_deref()), (400, Some("messages")), "{error}");
}
