//! Fields of the requests of OpenAI, Anthropic, Ollama, vLLM and llama.cpp, as `fields.tsv` lists them: each
//! is honoured, or ignored because it does not change the answer, or refused by name.

use std::collections::HashMap;
use std::fmt::Debug;

use lm_api::{
    AnthropicRequest, ApiError, ChatRequest, CompletionRequest, EmbeddingRequest, Limits, OllamaRequest,
    ResponseStore, ResponsesRequest, Result, Value, ollama_embed,
};
use serde_json::json;

const TABLE: &str = include_str!("fields.tsv");

/// Names of the APIs, and small bodies.
const APIS: [(&str, &str); 10] = [
    ("chat", r#"{"messages": [{"role": "user", "content": "Hi"}]}"#),
    ("completions", r#"{"prompt": "Hi"}"#),
    ("responses", r#"{"input": "Hi"}"#),
    ("embeddings", r#"{"input": "Hi"}"#),
    ("messages", r#"{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}"#),
    ("ollama_chat", r#"{"messages": [{"role": "user", "content": "Hi"}]}"#),
    ("ollama_generate", r#"{"prompt": "Hi"}"#),
    ("ollama_options", "{}"),
    ("ollama_embed", r#"{"input": "Hi"}"#),
    ("infill", r#"{"input_prefix": "Hi"}"#),
];

/// A line of the table.
struct Row {
    api: &'static str,
    field: &'static str,
    value: Value,
    here: &'static str,
    with: Value,
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
    let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    lines
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [api, field, value, here, _, with] => {
                Row { api, field, value: json(value), here, with: json(with) }
            }
            _ => panic!("{line}"),
        })
        .collect()
}

/// The request that is read: what decides its answer, and all of it.
fn read(api: &str, body: Value) -> Result<[String; 2]> {
    let limits = Limits::default();
    let same = |request: &dyn Debug| [format!("{request:?}"), format!("{request:?}")];
    Ok(match api {
        "chat" => same(&ChatRequest::from_json(body)?),
        "completions" => same(&CompletionRequest::from_json(body)?),
        "embeddings" => same(&EmbeddingRequest::from_json(body)?),
        "messages" => same(&AnthropicRequest::message(body, &limits)?),
        "ollama_chat" => same(&OllamaRequest::chat(body, &limits)?),
        "infill" => same(&CompletionRequest::infill_from_json(body, &limits)?),
        "ollama_generate" if OllamaRequest::is_text(&body) => same(&OllamaRequest::text(body, &limits)?),
        "ollama_generate" => same(&OllamaRequest::generate(body, &limits)?),
        "ollama_options" => {
            same(&OllamaRequest::generate(json!({"prompt": "Hi", "options": body}), &limits)?)
        }
        "ollama_embed" => same(&ollama_embed(body, &limits)?),
        _ => {
            let mut request = ResponsesRequest::from_json_within(body, &ResponseStore::default(), &limits)?;
            request.id.clear();
            // Some fields are repeated in the response.
            [format!("{:?}", request.chat), format!("{request:?}")]
        }
    })
}

/// Body of an API with these fields.
fn body(api: &str, fields: &Value) -> Value {
    let (_, body) = APIS.iter().find(|(name, _)| *name == api).expect("a known API");
    let mut body: Value = serde_json::from_str(body).expect("JSON");
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
    body
}

#[test]
fn fields_are_honoured_ignored_or_refused_by_name() {
    let mut wrong = Vec::new();
    for Row { api, field, value, here, with } in rows() {
        let without = read(api, body(api, &with)).expect("the other fields are valid");
        let mut fields = with;
        fields[field] = value.clone();
        let read = read(api, body(api, &fields));
        let names = |error: &ApiError| {
            let is_named = error.param.as_deref().is_some_and(|param| param.contains(field));
            matches!(error.status, 400 | 404) && is_named
        };
        let is_right = match (here, &read) {
            ("honoured", Ok(with)) => with[1] != without[1],
            ("ignored", Ok(with)) => with[0] == without[0],
            ("refused", Err(error)) => names(error),
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{api} {field} {value} is not {here}: {:?}", read.err()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn table_has_every_field_of_the_bodies() {
    let mut known: HashMap<&str, Vec<&str>> = HashMap::new();
    for row in rows() {
        known.entry(row.api).or_default().push(row.field);
    }
    for (api, body) in [
        ("chat", ChatRequest::BODY),
        ("completions", CompletionRequest::BODY),
        ("responses", ResponsesRequest::BODY),
        ("embeddings", EmbeddingRequest::BODY),
        ("messages", AnthropicRequest::MESSAGE),
        ("ollama_chat", OllamaRequest::CHAT),
        ("ollama_generate", OllamaRequest::GENERATE),
        ("ollama_embed", OllamaRequest::EMBED),
    ] {
        let schema = body.schema();
        let fields = schema["properties"].as_object().expect("properties");
        let is_refused = |name: &str| fields[name]["description"] == "Not supported.";
        // Extensions of this server, and older names.
        let own = ["format", "pooling", "prompt", "max_reasoning_tokens", "output_format"];
        let missing: Vec<_> = fields
            .keys()
            .filter(|name| !is_refused(name) && !own.contains(&name.as_str()))
            .filter(|name| !known[api].contains(&name.as_str()))
            .collect();
        assert!(missing.is_empty(), "{api}: {missing:?}");
    }
}
