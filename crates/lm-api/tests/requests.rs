//! Request bodies: fields, their errors, and bodies of any form.

use lm_api::{
    ApiError, BatchReader, ChatRequest, ConversationConfig, Limits, ResponseFormat, ToolChoice, Value,
};
use lm_conversation::SamplerParams;
use lm_template::{MediaSource, Part};
use proptest::prelude::*;
use serde_json::json;

/// A valid body with these fields added.
fn body(fields: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Hello"}]});
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    body
}

fn read(fields: Value) -> ChatRequest {
    ChatRequest::from_json(body(fields.clone())).unwrap_or_else(|error| panic!("{fields}: {error}"))
}

fn error(fields: Value) -> ApiError {
    ChatRequest::from_json(body(fields.clone())).expect_err(&fields.to_string())
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

#[test]
fn invalid_field_is_named() {
    let message = |message: Value| json!({"messages": [{"role": "user", "content": "Hello"}, message]});
    let part =
        |part: Value| message(json!({"role": "user", "content": [{"type": "text", "text": "x"}, part]}));
    let url = |url: &str| part(json!({"type": "image_url", "image_url": {"url": url}}));
    let audio = |audio: Value| part(json!({"type": "input_audio", "input_audio": audio}));
    for (fields, param) in [
        (json!({"messages": null}), "messages"),
        (json!({"messages": "Hello"}), "messages"),
        (json!({"messages": []}), "messages"),
        (message(json!("Hello")), "messages[1]"),
        (message(json!({"content": "Hello"})), "messages[1].role"),
        (message(json!({"role": "usr", "content": "Hello"})), "messages[1].role"),
        (message(json!({"role": "user", "content": 7})), "messages[1].content"),
        (part(json!({"type": "image_url"})), "messages[1].content[1].image_url"),
        (part(json!({"type": "image_url", "image_url": {}})), "messages[1].content[1].image_url.url"),
        (url("data:"), "messages[1].content[1].image_url.url"),
        (url("data:image/png,raw"), "messages[1].content[1].image_url.url"),
        (url("http://127.0.0.1/a.png"), "messages[1].content[1].image_url.url"),
        (url("file:///etc/passwd"), "messages[1].content[1].image_url.url"),
        (url("/etc/passwd"), "messages[1].content[1].image_url.url"),
        (url("data:image/png;base64,%%%"), "messages[1].content[1]"),
        (part(json!({"type": "image", "path": "/etc/passwd"})), "messages[1].content[1].blob"),
        (part(json!({"type": "audio", "path": "/etc/passwd"})), "messages[1].content[1].blob"),
        (audio(json!({})), "messages[1].content[1].input_audio.data"),
        (audio(json!("UklG")), "messages[1].content[1].input_audio.data"),
        (audio(json!({"data": "%", "format": "wav"})), "messages[1].content[1].input_audio.data"),
        (audio(json!({"data": 7, "format": "wav"})), "messages[1].content[1].input_audio.data"),
        (audio(json!({"data": "UklG", "format": "aac"})), "messages[1].content[1].input_audio.format"),
        (audio(json!({"data": "UklG", "format": 7})), "messages[1].content[1].input_audio.format"),
        (part(json!({"type": "file", "file": {}})), "messages[1].content[1].type"),
        (part(json!({"type": "text"})), "messages[1].content[1].text"),
        (part(json!({"text": "x"})), "messages[1].content[1].type"),
        (part(json!(7)), "messages[1].content[1]"),
        (
            message(json!({"role": "tool", "content": [{"type": "image_url", "image_url": {}}]})),
            "messages[1].content[0].image_url.url",
        ),
        (
            message(
                json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 7}}]}),
            ),
            "messages[1].tool_calls[0].function.arguments",
        ),
        (json!({"model": 7}), "model"),
        (json!({"tools": {}}), "tools"),
        (json!({"tools": [tool("a"), {}]}), "tools[1].name"),
        (json!({"tools": [{"type": "custom", "function": {"name": "a"}}]}), "tools[0].type"),
        (json!({"tools": [{"type": "custom"}]}), "tools[0].name"),
        (json!({"tools": [{"type": "web_search"}], "tool_choice": "required"}), "tool_choice"),
        (json!({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}), "tool_choice"),
        (json!({"max_tokens": -2}), "max_tokens"),
        (json!({"max_completion_tokens": 0}), "max_completion_tokens"),
        (json!({"n_predict": -7}), "n_predict"),
        (json!({"top_k": -2}), "top_k"),
        (json!({"tools": [{"type": "function", "function": {}}]}), "tools[0].function.name"),
        (json!({"tools": [tool("a"), tool("a")]}), "tools[1].function.name"),
        (json!({"tools": [tool("")]}), "tools[0].function.name"),
        (json!({"tools": [{"function": {"name": "a", "parameters": []}}]}), "tools[0].function.parameters"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"tools": [tool("a")], "tool_choice": "a"}), "tool_choice"),
        (json!({"tools": [tool("a")], "tool_choice": {"function": {"name": "b"}}}), "tool_choice"),
        (
            json!({"tools": [tool("a")], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [tool("b")]}}}),
            "tool_choice.allowed_tools",
        ),
        (json!({"response_format": "json"}), "response_format"),
        (json!({"response_format": {"type": "xml"}}), "response_format"),
        (json!({"response_format": {"type": "json_schema"}}), "response_format.json_schema"),
        (json!({"temperature": -1}), "temperature"),
        (json!({"temperature": 1e300}), "temperature"),
        (json!({"temperature": "warm"}), "temperature"),
        (json!({"top_p": -0.5}), "top_p"),
        (json!({"top_p": 1.5}), "top_p"),
        (json!({"min_p": 2}), "min_p"),
        (json!({"min_p": -0.1}), "min_p"),
        (json!({"typical_p": 1.1}), "typical_p"),
        (json!({"typical_p": -1}), "typical_p"),
        (json!({"top_n_sigma": "wide"}), "top_n_sigma"),
        (json!({"xtc_probability": 1.5}), "xtc_probability"),
        (json!({"dry_base": 0.5}), "dry_base"),
        (json!({"dry_allowed_length": 0}), "dry_allowed_length"),
        (json!({"dry_sequence_breakers": [""]}), "dry_sequence_breakers"),
        (json!({"presence_penalty": 1e39}), "presence_penalty"),
        (json!({"seed": 1.5}), "seed"),
        (json!({"logit_bias": {"x": 1}}), "logit_bias"),
        (json!({"logit_bias": {"1": "much"}}), "logit_bias"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"max_completion_tokens": -3}), "max_completion_tokens"),
        (json!({"n": 0}), "n"),
        (json!({"n": 1_000_000_000}), "n"),
        (json!({"n": "two"}), "n"),
        (json!({"logprobs": 5}), "logprobs"),
        (json!({"top_logprobs": 5}), "top_logprobs"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs"),
        (json!({"stop": ""}), "stop"),
        (json!({"stop": ["a", 1]}), "stop"),
        (json!({"stop": vec!["a"; 17]}), "stop"),
        (json!({"stop": "a".repeat(1_025)}), "stop"),
        (json!({"stream_options": {"include_usage": true}}), "stream_options"),
        (json!({"reasoning_effort": "enormous"}), "reasoning_effort"),
        (json!({"chat_template_kwargs": []}), "chat_template_kwargs"),
        (json!({"chat_template_kwargs": {"messages": []}}), "chat_template_kwargs.messages"),
        (json!({"chat_template_kwargs": {"tools": null}}), "chat_template_kwargs.tools"),
        (json!({"format": "telex"}), "format"),
        (json!({"functions": []}), "functions"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"grammar": "root ::= \"a"}), "grammar"),
        (json!({"grammar": "root ::= other"}), "grammar"),
        (json!({"grammar": ["root"]}), "grammar"),
        (json!({"guided_json": 5}), "guided_json"),
        (json!({"guided_choice": []}), "guided_choice"),
        (json!({"guided_regex": "a", "guided_choice": ["a"]}), "guided_choice"),
        (json!({"response_format": {"type": "json_object"}, "guided_regex": "a"}), "guided_regex"),
        (json!({"structured_outputs": {"structural_tag": "a"}}), "structured_outputs.structural_tag"),
        (json!({"ignore_eos": "yes"}), "ignore_eos"),
    ] {
        let error = error(fields.clone());
        assert_eq!((error.status, error.kind), (400, "invalid_request_error"), "{fields}");
        assert_eq!(error.param.as_deref(), Some(param), "{fields}: {error}");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn vllm_formats_are_read() {
    let schema = json!({"type": "integer"});
    for (kind, value, expected) in [
        ("json", schema.clone(), ResponseFormat::JsonSchema(schema.clone())),
        ("json", schema.to_string().into(), ResponseFormat::JsonSchema(schema)),
        ("regex", json!("a+"), ResponseFormat::Regex("a+".to_owned())),
        ("choice", json!(["a", "b"]), ResponseFormat::Choice(vec!["a".to_owned(), "b".to_owned()])),
        ("grammar", json!("start: \"a\""), ResponseFormat::Lark("start: \"a\"".to_owned())),
    ] {
        for fields in [
            json!({format!("guided_{kind}"): value}),
            json!({"structured_outputs": {kind: value, "other": null}}),
        ] {
            assert_eq!(read(fields.clone()).turn.response_format, Some(expected.clone()), "{fields}");
        }
    }
    let object = read(json!({"structured_outputs": {"json_object": true, "json": null}}));
    assert_eq!(object.turn.response_format, Some(ResponseFormat::JsonObject));
}

#[test]
fn non_object_body_error_names_no_field() {
    for body in [json!(null), json!([]), json!("messages"), json!(7)] {
        let error = ChatRequest::from_json(body).expect_err("no object");
        assert_eq!((error.status, error.param), (400, None));
    }
}

#[test]
fn extensions_reach_the_sampler() {
    let mut base = ConversationConfig::default();
    base.session.sampler.dry_penalty_last_n = Some(9);
    let fields = json!({
        "top_k": 3, "min_p": 0.25, "typical_p": 0.5, "top_n_sigma": 2, "xtc_probability": 0.75, "xtc_threshold": 0.125,
        "dry_multiplier": 1.5, "dry_base": 2, "dry_allowed_length": 4, "dry_sequence_breakers": ["\n"],
        "repetition_penalty": 1.25, "frequency_penalty": 0.5, "presence_penalty": -0.5,
    });
    let expected = SamplerParams {
        top_k: 3,
        min_p: 0.25,
        typical_p: 0.5,
        top_n_sigma: 2.0,
        xtc_probability: 0.75,
        xtc_threshold: 0.125,
        dry_multiplier: 1.5,
        dry_base: 2.0,
        dry_allowed_length: 4,
        dry_penalty_last_n: Some(9),
        dry_sequence_breakers: vec!["\n".to_owned()],
        repetition_penalty: 1.25,
        frequency_penalty: 0.5,
        presence_penalty: -0.5,
        ..SamplerParams::default()
    };
    assert_eq!(read(fields).config(&base, 0).session.sampler, expected);
    let last_n = |count| {
        read(json!({"dry_penalty_last_n": count})).config(&base, 0).session.sampler.dry_penalty_last_n
    };
    assert_eq!([last_n(-1), last_n(0), last_n(5)], [None, Some(0), Some(5)]);
}

#[test]
fn absent_fields_keep_server_defaults() {
    let mut base = ConversationConfig::default();
    base.session.sampler.top_p = 0.9;
    base.session.stop = vec!["END".to_owned()];
    base.session.sampler.logit_bias = vec![(4, 1.0)];
    let request = read(json!({
        "model": "m", "temperature": 0.5, "seed": -1, "stop": "\n", "max_tokens": 9, "max_completion_tokens": 7, "n": 3,
        "logit_bias": {"5": -100}, "tools": [tool("a"), tool("b")], "tool_choice": {"type": "function", "name": "b"},
        "parallel_tool_calls": false, "response_format": {"type": "json_object"}, "logprobs": true, "top_logprobs": 0,
        "reasoning_effort": "none", "stream": true, "stream_options": {"include_usage": true}, "user": "u", "unknown": {},
        "modalities": ["text"], "function_call": null, "top_k": null,
    }));
    let session = request.config(&base, 2).session;
    let sampler = &session.sampler;
    assert_eq!(
        (sampler.temperature, sampler.top_p, sampler.seed),
        (0.5, 0.9, Some(1)),
        "the third seed from -1"
    );
    assert_eq!(sampler.logit_bias, [(4, 1.0), (5, -100.0)]);
    assert_eq!(session.max_output_tokens, Some(7));
    assert_eq!(session.stop, ["END", "\n"]);
    assert_eq!((request.choices, request.turn.logprobs), (3, Some(0)));
    assert_eq!(read(json!({"top_logprobs": 0})).turn.logprobs, None);
    assert_eq!(request.turn.tool_choice, ToolChoice::Named("b".to_owned()));
    assert_eq!(request.turn.response_format, Some(ResponseFormat::JsonObject));
    assert!(request.stream.is_some_and(|stream| stream.include_usage));
    let plain = read(json!({}));
    assert_eq!(plain.config(&base, 0).session, base.session);
    assert_eq!((plain.choices, plain.stream, plain.turn.logprobs), (1, None, None));
}

#[test]
fn allowed_tools_limit_the_declarations() {
    let allowed = json!({"mode": "required", "tools": [{"type": "function", "function": {"name": "b"}}]});
    let choice = json!({"type": "allowed_tools", "allowed_tools": allowed});
    let request = read(json!({"tools": [tool("a"), tool("b")], "tool_choice": choice}));
    let names: Vec<_> = request.preface.tools.iter().map(|tool| tool.name()).collect();
    assert_eq!((names.as_slice(), &request.turn.tool_choice), (&["b"][..], &ToolChoice::Required));
}

#[test]
fn legacy_and_foreign_history_spellings_are_read() {
    let request = read(json!({"messages": [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief.", "cache_control": {}}]},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": null, "function_call": {"name": "a", "arguments": "{\"x\": 1}"}},
        {"role": "function", "name": "a", "content": "sunny"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "reasoning": "Hm.", "refusal": null},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "a", "arguments": {}}}]},
        {"role": "tool", "content": [{"type": "text", "text": "rain"}]},
        {"role": "tool_call", "content": "[{\"name\":\"a\",\"arguments\":{}}]"},
        {"role": "tool", "content": {"degrees": 7}},
    ]}));
    let messages = &request.preface.messages;
    assert_eq!(messages[0].content.text(), "Be brief.");
    assert_eq!(messages[2].tool_calls[0].arguments["x"], 1);
    assert_eq!((messages[3].role.as_str(), messages[3].content.text().as_str()), ("tool", "sunny"));
    assert_eq!(messages[4].content.text(), "No.");
    assert_eq!(messages[4].reasoning_content.as_deref(), Some("Hm."));
    assert_eq!(messages[6].content.text(), "rain");
    assert_eq!(messages[7].tool_calls[0].name, "a");
    assert_eq!(request.last.content.text(), r#"{"degrees":7}"#);
}

#[test]
fn counts_are_bounded() {
    let limits = Limits { messages: 1, tools: 1, logit_bias: 1, ..Limits::default() };
    let hello = json!({"role": "user", "content": "Hello"});
    for (fields, param) in [
        (json!({"messages": [hello, hello]}), "messages"),
        (json!({"tools": [tool("a"), tool("b")]}), "tools"),
        (json!({"logit_bias": {"1": 1, "2": 1}}), "logit_bias"),
    ] {
        let error = ChatRequest::from_json_within(body(fields), &limits).expect_err("too many");
        assert_eq!(error.param.as_deref(), Some(param));
    }
}

#[test]
fn line_is_answered_in_its_own_format() {
    let request = json!({"messages": [{"role": "user", "content": "Hello"}]});
    let bad = json!({"messages": []});
    let line = |id: Value, url: &str, body: &Value| json!({"custom_id": id, "method": "POST", "url": url, "body": body});
    let chat = "/v1/chat/completions";
    let lines = [
        (Err("line 1: expected value".to_owned()), Some(json!(null)), None, true),
        (Ok(request.clone()), None, None, false),
        (Ok(bad.clone()), None, None, true),
        (Ok(line(json!("a"), chat, &request)), Some(json!("a")), Some(200), false),
        (Ok(line(json!("b"), chat, &bad)), Some(json!("b")), Some(400), false),
        (Ok(line(json!("c"), "/v1/completions", &request)), Some(json!("c")), None, true),
        (Ok(line(json!(7), chat, &request)), Some(json!(null)), None, true),
        (Ok(json!({"custom_id": "d"})), Some(json!("d")), None, true),
        (Err("line 9: expected value".to_owned()), Some(json!(null)), None, true),
        (Ok(request.clone()), None, None, false),
        (Err("line 11: expected value".to_owned()), None, None, true),
    ];
    let mut reader = BatchReader::default();
    for (line, custom_id, status, has_error) in lines {
        let shown = format!("{line:?}");
        let read = reader.read(line);
        let answer = read.answer.json(&read.request.map(|_| json!({"object": "chat.completion"})));
        assert_eq!(answer.get("custom_id"), custom_id.as_ref(), "{shown}");
        assert_eq!(answer.pointer("/response/status_code").and_then(Value::as_u64), status, "{shown}");
        assert_eq!(answer.get("error").is_some_and(|error| !error.is_null()), has_error, "{shown}: {answer}");
        if status == Some(400) {
            assert_eq!(answer["response"]["body"]["error"]["param"], "messages");
        }
    }
    let first = BatchReader::default().read(Err("line 1".to_owned()));
    let answer = first.answer.json(&first.request.map(|_| Value::Null));
    assert_eq!((&answer["response"], &answer["error"]["message"]), (&Value::Null, &json!("line 1")));
    assert!(
        answer["id"].is_string() && answer["error"]["type"].is_string(),
        "the fields of both forms: {answer}"
    );
    let streamed = BatchReader::default().read(Ok(body(json!({"stream": true}))));
    assert_eq!(streamed.request.expect_err("no stream").param.as_deref(), Some("stream"));
}

#[test]
fn duplicate_custom_id_is_rejected() {
    let mut reader = BatchReader::default();
    let mut read = |id: &str| {
        let read = reader.read(Ok(json!({"custom_id": id, "body": body(json!({}))})));
        read.answer.json(&read.request.map(|_| json!({})))
    };
    assert_eq!(read("a")["error"], Value::Null);
    assert_eq!(read("b")["error"], Value::Null);
    let again = read("a");
    assert_eq!((&again["custom_id"], &again["response"]), (&json!("a"), &Value::Null));
    let error = &again["error"];
    assert_eq!((&error["code"], &error["param"]), (&json!("duplicate_custom_id"), &json!("custom_id")));
}

/// Arbitrary JSON up to some depth.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
        prop::sample::select(vec!["text", "user", "tool", "function", "json_schema", "auto", "none"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let keys = vec![
            "type",
            "role",
            "content",
            "text",
            "name",
            "function",
            "tools",
            "tool_calls",
            "arguments",
            "schema",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys), inner), 0..4).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_field_value_is_read_or_named_in_the_error(
        name in prop::sample::select(vec![
            "messages", "tools", "tool_choice", "response_format", "n", "stop", "seed", "temperature", "logit_bias", "logprobs",
            "stream", "stream_options", "max_tokens", "reasoning_effort", "chat_template_kwargs", "parallel_tool_calls",
            "model", "format", "functions", "custom_id", "body",
        ]),
        value in any_json(),
    ) {
        let line = body(json!({name: value.clone()}));
        drop(BatchReader::default().read(Ok(line.clone())));
        drop(BatchReader::default().read(Ok(json!({name: value}))));
        if let Err(error) = ChatRequest::from_json(line) {
            let param = error.param.clone().unwrap_or_default();
            prop_assert!(param.starts_with(name), "{}: {}", name, error);
            prop_assert_eq!(error.status, 400);
        }
    }
}

#[test]
fn choices_increment_the_server_seed() {
    let mut base = ConversationConfig::default();
    base.session.sampler.seed = Some(5);
    let request = read(json!({"n": 3}));
    assert_eq!(
        [0, 1, 2].map(|choice| request.config(&base, choice).session.sampler.seed),
        [Some(5), Some(6), Some(7)]
    );
}

#[test]
fn images_and_audio_keep_their_bytes() {
    let blob = |part: &Part| match part {
        Part::Image(media) => ("image", media.source.clone()),
        Part::Audio(media) => ("audio", media.source.clone()),
        part => panic!("{part:?}"),
    };
    let bytes = |bytes: &[u8]| MediaSource::Blob(bytes.to_vec());
    for (part, expected) in [
        (
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}}),
            ("image", bytes(b"\x89PN")),
        ),
        (
            json!({"type": "image_url", "image_url": "DATA:image/png;charset=x;BASE64,iVBO"}),
            ("image", bytes(b"\x89PN")),
        ),
        (json!({"type": "image", "blob": "iVBO"}), ("image", bytes(b"\x89PN"))),
        (
            json!({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}),
            ("audio", bytes(b"RIF")),
        ),
        (
            json!({"type": "input_audio", "input_audio": {"data": "T2dn", "format": "ogg"}}),
            ("audio", bytes(b"Ogg")),
        ),
        (json!({"type": "input_audio", "input_audio": {"data": "ZkxhQw=="}}), ("audio", bytes(b"fLaC"))),
        (json!({"type": "audio", "blob": "UklG"}), ("audio", bytes(b"RIF"))),
    ] {
        for role in ["user", "tool"] {
            let text = json!({"type": "text", "text": "See:"});
            let message = json!({"role": role, "tool_call_id": "c", "content": [text, part]});
            let request = read(json!({"messages": [{"role": "user", "content": "Hello"}, message]}));
            let [Part::Text(text), media] = request.last.content.parts() else { panic!("{part}") };
            assert_eq!((text.as_str(), blob(media)), ("See:", expected.clone()), "{part}");
        }
    }
}

/// Over all messages: a small file can take much of the context.
#[test]
fn images_and_audio_are_counted() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}});
    let limits = Limits { media: 2, ..Limits::default() };
    let read = |counts: &[usize]| {
        let message = |&count: &usize| json!({"role": "user", "content": vec![image.clone(); count]});
        let messages: Vec<_> = counts.iter().map(message).collect();
        ChatRequest::from_json_within(body(json!({"messages": messages})), &limits)
    };
    assert!(read(&[1, 1]).is_ok());
    let error = read(&[1, 2]).expect_err("too many");
    assert_eq!((error.status, error.param.as_deref()), (400, Some("messages")), "{error}");
    assert!(error.to_string().contains("3 images and audio, at most 2"), "{error}");
}

#[test]
fn window_of_penalties_reaches_the_sampler() {
    let mut base = ConversationConfig::default();
    base.session.sampler.penalty_window = Some(9);
    let window = |fields| read(fields).config(&base, 0).session.sampler.penalty_window;
    let of = |count: i64| window(json!({"repeat_last_n": count}));
    assert_eq!([window(json!({})), of(-1), of(0), of(5)], [Some(9), None, Some(0), Some(5)]);
}
