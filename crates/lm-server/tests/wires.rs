//! One conversation through all APIs.

use crate::support::Running;
use lm_server::ServerConfig;
use lm_session::EngineSettings;
use serde_json::{Map, Value, json};

const QUESTION: &str = "What is the weather in Paris?";
const RESULT: &str = "{\"weather\": \"rain\", \"celsius\": 12}";
const MAX_TOKENS: usize = 40;

/// Tokens of the prompt, tokens of the reply, and its text.
type Answer = (u64, u64, String);

/// Posts a body with the sampling fields added, at `options` if the API has them in an object of that name.
fn post(server: &Running, path: &str, mut body: Value, sampling: &Value, options: Option<&str>) -> Value {
    let target = match options {
        Some(options) => &mut body[options],
        None => &mut body,
    };
    let fields: Map<String, Value> = sampling.as_object().expect("fields").clone();
    target.as_object_mut().expect("an object").extend(fields);
    let response = server.post(path, &body);
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    response.json()
}

fn answer(prompt: &Value, reply: &Value, text: &Value) -> Answer {
    let text = text.as_str().expect("text").to_owned();
    (prompt.as_u64().expect("a count"), reply.as_u64().expect("a count"), text)
}

fn parameters() -> Value {
    json!({"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]})
}

fn function() -> Value {
    json!({"name": "get_weather", "description": "Weather of a place.", "parameters": parameters()})
}

fn chat_completions(server: &Running, sampling: &Value) -> Answer {
    let call = json!({"name": "get_weather", "arguments": "{\"location\": \"Paris\"}"});
    let body = json!({"max_tokens": MAX_TOKENS, "tools": [{"type": "function", "function": function()}], "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "a", "content": RESULT},
    ]});
    let object = post(server, "/v1/chat/completions", body, sampling, None);
    let usage = &object["usage"];
    let text = &object["choices"][0]["message"]["content"];
    answer(&usage["prompt_tokens"], &usage["completion_tokens"], text)
}

fn responses(server: &Running, sampling: &Value) -> Answer {
    let mut tool = function();
    tool["type"] = json!("function");
    let body = json!({"max_output_tokens": MAX_TOKENS, "tools": [tool], "instructions": "Be brief.", "input": [
        {"role": "user", "content": QUESTION},
        {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": "{\"location\": \"Paris\"}"},
        {"type": "function_call_output", "call_id": "a", "output": RESULT},
    ]});
    let object = post(server, "/v1/responses", body, sampling, None);
    let text = &object["output"][0]["content"][0]["text"];
    answer(&object["usage"]["input_tokens"], &object["usage"]["output_tokens"], text)
}

fn messages(server: &Running, sampling: &Value) -> Answer {
    let tool =
        json!({"name": "get_weather", "description": "Weather of a place.", "input_schema": parameters()});
    let call = json!({"type": "tool_use", "id": "a", "name": "get_weather", "input": {"location": "Paris"}});
    let body = json!({"max_tokens": MAX_TOKENS, "tools": [tool], "system": "Be brief.", "messages": [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": RESULT}]},
    ]});
    let object = post(server, "/v1/messages", body, sampling, None);
    let usage = &object["usage"];
    // This API counts what was cached apart.
    let prompt =
        ["input_tokens", "cache_read_input_tokens"].map(|count| usage[count].as_u64().expect("a count"));
    answer(&prompt.iter().sum::<u64>().into(), &usage["output_tokens"], &object["content"][0]["text"])
}

fn ollama(server: &Running, sampling: &Value) -> Answer {
    let call = json!({"function": {"name": "get_weather", "arguments": {"location": "Paris"}}});
    let tools = json!([{"type": "function", "function": function()}]);
    let body = json!({"options": {"num_predict": MAX_TOKENS}, "stream": false, "tools": tools, "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "get_weather", "content": RESULT},
    ]});
    let object = post(server, "/api/chat", body, sampling, Some("options"));
    answer(&object["prompt_eval_count"], &object["eval_count"], &object["message"]["content"])
}

#[test]
fn conversation_has_the_same_tokens_over_every_api() {
    let server = Running::embedded(EngineSettings::default(), ServerConfig::default());
    for sampling in [json!({"temperature": 0}), json!({"temperature": 1, "seed": 7})] {
        let expected = chat_completions(&server, &sampling);
        assert!(!expected.2.is_empty() && expected.0 > 50, "{expected:?}");
        assert_eq!(responses(&server, &sampling), expected, "responses, {sampling}");
        assert_eq!(messages(&server, &sampling), expected, "messages, {sampling}");
        assert_eq!(ollama(&server, &sampling), expected, "ollama, {sampling}");
    }
}
