//! Pictures over all APIs: the same bytes are the same prompt, and what is no picture is an error of its part.

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lm_server::ServerConfig;
use lm_session::testing::{FakeLm, picture_file, tokenizer};
use serde_json::{Value, json};
use support::{Response, Running};

/// Serves a model whose replies depend on every pixel.
fn server() -> Running {
    Running::with_pictures(FakeLm::random(3, tokenizer().logits_width()))
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
fn a_picture_is_the_same_over_all_apis() {
    let server = server();
    let file = picture_file(3, 2, 1);
    let expected = reply(&server, &file);
    assert_ne!(reply(&server, &picture_file(3, 2, 2)), expected, "one byte of a pixel differs");
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
}

#[test]
fn what_is_no_picture_is_an_error_of_the_request() {
    let server = server();
    let whole = picture_file(300, 200, 1);
    let mut huge = picture_file(1, 1, 1);
    huge[18..26].copy_from_slice(&[0x10, 0x27, 0, 0, 0x10, 0x27, 0, 0]); // 10,000 × 10,000
    for (file, expected) in [
        (&b"Hello"[..], "no picture"),
        (&whole[..whole.len() / 2], "BMP"),
        (&huge, "10000 × 10000"),
        (b"", "no picture"),
    ] {
        let response = chat(&server, &json!([{"type": "image_url", "image_url": {"url": url(file)}}]));
        let error = &response.json()["error"];
        assert_eq!((response.status, &error["param"]), (400, &json!("messages")), "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(expected)), "{error}");
    }
    // Spelled by a user, the placeholder is text.
    assert_eq!(chat(&server, &json!("<tool_response>")).status, 200);
    assert_eq!(server.get("/v1/models").json()["data"][0]["input_modalities"], json!(["text", "image"]));
}

#[test]
fn a_model_that_reads_text_refuses_pictures() {
    let server = Running::scripted(["Hello!"], ServerConfig::default());
    let response =
        chat(&server, &json!([{"type": "image_url", "image_url": {"url": url(&picture_file(1, 1, 1))}}]));
    let error = &response.json()["error"];
    assert_eq!((response.status, &error["code"]), (400, &json!("unsupported_content")), "{error}");
    assert_eq!(server.get("/v1/models").json()["data"][0]["input_modalities"], json!(["text"]));
}
