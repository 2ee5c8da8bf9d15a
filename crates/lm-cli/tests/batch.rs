//! `lm batch`: one answer for each request, in order, also for invalid lines.

use crate::json_lines;
use crate::program;
use serde_json::{Value, json};

use crate::json_lines::{answers, failing};

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
fn answers_are_completions_in_line_order() {
    let ask = |text: &str| json!([{"role": "user", "content": text}]);
    let requests = [
        json!({"messages": ask("How is the weather in Paris?"), "tools": weather(), "model": "mine:latest"}),
        json!({"messages": ask("Hello"), "max_tokens": 2}),
        json!({"messages": ask("Hello"), "max_completion_tokens": 1, "max_tokens": 2, "stop": null}),
    ];
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let answers = batch(&["--parallel", "2", "--alias", "mine"], &lines);
    assert_eq!(answers.len(), 3);
    let choice = &answers[0]["choices"][0];
    assert_eq!(
        (&answers[0]["object"], &answers[0]["model"]),
        (&json!("chat.completion"), &json!("mine:latest"))
    );
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
fn concurrency_does_not_change_answers() {
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
fn invalid_line_names_the_field_and_does_not_stop() {
    let hello = json!([{"role": "user", "content": "Hello"}]);
    let image = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]);
    let audio = json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "%", "format": "wav"}}]}]);
    let unknown = json!({"type": "function", "function": {"name": "other"}});
    let never = json!({"type": "json_schema", "json_schema": {"schema": false}});
    let cases = [
        (json!({"max_tokens": 1}), "messages"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": [{"content": "Hello"}]}), "messages[0].role"),
        (json!({"messages": image}), "messages[0].content[0].image_url.url"),
        (json!({"messages": audio}), "messages[0].content[0].input_audio.data"),
        (json!({"messages": hello, "model": "gpt-4o"}), "model"),
        (json!({"input": "Hello", "model": "gpt-4o"}), "model"),
        (json!({"messages": hello, "temperature": -1}), "temperature"),
        (json!({"messages": hello, "temperature": "warm"}), "temperature"),
        (json!({"messages": hello, "max_tokens": 0}), "max_tokens"),
        (json!({"messages": hello, "n": 0}), "n"),
        (json!({"messages": hello, "stream": true}), "stream"),
        (json!({"messages": hello, "stop": [""]}), "stop"),
        (json!({"messages": hello, "logit_bias": {"x": 1}}), "logit_bias"),
        (json!({"messages": hello, "logit_bias": {"999999999": 1}}), "logit_bias"),
        (json!({"messages": hello, "tools": [{}]}), "tools[0].name"),
        (json!({"messages": hello, "tools": weather(), "tool_choice": unknown}), "tool_choice"),
        (json!({"messages": hello, "response_format": never}), "response_format"),
    ];
    let mut lines: String = cases.iter().map(|(line, _)| format!("{line}\n")).collect();
    lines += &json!({"messages": hello, "max_tokens": 1}).to_string();
    let answers = failing("batch", &[], lines.as_bytes(), "18 of 19 requests failed");
    assert_eq!(answers.len(), cases.len() + 1);
    for (answer, (line, param)) in answers.iter().zip(&cases) {
        let kind = if *param == "model" { "not_found_error" } else { "invalid_request_error" };
        assert_eq!(answer["error"]["type"], kind, "{line}: {answer}");
        assert_eq!(&answer["error"]["param"], param, "{line}: {answer}");
    }
    assert!(answers[cases.len()]["choices"].is_array());
}

#[test]
fn every_line_has_one_answer() {
    let request = json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}).to_string();
    let too_long = "x".repeat((16 << 20) + 1);
    let deep = "[".repeat(100_000);
    let lines: [&[u8]; 9] = [
        b"nonsense",
        request.as_bytes(),
        b"",
        b"\xFF\xFE",
        b"{\"messages\": \"\xFF\"}",
        too_long.as_bytes(),
        deep.as_bytes(),
        b"[1]",
        request.as_bytes(),
    ];
    let answers = failing("batch", &[], &lines.join(&b"\n"[..]), "7 of 9 requests failed");
    assert_eq!(answers.len(), lines.len());
    for (index, answer) in answers.iter().enumerate() {
        if [1, 8].contains(&index) {
            assert!(answer["choices"].is_array(), "{answer}");
            continue;
        }
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.starts_with(&format!("line {}", index + 1)), "{message}");
        assert!(!message.contains("at line 1"), "{message}");
    }
}

#[test]
fn batch_lines_have_batch_answers() {
    let hello = json!([{"role": "user", "content": "Hello"}]);
    let line = |id: &str, body: Value| {
        json!({"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body}).to_string()
    };
    let lines = [
        line("first", json!({"model": "pocket", "messages": hello, "max_tokens": 1})),
        line("second", json!({"messages": hello, "n": -1})),
        "{".to_owned(),
        line("fourth", json!({"model": "gpt-4o", "messages": hello})),
    ];
    let answers = failing("batch", &[], lines.join("\n").as_bytes(), "3 of 4 requests failed");
    let [first, second, third, fourth] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!((&first["custom_id"], &first["error"]), (&json!("first"), &Value::Null));
    assert_eq!(first["response"]["status_code"], 200);
    assert_eq!(first["response"]["body"]["object"], "chat.completion");
    assert_eq!((&second["custom_id"], &second["response"]["status_code"]), (&json!("second"), &json!(400)));
    assert_eq!(second["response"]["body"]["error"]["param"], "n");
    assert_eq!((&third["custom_id"], &third["response"]), (&Value::Null, &Value::Null));
    assert!(
        third["error"]["message"].as_str().is_some_and(|message| message.starts_with("line 3")),
        "{third}"
    );
    let error = &fourth["response"]["body"]["error"];
    assert_eq!(
        (&fourth["response"]["status_code"], &error["code"]),
        (&json!(404), &json!("model_not_found"))
    );
    assert_eq!(error["message"], "there is no model `gpt-4o`; the names of models are `pocket`");
}

#[test]
fn broken_first_line_and_duplicate_custom_id_have_batch_answers() {
    let body = json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1});
    let line = json!({"custom_id": "a", "body": body}).to_string();
    let lines = ["\u{feff}{\"custom_id\": ", &line, "", &line, &line.replace("\"a\"", "\"b\"")].join("\n");
    let answers = failing("batch", &[], lines.as_bytes(), "3 of 5 requests failed");
    let of = |pointer: &str| -> Vec<Value> {
        answers.iter().map(|answer| answer.pointer(pointer).cloned().unwrap_or_default()).collect()
    };
    assert!(answers.iter().all(|answer| answer.get("custom_id").is_some() && answer["id"].is_string()));
    assert_eq!(of("/custom_id"), [json!(null), json!("a"), json!(null), json!("a"), json!("b")]);
    assert_eq!(of("/response/status_code"), [json!(null), json!(200), json!(null), json!(null), json!(200)]);
    assert_eq!(answers[3]["error"]["code"], "duplicate_custom_id");
}

/// Ctrl-C is the signal SIGINT.
#[cfg(unix)]
#[test]
fn interrupt_writes_finished_answers() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::Command;
    // The bias forbids the end tokens: the second request runs until the context is full.
    let ask = |id: &str, more: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "Hello"}]});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"custom_id": id, "body": body}).to_string() + "\n"
    };
    let short = json!({"max_tokens": 1});
    let endless = json!({"logit_bias": {"2037": -100, "2039": -100}});
    let mut child = json_lines::spawn("batch", &["--parallel", "2"]);
    let mut stdin = child.stdin.take().expect("is piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("is piped"));
    let lines = [ask("a", short.clone()), ask("b", endless), ask("c", short)].concat();
    stdin.write_all(lines.as_bytes()).expect("the program reads");
    let mut out = String::new();
    stdout.read_line(&mut out).expect("the first answer");
    // The third answer is ready, or is finished soon; the second takes 2000 tokens.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    stdout.read_to_string(&mut out).expect("output is text");
    drop(stdin);
    let end = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8_lossy(&end.stderr);
    assert_eq!(end.status.code(), Some(130), "{stderr}");
    let answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ids: Vec<_> = answers.iter().map(|answer| answer["custom_id"].as_str().expect("an id")).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let code = |answer: &Value| answer.pointer("/response/body/error/code").cloned();
    assert_eq!(code(&answers[1]), Some(json!("cancelled")), "{out}");
    let cancelled = answers.iter().filter(|answer| code(answer).is_some()).count();
    assert!(
        stderr.contains(&format!("interrupted: {} of 3 requests are answered", 3 - cancelled)),
        "{stderr}"
    );
    assert!(stderr.contains("lines after line 3, if there are any, were not read"), "{stderr}");
}

#[test]
fn model_name_is_optional_and_numbers_are_bounded() {
    let folder = program::pocket_folder();
    let line = json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}).to_string();
    let run = program::lm(&["batch", "-m", program::shown(folder.path())], &line);
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 1), "{}", run.err);
    let run = program::lm(&["batch", "--parallel", "0"], &line);
    assert_eq!(
        (run.code, run.err.contains("expected an integer in 1..=1024")),
        (Some(2), true),
        "{}",
        run.err
    );
}

#[test]
fn choices_and_log_probabilities_are_answered() {
    let line = json!({
        "messages": [{"role": "user", "content": "Tell me a story."}],
        "n": 3, "temperature": 2, "top_k": 0, "seed": 5, "max_tokens": 8, "logprobs": true, "top_logprobs": 2,
    });
    let answers = batch(&[], &line.to_string());
    let choices = answers[0]["choices"].as_array().expect("choices");
    assert_eq!(choices.iter().map(|choice| &choice["index"]).collect::<Vec<_>>(), [0, 1, 2]);
    assert_ne!(choices[0]["message"], choices[1]["message"], "each choice has a seed of its own");
    for choice in choices {
        let tokens = choice["logprobs"]["content"].as_array().expect("tokens");
        assert!((1..=8).contains(&tokens.len()), "{choice}");
        let text: String = tokens.iter().map(|token| token["token"].as_str().expect("text")).collect();
        assert_eq!(text.trim(), choice["message"]["content"].as_str().expect("content").trim());
        for token in tokens {
            let top = token["top_logprobs"].as_array().expect("a list");
            let logprob = |token: &Value| token["logprob"].as_f64().expect("a number");
            assert_eq!(top.len(), 2, "{token}");
            assert!(logprob(token) <= logprob(&top[0]) && logprob(&top[0]) <= 0.0, "{token}");
        }
    }
}

#[test]
fn adapter_applies_to_chats_and_embeddings() {
    let testdata = |name: &str| format!("{}/../../testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        let from = format!("{}/{name}", testdata("models/llama-tiny"));
        std::fs::copy(from, folder.path().join(name)).expect("the file can be copied");
    }
    let template = "{% for m in messages %}{{ m.content }}{% endfor %}";
    std::fs::write(folder.path().join("chat_template.jinja"), template).expect("the file can be written");
    let message = json!({"role": "user", "content": "Hello"});
    let chat = json!({"messages": [message], "max_tokens": 4, "temperature": 0, "logprobs": true});
    let lines = format!("{chat}\n{}\n", json!({"input": "Hello"}));
    let model = program::shown(folder.path());
    let without = batch(&[model], &lines);
    let with = batch(&[model, "--lora", &testdata("adapters/llama-tiny-all")], &lines);
    for (index, place) in ["/choices/0/logprobs/content/0/logprob", "/data/0/embedding"].iter().enumerate() {
        let numbers = [&without, &with].map(|answers| answers[index].pointer(place).expect("an answer"));
        assert_ne!(numbers[0], numbers[1], "{place}");
    }
}
