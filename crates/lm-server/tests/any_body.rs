//! Bodies with fields of wrong types, sizes and signs, to every route that reads one: none is the server's fault, and each is answered.

mod support;

use lm_server::ServerConfig;
use serde_json::{Value, json};
use support::Running;

/// Number of requests.
const REQUESTS: usize = 1_500;

/// Routes with a body each that is answered with 200.
fn routes() -> Vec<(&'static str, Value)> {
    let chat = support::chat(json!({"max_tokens": 8}));
    vec![
        ("/v1/chat/completions", chat.clone()),
        ("/v1/completions", json!({"prompt": "Hello", "max_tokens": 8})),
        ("/v1/responses", json!({"input": "Hello", "max_output_tokens": 8})),
        ("/v1/embeddings", json!({"input": "Hello"})),
        ("/v1/messages", chat.clone()),
        ("/v1/messages/count_tokens", chat.clone()),
        ("/api/chat", chat.clone()),
        ("/api/generate", json!({"prompt": "Hello"})),
        ("/api/embed", json!({"input": "Hello"})),
        ("/api/show", json!({"model": "fake"})),
        ("/tokenize", json!({"content": "Hello"})),
        ("/detokenize", json!({"tokens": [1, 2]})),
        ("/apply-template", chat),
    ]
}

/// Fields of the bodies of any route.
const FIELDS: [&str; 54] = [
    "messages",
    "prompt",
    "input",
    "content",
    "tokens",
    "model",
    "tools",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "min_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "n",
    "best_of",
    "stop",
    "stop_sequences",
    "stream",
    "stream_options",
    "logprobs",
    "top_logprobs",
    "echo",
    "suffix",
    "logit_bias",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "ignore_eos",
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "format",
    "options",
    "think",
    "thinking",
    "reasoning",
    "reasoning_effort",
    "system",
    "instructions",
    "previous_response_id",
    "text",
    "dimensions",
    "encoding_format",
    "chat_template_kwargs",
    "continue_final_message",
    "add_generation_prompt",
    "parallel_tool_calls",
];

fn values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(2),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("a\u{0}\u{fffd}"),
        json!("x".repeat(20_000)),
        json!([]),
        json!([null]),
        json!(["a", "b"]),
        json!([[-1], {}]),
        json!({}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
        json!({"type": "json_schema", "json_schema": {"schema": {"enum": []}}}),
        json!({"type": "enabled", "effort": -1, "include_usage": 1, "temperature": "hot", "5": "x"}),
    ]
}

#[test]
fn no_body_is_the_servers_fault() {
    let server = Running::scripted(["Hello!"; 64], ServerConfig::default());
    let (routes, values) = (routes(), values());
    for (path, body) in &routes {
        let response = server.post(path, body);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
    }
    let all = routes.len() * FIELDS.len() * values.len();
    // A stride without a common factor visits different cases, of all routes, fields and values.
    let (mut accepted, mut refused) = (0, 0);
    for case in (0..REQUESTS).map(|number| number * 7_919 % all) {
        let (path, body) = &routes[case % routes.len()];
        let field = FIELDS[case / routes.len() % FIELDS.len()];
        let mut body = body.clone();
        body[field] = values[case / routes.len() / FIELDS.len()].clone();
        let response = server.post(path, &body);
        match response.status {
            200 => accepted += 1,
            400..500 => refused += 1,
            status => panic!("{path} with {field} {}: {status} {}", body[field], response.body),
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} accepted, {refused} refused");
    assert_eq!(server.get("/ready").status, 200);
}
