//! Requests and their responses: routes, streams, errors.

use crate::support;
use std::sync::Arc;

use crate::support::{Request, Running};
use lm_api::Limits;
use lm_model::testing::tokenizer_json;
use lm_model::{LoadedModel, Tokenizer};
use lm_server::{ServerConfig, ServerLimits};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{Engine, EngineSettings};
use serde_json::{Value, json};

fn server() -> Running {
    Running::scripted(["Hello!"], ServerConfig::default())
}

#[test]
fn streamed_completion_equals_the_object() {
    let response = server().send(&Request::chat(json!({"model": "fake"})));
    let object = response.json();
    assert_eq!((response.status, &object["object"]), (200, &json!("chat.completion")));
    assert_eq!(object["choices"][0]["message"]["content"], "Hello!");
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert!(response.header("x-request-id").is_some_and(|id| id.starts_with("req_")));

    let response =
        server().send(&Request::chat(json!({"stream": true, "stream_options": {"include_usage": true}})));
    let events = response.events();
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert_eq!(response.header("cache-control"), Some("no-cache"));
    assert_eq!(response.header("x-accel-buffering"), Some("no"));
    assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|data| serde_json::from_str(data).expect("JSON")).collect();
    let content = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    assert_eq!(chunks.iter().filter_map(content).collect::<String>(), "Hello!");
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]));
    let last = chunks.last().expect("chunks");
    assert_eq!(
        (&last["choices"], &last["usage"]["prompt_tokens"]),
        (&json!([]), &object["usage"]["prompt_tokens"])
    );
}

#[test]
fn streamed_text_completion_equals_the_object() {
    let server = Running::scripted(["Hello!", "Hello!"], ServerConfig::default());
    let body = json!({"prompt": "Say hello:", "model": "fake"});
    let response = server.post("/v1/completions", &body);
    let object = response.json();
    assert_eq!((response.status, &object["object"]), (200, &json!("text_completion")), "{object}");
    assert_eq!(object["choices"][0]["text"], "Hello!");
    let mut body = body;
    body["stream"] = json!(true);
    let events = server.post("/v1/completions", &body).events();
    assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
    let text = |data: &String| {
        serde_json::from_str::<Value>(data).ok()?["choices"][0]["text"].as_str().map(str::to_owned)
    };
    assert_eq!(events.iter().filter_map(text).collect::<String>(), "Hello!");
    body["suffix"] = json!("end");
    let refused = server.post("/v1/completions", &body);
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("suffix")));
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("prompt_tokens"), "{metrics}");
}

#[test]
fn models_are_listed_and_found_by_name_and_alias() {
    let server = server();
    let list = server.get("/v1/models").json();
    let names: Vec<_> = list["data"].as_array().expect("a list").iter().map(|model| &model["id"]).collect();
    assert_eq!(names, ["fake", "other/name"]);
    for name in ["fake", "other/name"] {
        let model = server.get(&format!("/v1/models/{name}")).json();
        assert_eq!((&model["id"], &model["object"]), (&json!(name), &json!("model")));
    }
    let answered = server.send(&Request::chat(json!({"model": "other/name"})));
    assert_eq!((answered.status, &answered.json()["model"]), (200, &json!("other/name")));
    for response in [server.get("/v1/models/gpt"), server.send(&Request::chat(json!({"model": "gpt"})))] {
        let expected = (404, "not_found_error".to_owned(), Some("model_not_found".to_owned()));
        assert_eq!(response.error(), expected);
        assert!(response.body.contains("the names of models are `fake`, `other/name`"), "{}", response.body);
    }
}

#[test]
fn errors_have_the_form_of_the_api() {
    let server = server();
    for (path, advice) in [
        ("/v1/v1/messages", "goes without /v1"),
        ("/v1/api/chat", "goes without /v1"),
        ("/chat/completions", "ends in /v1"),
        ("/v2/chat/completions", "under /v1, as in /v1/chat/completions"),
    ] {
        let response = server.post(path, &json!({}));
        assert!(response.status == 404 && response.body.contains(advice), "{path}: {}", response.body);
    }
    let invalid = |code: Option<&str>| (400, "invalid_request_error".to_owned(), code.map(str::to_owned));
    let chat = |text: &str| server.send(&Request::new("POST", "/v1/chat/completions").text_body(text));
    for text in ["", "{", "[1", "\u{feff}{}", "{\"messages\": 01}", &"[".repeat(100_000), "null", "[]", "{}"]
    {
        assert_eq!(chat(text).error(), invalid(None), "{text:.20}");
    }
    for (fields, param) in [
        (json!({"temperature": -1}), "temperature"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"n": 1_000_000}), "n"),
        (json!({"max_tokens": -5}), "max_tokens"),
        (json!({"messages": []}), "messages"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            "messages[0].content[0].image_url",
        ),
        (json!({"stream": "yes"}), "stream"),
        (json!({"stop": vec!["a"; 17]}), "stop"),
    ] {
        let response = server.send(&Request::chat(fields.clone()));
        assert_eq!((response.status, &response.json()["error"]["param"]), (400, &json!(param)), "{fields}");
    }
    assert_eq!(server.get("/v1/nothing").error(), (404, "not_found_error".to_owned(), None));
    for (method, path) in
        [("GET", "/v1/models/%ff"), ("GET", "/v1/responses/%ff"), ("DELETE", "/v1/responses/%ff")]
    {
        assert_eq!(server.send(&Request::new(method, path)).error(), invalid(None), "{method} {path}");
    }
    let wrong = server.get("/v1/chat/completions");
    assert_eq!(wrong.error(), (405, "invalid_request_error".to_owned(), None));
    assert_eq!(wrong.header("allow"), Some("POST"));
    // A prompt that does not fit is an error before the stream.
    let long = json!({"stream": true, "messages": [{"role": "user", "content": "long ".repeat(100_000)}]});
    assert_eq!(server.send(&Request::chat(long)).error(), invalid(Some("context_length_exceeded")));
    assert_eq!(server.send(&Request::chat(json!({}))).status, 200, "the server lives");
}

#[test]
fn ignore_eos_runs_to_the_limit() {
    let server = Running::scripted(["Hello!", "Hello!"], ServerConfig::default());
    let tokens = |fields| server.send(&Request::chat(fields)).json()["usage"]["completion_tokens"].as_u64();
    assert!(tokens(json!({"max_tokens": 100})).is_some_and(|tokens| tokens < 20));
    assert_eq!(tokens(json!({"max_tokens": 100, "ignore_eos": true})), Some(100));
}

#[test]
fn content_type_of_a_body_is_ignored() {
    let server = server();
    for kind in ["application/json", "text/plain", "application/x-www-form-urlencoded"] {
        let request = Request::chat(json!({"max_tokens": 3})).header("Content-Type", kind);
        assert_eq!(server.send(&request).status, 200, "{kind}");
    }
}

#[test]
fn compressed_body_is_refused() {
    let server = server();
    let sent = |encoding| server.send(&Request::chat(json!({})).header("Content-Encoding", encoding));
    for encoding in ["gzip", "br", "identity, gzip"] {
        assert_eq!(sent(encoding).error(), (415, "invalid_request_error".to_owned(), None), "{encoding}");
    }
    assert_eq!(sent("Identity").status, 200);
}

#[test]
fn body_with_length_and_chunks_is_chunked_and_closes() {
    let server = server();
    for [first, second] in [
        ["Content-Length: 2", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 2"],
    ] {
        let mut client = server.connect();
        let body = r#"{"content": "Hello"}"#;
        let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let head = format!("POST /tokenize HTTP/1.1\r\nHost: localhost\r\n{first}\r\n{second}\r\n\r\n");
        // What a proxy that goes by the length would take for the next request.
        let next = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
        client.write((head + &chunk + next).as_bytes());
        assert_eq!(client.head().0, 200);
        assert!(!client.rest().contains("HTTP/1.1"), "there is one response");
    }
}

#[test]
fn oversized_body_is_rejected() {
    let limits = ServerLimits { body_bytes: 1_000, ..ServerLimits::default() };
    let server = Running::scripted(["Hello!"], ServerConfig { limits, ..ServerConfig::default() });
    let response = server.send(&Request::chat(json!({"user": "x".repeat(1_000)})));
    assert_eq!(response.error(), (413, "invalid_request_error".to_owned(), None));
    let text = support::chat(json!({})).to_string();
    let of_length =
        |bytes| Request::new("POST", "/v1/chat/completions").text_body(&format!("{text:<bytes$}"));
    assert_eq!([1_000, 1_001].map(|bytes| server.send(&of_length(bytes)).status), [200, 413]);
    // The same without a length: a body of more than four times the limit is not read to its end.
    let mut client = server.connect();
    client.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    client.write(format!("1388\r\n{}\r\n", " ".repeat(5_000)).as_bytes());
    assert_eq!(client.head().0, 413);
    assert_eq!(server.send(&Request::chat(json!({}))).status, 200);
}

/// A client that sends all of its body before it reads: the connection stays open for that long.
#[test]
fn oversized_body_is_drained_before_the_error() {
    let limits = ServerLimits { body_bytes: 1 << 22, ..ServerLimits::default() };
    let server = Running::scripted(["Hello!"], ServerConfig { limits, ..ServerConfig::default() });
    let body = " ".repeat(3 << 22);
    let response = server.send(&Request::new("POST", "/v1/chat/completions").text_body(&body));
    assert_eq!(response.error(), (413, "invalid_request_error".to_owned(), None));
    // The same in chunks.
    let mut client = server.connect();
    client.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    for _ in 0..3 {
        client.write(format!("400000\r\n{}\r\n", " ".repeat(1 << 22)).as_bytes());
    }
    client.write(b"0\r\n\r\n");
    assert_eq!(client.head().0, 413);
    assert_eq!(server.send(&Request::chat(json!({}))).status, 200);
}

#[test]
fn tokenize_and_detokenize_round_trip() {
    let server = server();
    let encoded = server.post("/tokenize", &json!({"content": "Hello there"})).json();
    let ids = encoded["tokens"].as_array().expect("ids");
    assert_eq!(encoded["count"], ids.len());
    assert_eq!(server.post("/detokenize", &json!({"tokens": ids})).json()["content"], "Hello there");
    assert_eq!(server.post("/detokenize", &json!({"tokens": [u32::MAX]})).status, 400);
    for (path, body, param) in [
        ("/tokenize", json!({}), "content"),
        ("/tokenize", json!({"content": 5}), "content"),
        ("/tokenize", json!({"prompt": 5}), "prompt"),
        ("/tokenize", json!({"content": "a", "parse_special": "yes"}), "parse_special"),
        ("/tokenize", json!({"content": "a", "add_special_tokens": 1}), "add_special_tokens"),
        ("/tokenize", json!({"content": "a".repeat((4 << 20) + 1)}), "content"),
        ("/detokenize", json!({}), "tokens"),
        ("/detokenize", json!({"tokens": "1"}), "tokens"),
        ("/detokenize", json!({"tokens": [-1]}), "tokens"),
    ] {
        let response = server.post(path, &body);
        assert_eq!((response.status, &response.json()["error"]["param"]), (400, &json!(param)), "{path}");
    }
    let prompt = server.post("/apply-template", &support::chat(json!({}))).json();
    assert_eq!(prompt["prompt"], "user: Hello\n");
}

#[test]
fn embeddings_are_vectors() {
    let response = server().post("/v1/embeddings", &json!({"input": ["Hello", "there"]}));
    let data = response.json()["data"].as_array().expect("vectors").len();
    assert_eq!((response.status, data), (200, 2));
}

#[test]
fn configured_limits_apply_to_every_path() {
    let request =
        Limits { messages: 1, choices: 1, tokenize_bytes: 4, embedding_inputs: 1, ..Limits::default() };
    let limits = ServerLimits { request, ..ServerLimits::default() };
    let server = Running::scripted(["Hello!"], ServerConfig { limits, ..ServerConfig::default() });
    let message = json!({"role": "user", "content": "Hello"});
    let messages = json!({"messages": [message, message], "max_tokens": 5});
    let texts = json!({"input": ["a", "b"]});
    for (path, body) in [
        ("/v1/chat/completions", &messages),
        ("/v1/messages", &messages),
        ("/v1/messages/count_tokens", &messages),
        ("/api/chat", &messages),
        ("/apply-template", &messages),
        ("/v1/responses", &json!({"input": [message, message]})),
        ("/v1/completions", &json!({"prompt": "a", "n": 2})),
        ("/v1/embeddings", &texts),
        ("/api/embed", &texts),
        ("/tokenize", &json!({"content": "Hello"})),
    ] {
        let response = server.post(path, body);
        assert_eq!(response.status, 400, "{path}: {}", response.body);
    }
    assert_eq!(server.post("/tokenize", &json!({"content": "Hell"})).status, 200, "exactly at the limit");
}

#[test]
fn special_tokens_are_parsed_by_default() {
    // A tokenizer that begins a text with `<|endoftext|>`.
    let start = "<|endoftext|>";
    let mut file: Value = serde_json::from_str(&tokenizer_json()).expect("JSON");
    let items =
        json!([{"SpecialToken": {"id": start, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]);
    let id = tokenizer().token_id(start).expect("a token");
    let special = json!({start: {"id": start, "ids": [id], "tokens": [start]}});
    file["post_processor"] =
        json!({"type": "TemplateProcessing", "single": items, "pair": items, "special_tokens": special});
    let text = Tokenizer::from_json(file.to_string().as_bytes()).expect("a tokenizer");
    let model = loaded(FakeLm::scripted(&tokenizer(), ["Hello!"]));
    let model = LoadedModel { tokenizer: Arc::new(text), ..model };
    let server = Running::start(
        Engine::new(model, EngineSettings::default()).expect("it fits"),
        ServerConfig::default(),
    );
    let tokens = |fields: Value| {
        let mut body = json!({"content": start});
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        server.post("/tokenize", &body).json()["tokens"].as_array().expect("ids").clone()
    };
    assert_eq!(tokens(json!({})), [id]);
    assert_eq!(tokens(json!({"add_special_tokens": true})), [id, id]);
    assert!(tokens(json!({"parse_special": false})).len() > 2);
}

#[test]
fn documents_need_a_template_that_shows_them() {
    let body = support::chat(json!({"documents": [{"title": "T", "text": "The secret is 42."}]}));
    let server = Running::scripted(["Hello!"], ServerConfig::default());
    let response = server.post("/v1/chat/completions", &body);
    let error = &response.json()["error"];
    assert_eq!((response.status, &error["param"]), (400, &json!("documents")), "{error}");
    assert_eq!(server.post("/v1/chat/completions", &support::chat(json!({"documents": []}))).status, 200);

    let engine = lm_session::testing::scripted_engine(["Hello!"]);
    let source =
        "{% for d in documents %}{{ d.text }}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}";
    let template = Some(lm_conversation::PromptTemplate::new(source).expect("it compiles"));
    let defaults = lm_conversation::ConversationConfig {
        template,
        ..lm_conversation::ConversationConfig::from_engine(&engine)
    };
    let server = Running::serve(lm_server::ServedModel::new(engine, defaults), ServerConfig::default());
    assert_eq!(server.post("/v1/chat/completions", &body).status, 200);
}
