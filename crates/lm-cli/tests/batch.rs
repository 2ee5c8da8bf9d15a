//! `lm batch`: one answer for each request, in order, also for invalid lines.

mod json_lines;

use serde_json::{Value, json};

use json_lines::answers;

/// Answers to these lines, in order.
fn batch(args: &[&str], lines: &str) -> Vec<Value> {
    answers("batch", args, lines)
}

fn weather() -> Value {
    let parameters = json!({"type": "object", "properties": {"location": {"type": "string"}},
        "required": ["location"]});
    json!([{"type": "function", "function": {"name": "get_weather", "description": "The weather.",
        "parameters": parameters}}])
}

#[test]
fn answers_are_completions_in_the_order_of_the_lines() {
    let ask = |text: &str| json!([{"role": "user", "content": text}]);
    let requests = [
        json!({"messages": ask("How is the weather in Paris?"), "tools": weather(), "model": "mine"}),
        json!({"messages": ask("Hello"), "max_tokens": 2}),
        json!({"messages": ask("Hello"), "max_completion_tokens": 1, "max_tokens": 2, "stop": null}),
    ];
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let answers = batch(&["--parallel", "2"], &lines);
    assert_eq!(answers.len(), 3);
    let choice = &answers[0]["choices"][0];
    assert_eq!((&answers[0]["object"], &answers[0]["model"]), (&json!("chat.completion"), &json!("mine")));
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &Value::Null)
    );
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"], json!({"name": "get_weather", "arguments": "{\"location\":\"Paris\"}"}));
    assert!(call["id"].is_string());
    for (answer, tokens) in [(&answers[1], 2), (&answers[2], 1)] {
        assert_eq!(answer["usage"]["completion_tokens"], tokens, "{answer}");
        assert_eq!(answer["choices"][0]["finish_reason"], "length");
        assert!(answer["choices"][0]["message"].get("tool_calls").is_none());
    }
}

#[test]
fn one_at_a_time_or_many_the_answers_are_the_same() {
    let line = |seed: u32| {
        let messages = json!([{"role": "user", "content": format!("Tell me about the number {seed}.")}]);
        json!({"messages": messages, "temperature": 1.0, "seed": seed, "max_tokens": 12}).to_string() + "\n"
    };
    let lines: String = (0..6).map(line).collect();
    let contents = |answers: Vec<Value>| -> Vec<Value> {
        answers.into_iter().map(|answer| answer["choices"][0]["message"]["content"].clone()).collect()
    };
    let alone = contents(batch(&["--parallel", "1"], &lines));
    assert_eq!(alone.len(), 6);
    assert!(alone.iter().all(Value::is_string));
    assert_eq!(alone, contents(batch(&["--parallel", "6"], &lines)));
}

#[test]
fn what_cannot_be_answered_names_the_field_and_the_next_line_goes_on() {
    let hello = json!([{"role": "user", "content": "Hello"}]);
    let cases = [
        ("nonsense".to_owned(), Value::Null),
        (json!({"max_tokens": 1}).to_string(), json!("messages")),
        (json!({"messages": []}).to_string(), json!("messages")),
        (json!({"messages": [{"content": "Hello"}]}).to_string(), json!("messages")),
        (json!({"messages": hello, "temperature": -1}).to_string(), json!("temperature")),
        (json!({"messages": hello, "temperature": "warm"}).to_string(), json!("temperature")),
        (json!({"messages": hello, "max_tokens": 0}).to_string(), json!("max_tokens")),
        (json!({"messages": hello, "n": 2}).to_string(), json!("n")),
        (json!({"messages": hello, "stream": true}).to_string(), json!("stream")),
        (json!({"messages": hello, "stop": [""]}).to_string(), json!("stop")),
        (json!({"messages": hello, "logit_bias": {"x": 1}}).to_string(), json!("logit_bias")),
        (json!({"messages": hello, "tools": [{}]}).to_string(), json!("tools")),
    ];
    let mut lines: String = cases.iter().map(|(line, _)| format!("{line}\n")).collect();
    lines += &json!({"messages": hello, "max_tokens": 1}).to_string();
    let answers = batch(&[], &lines);
    assert_eq!(answers.len(), cases.len() + 1);
    for (answer, (line, param)) in answers.iter().zip(&cases) {
        assert_eq!(answer["error"]["type"], "invalid_request_error", "{line}: {answer}");
        assert_eq!(&answer["error"]["param"], param, "{line}: {answer}");
    }
    assert!(answers[cases.len()]["choices"].is_array());
}
