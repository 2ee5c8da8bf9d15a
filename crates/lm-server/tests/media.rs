//! Images and audio over the APIs: the same bytes give the same prompt, and invalid bytes are an error of
//! their part.

use crate::support::{Response, Running};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lm_server::ServerConfig;
use lm_session::testing::{FakeLm, audio_file, image_file, tokenizer};
use serde_json::{Value, json};

/// Serves a model whose replies depend on every pixel and every sample.
fn server() -> Running {
    Running::with_media(FakeLm::random(3, tokenizer().logits_width()))
}

fn url(file: &[u8]) -> String {
    format!("data:image/bmp;base64,{}", STANDARD.encode(file))
}

fn chat(server: &Running, content: &Value) -> Response {
    let messages = json!([{"role": "user", "content": content}]);
    server.post("/v1/chat/completions", &json!({"messages": messages, "max_tokens": 12, "temperature": 0}))
}

fn reply(server: &Running, file: &[u8]) -> String {
    let image = json!({"type": "image_url", "image_url": {"url": url(file)}});
    let response = chat(server, &json!([image, {"type": "text", "text": "What is it?"}]));
    assert_eq!(response.status, 200, "{}", response.body);
    response.json()["choices"][0]["message"]["content"].as_str().expect("text").to_owned()
}

#[test]
fn image_is_the_same_over_all_apis() {
    let server = server();
    let file = image_file(3, 2, 1);
    let expected = reply(&server, &file);
    assert_ne!(reply(&server, &image_file(3, 2, 2)), expected, "one byte of a pixel differs");
    let text = json!({"type": "text", "text": "What is it?"});
    let source = json!({"type": "base64", "media_type": "image/bmp", "data": STANDARD.encode(&file)});
    let content = json!([{"type": "image", "source": source}, text]);
    let message =
        json!({"messages": [{"role": "user", "content": content}], "max_tokens": 12, "temperature": 0});
    let object = server.post("/v1/messages", &message).json();
    assert_eq!(object["content"][0]["text"], json!(expected));
    let content = json!([{"type": "input_image", "image_url": url(&file)}, {"type": "input_text", "text": "What is it?"}]);
    let body =
        json!({"input": [{"role": "user", "content": content}], "max_output_tokens": 12, "temperature": 0});
    let object = server.post("/v1/responses", &body).json();
    assert_eq!(object["output"][0]["content"][0]["text"], json!(expected));
    let message = json!({"role": "user", "content": "What is it?", "images": [STANDARD.encode(&file)]});
    let options = json!({"num_predict": 12, "temperature": 0});
    let object =
        server.post("/api/chat", &json!({"messages": [message], "stream": false, "options": options})).json();
    assert_eq!(object["message"]["content"], json!(expected));
    let duration = |name: &str| object[name].as_u64().expect("a duration");
    let parts = duration("load_duration") + duration("prompt_eval_duration") + duration("eval_duration");
    assert!(duration("total_duration") >= parts, "{object}");
}

const CALL: &str = "call_0";

/// A turn of chat completions with the content of a tool's result.
fn after_result(server: &Running, content: &Value) -> Response {
    let function = json!({"name": "look", "arguments": "{}"});
    let messages = json!([
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "tool_calls": [{"id": CALL, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": CALL, "content": content},
    ]);
    server.post("/v1/chat/completions", &json!({"messages": messages, "max_tokens": 12, "temperature": 0}))
}

fn said(response: &Response) -> Value {
    assert_eq!(response.status, 200, "{}", response.body);
    response.json()["choices"][0]["message"]["content"].clone()
}

#[test]
fn image_of_a_result_is_the_same_over_all_apis() {
    let server = server();
    let file = image_file(3, 2, 1);
    let image = |file: &[u8]| json!([{"type": "image_url", "image_url": {"url": url(file)}}]);
    let expected = said(&after_result(&server, &image(&file)));
    assert_ne!(said(&after_result(&server, &image(&image_file(3, 2, 2)))), expected, "a pixel differs");
    let source = json!({"type": "base64", "media_type": "image/bmp", "data": STANDARD.encode(&file)});
    let result =
        json!({"type": "tool_result", "tool_use_id": CALL, "content": [{"type": "image", "source": source}]});
    let messages = json!([
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": CALL, "name": "look", "input": {}}]},
        {"role": "user", "content": [result]},
    ]);
    let body = json!({"messages": messages, "max_tokens": 12, "temperature": 0});
    assert_eq!(server.post("/v1/messages", &body).json()["content"][0]["text"], expected);
    let output = json!([{"type": "input_image", "image_url": url(&file)}]);
    let input = json!([
        {"role": "user", "content": "What is it?"},
        {"type": "function_call", "call_id": CALL, "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": CALL, "output": output},
    ]);
    let body = json!({"input": input, "max_output_tokens": 12, "temperature": 0});
    let object = server.post("/v1/responses", &body).json();
    assert_eq!(object["output"][0]["content"][0]["text"], expected, "{object}");
    let messages = json!([
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
        {"role": "tool", "tool_name": "look", "images": [STANDARD.encode(&file)]},
    ]);
    let options = json!({"num_predict": 12, "temperature": 0});
    let object =
        server.post("/api/chat", &json!({"messages": messages, "stream": false, "options": options})).json();
    assert_eq!(object["message"]["content"], expected, "{object}");
}

#[test]
fn result_with_an_unusable_medium_is_read_without_it() {
    let image = |file: &[u8]| json!({"type": "image_url", "image_url": {"url": url(file)}});
    let text = json!({"type": "text", "text": "A page."});
    for part in [image(&image_file(1, 1, 1)), input_audio(&audio_file(1, 1), "wav")] {
        let text_model = Running::scripted(["Hello!"], ServerConfig::default());
        assert_eq!(said(&after_result(&text_model, &json!([text, part]))), "Hello!");
    }
    let whole = image_file(300, 200, 1);
    for broken in [image(b"Hello"), image(&whole[..whole.len() / 2]), input_audio(&whole, "wav")] {
        said(&after_result(&server(), &json!([text, broken])));
    }
}

#[test]
fn invalid_image_is_a_request_error() {
    let server = server();
    let whole = image_file(300, 200, 1);
    let mut huge = image_file(1, 1, 1);
    huge[18..26].copy_from_slice(&[0x10, 0x27, 0, 0, 0x10, 0x27, 0, 0]); // 10,000 × 10,000
    for (file, expected) in [
        (&b"Hello"[..], "not image data"),
        (&whole[..whole.len() / 2], "BMP"),
        (&huge, "10000 × 10000"),
        (b"", "the file is empty"),
    ] {
        let response = chat(&server, &json!([{"type": "image_url", "image_url": {"url": url(file)}}]));
        let error = &response.json()["error"];
        assert_eq!((response.status, &error["param"]), (400, &json!("messages")), "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(expected)), "{error}");
    }
    // Spelled by a user, the placeholder is text.
    assert_eq!(chat(&server, &json!("<tool_response>")).status, 200);
    assert_eq!(
        server.get("/v1/models").json()["data"][0]["input_modalities"],
        json!(["text", "image", "audio"])
    );
}

/// An `input_audio` of a file in base64.
fn input_audio(file: &[u8], format: &str) -> Value {
    json!({"type": "input_audio", "input_audio": {"data": STANDARD.encode(file), "format": format}})
}

#[test]
fn audio_clip_is_the_same_over_openai_apis() {
    let server = server();
    let text = json!({"type": "text", "text": "What is it?"});
    let reply = |audio: Value| {
        let response = chat(&server, &json!([audio, text]));
        assert_eq!(response.status, 200, "{}", response.body);
        response.json()["choices"][0]["message"]["content"].clone()
    };
    let file = audio_file(4001, 1);
    let expected = reply(input_audio(&file, "wav"));
    assert_ne!(reply(input_audio(&audio_file(4001, 2), "wav")), expected, "one sample differs");
    assert_eq!(
        reply(json!({"type": "audio", "blob": STANDARD.encode(&file)})),
        expected,
        "a part of LiteRT-LM"
    );
    let content = json!([input_audio(&file, "wav"), {"type": "input_text", "text": "What is it?"}]);
    let body =
        json!({"input": [{"role": "user", "content": content}], "max_output_tokens": 12, "temperature": 0});
    let object = server.post("/v1/responses", &body).json();
    assert_eq!(object["output"][0]["content"][0]["text"], expected);
    let data = format!("data:audio/wav;base64,{}", STANDARD.encode(&file));
    let audio = json!({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}});
    assert_eq!(reply(audio), expected, "a data URL, as some clients send it");
    // An image beside it is another prompt.
    let image = json!({"type": "image_url", "image_url": {"url": url(&image_file(3, 2, 1))}});
    let orders = [json!([image, input_audio(&file, "wav")]), json!([input_audio(&file, "wav"), image])];
    let [one, other] = orders.map(|content| chat(&server, &content).json()["choices"][0]["message"].clone());
    assert_ne!(one, other);
}

#[test]
fn invalid_audio_is_a_request_error() {
    let server = server();
    let whole = audio_file(16_000, 1);
    let mut hours = whole.clone();
    hours[4..8].copy_from_slice(&(36 + 36_000 * 4_000 * 2_u32).to_le_bytes());
    hours[24..28].copy_from_slice(&4_000_u32.to_le_bytes());
    hours[40..44].copy_from_slice(&(36_000 * 4_000 * 2_u32).to_le_bytes());
    for (file, expected) in [
        (&b"Hello"[..], "not audio data"),
        (&whole[..whole.len() / 2], "WAV"),
        (&hours, "longer than 600 seconds"),
        (&image_file(3, 2, 1), "expected WAV"),
    ] {
        let response = chat(&server, &json!([input_audio(file, "wav")]));
        let error = &response.json()["error"];
        assert_eq!((response.status, &error["param"]), (400, &json!("messages")), "{error}");
        assert_eq!(error["code"], "invalid_audio", "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(expected)), "{error}");
    }
    for (audio, field) in [
        (json!({"data": "%", "format": "wav"}), "data"),
        (json!({"data": STANDARD.encode(&whole), "format": "aac"}), "format"),
        (json!({"format": "wav"}), "data"),
    ] {
        let response = chat(&server, &json!([{"type": "input_audio", "input_audio": audio}]));
        let expected = json!(format!("messages[0].content[0].input_audio.{field}"));
        assert_eq!((response.status, &response.json()["error"]["param"]), (400, &expected), "{audio}");
    }
    let path = json!([{"type": "audio", "path": "/etc/passwd"}]);
    assert_eq!(chat(&server, &path).json()["error"]["code"], "unsupported_content");
    // Anthropic's and Ollama's APIs have no audio.
    let messages = json!([{"role": "user", "content": [input_audio(&whole, "wav")]}]);
    let response = server.post("/v1/messages", &json!({"messages": messages, "max_tokens": 12}));
    let error = response.json();
    assert_eq!((response.status, &error["error"]["type"]), (400, &json!("invalid_request_error")), "{error}");
    let response = server.post("/api/chat", &json!({"messages": messages}));
    assert_eq!(response.status, 400, "{}", response.body);
    assert!(response.json()["error"].as_str().is_some_and(|error| error.contains("input_audio")));
}

#[test]
fn text_model_rejects_images_and_audio() {
    let server = Running::scripted(["Hello!"], ServerConfig::default());
    let image = json!({"type": "image_url", "image_url": {"url": url(&image_file(1, 1, 1))}});
    for part in [image, input_audio(&audio_file(1, 1), "wav")] {
        let response = chat(&server, &json!([part]));
        let error = &response.json()["error"];
        assert_eq!((response.status, &error["code"]), (400, &json!("unsupported_content")), "{error}");
    }
    assert_eq!(server.get("/v1/models").json()["data"][0]["input_modalities"], json!(["text"]));
}

#[test]
fn audio_model_rejects_images() {
    let shown = |server: &Running| {
        let model = server.get("/v1/models").json()["data"][0]["id"].clone();
        server.post("/api/show", &json!({"model": model})).json()["capabilities"].clone()
    };
    let hearing = Running::hearing(FakeLm::random(3, tokenizer().logits_width()));
    assert_eq!(shown(&hearing), json!(["completion", "tools"]));
    assert_eq!(hearing.get("/v1/models").json()["data"][0]["input_modalities"], json!(["text", "audio"]));
    assert_eq!(shown(&server()), json!(["completion", "tools", "vision"]));
}
