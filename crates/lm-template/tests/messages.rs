//! JSON of messages: reading, writing back, and refusals.

use lm_template::{
    Content, Error, Media, MediaSource, Message, Part, Preface, Role, ToolCall, ToolSpec, Value,
    messages_from_json,
};
use proptest::prelude::*;
use serde_json::json;

/// Messages that round-trip unchanged, key order included; most are from the documentation this stack
/// follows.
fn well_formed() -> Vec<Value> {
    vec![
        json!({"role": "user", "content": "Hey, what's the temperature in Paris right now?"}),
        json!({"content": "the role comes second", "role": "system"}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "Hello World!"}]}),
        json!({"role": "user", "content": [
            {"type": "text", "text": "Describe the image in details: "},
            {"type": "image", "path": "/path/to/image.jpg"},
            {"type": "image", "blob": "iVBORw0KGgo="},
            {"path": "/path/to/audio.wav", "type": "audio", "sample_rate": 16000},
            {"type": "audio", "blob": "UklGRg=="},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            {"type": "text", "text": "cached", "cache_control": {"type": "ephemeral"}},
        ]}),
        json!({"role": "assistant", "tool_calls": [{"type": "function", "function": {
            "name": "get_current_temperature", "arguments": {"location": "Paris, France", "unit": "celsius"},
        }}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_abc123", "type": "function", "index": 0,
             "function": {"arguments": {"n": 12345678901234567890_u64, "x": 1.0, "i": -3}, "name": "f", "strict": true}},
            {"type": "function", "id": null, "function": {"name": "g", "arguments": {}}},
        ]}),
        json!({"role": "assistant", "content": "", "tool_calls": [], "refusal": null}),
        json!({"role": "tool", "content": "22"}),
        json!({"role": "tool", "tool_call_id": "call_0", "name": "f", "content": {"temperature": 25, "unit": "C"}}),
        json!({"role": "tool", "content": [1, "two", null]}),
        json!({"role": "tool", "content": [{"type": "tool_response", "name": "f", "response": {"a": 1}}]}),
        json!({"role": "tool", "content": {"type": "object of a tool"}}),
        json!({"role": "assistant", "reasoning_content": "Because.", "content": "Yes.", "mood": {"b": 1, "a": 2}}),
        json!({"role": "developer", "content": "Be terse."}),
        json!({"role": "ipython", "content": "any other role"}),
        json!({"role": "user", "name": null, "content": null}),
    ]
}

#[test]
fn well_formed_messages_round_trip() {
    for value in well_formed() {
        let message = Message::from_json(value.clone()).unwrap();
        assert_eq!(message.to_json().to_string(), value.to_string());
        let through_serde: Message = serde_json::from_str(&value.to_string()).unwrap();
        assert_eq!(through_serde, message);
    }
}

/// Spellings that are read and normalized.
#[test]
fn other_spellings_are_normalized() {
    let call = json!({"type": "function", "function": {"name": "f", "arguments": {"a": 1}}});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let cases = [
        (json!({"role": "model", "content": "Hi"}), json!({"role": "assistant", "content": "Hi"})),
        (
            json!({"role": "user", "content": {"type": "text", "text": "a"}}),
            json!({"role": "user", "content": [{"type": "text", "text": "a"}]}),
        ),
        (
            json!({"role": "system", "content": ["You are a model that can do function calling."]}),
            json!({"role": "system", "content": [
                {"type": "text", "text": "You are a model that can do function calling."}]}),
        ),
        (
            json!({"role": "tool_call", "content": "[{\"name\":\"f\",\"arguments\":{\"a\":1}}]"}),
            calls.clone(),
        ),
        (json!({"role": "tool_call", "content": [{"name": "f", "arguments": "{\"a\": 1}"}]}), calls.clone()),
        (json!({"role": "tool_call", "content": {"name": "f", "args": {"a": 1}}}), calls),
    ];
    for (value, expected) in cases {
        assert_eq!(Message::from_json(value).unwrap().to_json().to_string(), expected.to_string());
    }
}

/// The reply of the OpenAI flow states its call twice, with the name in quotes and the arguments as text.
#[test]
fn openai_tool_call_role_is_read() {
    let message = Message::from_json(json!({
        "content": "[{\"name\":\"get_current_weather\",\"arguments\":{\"location\": \"Auckland, NZ\", \"format\": \"celsius\"}}]",
        "tool_calls": [{"id": "call_abc123", "type": "function", "function": {
            "name": "\"get_current_weather\"",
            "arguments": "{\"format\":\"celsius\",\"location\":\"Auckland, NZ\"}",
        }}],
        "role": "tool_call",
    }))
    .unwrap();
    assert_eq!((&message.role, &message.content), (&Role::Assistant, &Content::None));
    let arguments = json!({"format": "celsius", "location": "Auckland, NZ"}).as_object().unwrap().clone();
    assert_eq!(message.tool_calls.len(), 1);
    let ToolCall { id, name, arguments: got, .. } = &message.tool_calls[0];
    assert_eq!((id.as_deref(), name.as_str(), got), (Some("call_abc123"), "get_current_weather", &arguments));
}

#[test]
fn media_name_their_source() {
    let parts = [
        Part::Image(Media::from_path("a.png")),
        Part::Audio(Media::from_bytes(*b"RIFF")),
        Part::Text("?".to_owned()),
    ];
    let message = Message::from_json(Message::user(parts.to_vec()).to_json()).unwrap();
    assert_eq!(message.content.parts(), parts);
    let Part::Audio(media) = &message.content.parts()[1] else { panic!("{message:?}") };
    assert_eq!(media.source, MediaSource::Blob(b"RIFF".to_vec()));
}

#[test]
fn invalid_messages_are_rejected_with_place() {
    let cases = [
        (json!({"content": "a"}), "message: missing key `role`"),
        (json!({"role": 1}), "message.role: expected a string, got a number"),
        (
            json!({"role": "user", "content": 1}),
            "message.content: expected text, a part, or a list of parts, got a number",
        ),
        (
            json!({"role": "user", "content": [1]}),
            "message.content[0]: expected a part (an object) or a string, got a number",
        ),
        (json!({"role": "user", "content": [{"type": "text"}]}), "message.content[0]: missing key `text`"),
        (
            json!({"role": "user", "content": [{"type": "image"}]}),
            "message.content[0]: a part of type `image` has exactly one of `path` and `blob`",
        ),
        (
            json!({"role": "user", "content": [{"type": "audio", "blob": "?"}]}),
            "message.content[0].blob: the blob is not base64: Invalid symbol 63, offset 0.",
        ),
        (
            json!({"role": "assistant", "tool_calls": {}}),
            "message.tool_calls: expected an array of calls, got an object",
        ),
        (
            json!({"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]}),
            "message.tool_calls[0].function: missing key `name`",
        ),
        (
            json!({"role": "assistant", "tool_calls": [{"name": "f", "arguments": [1]}]}),
            "message.tool_calls[0].arguments: expected an object, got an array",
        ),
        (json!(null), "message: expected an object, got null"),
    ];
    for (value, expected) in cases {
        assert_eq!(Message::from_json(value).unwrap_err().to_string(), expected);
    }
}

#[test]
fn message_argument_is_text_or_one_or_more_messages() {
    let one = json!({"role": "user", "content": "a"});
    for (value, count) in [(json!("a"), 1), (one.clone(), 1), (json!([one, "b"]), 2), (json!([]), 0)] {
        let messages = messages_from_json(value).unwrap();
        assert_eq!(messages.len(), count);
        assert!(messages.iter().all(|message| message.role == Role::User));
    }
    let error = messages_from_json(json!([{"role": "user"}, {"role": 2}])).unwrap_err();
    assert_eq!(error.to_string(), "messages[1].role: expected a string, got a number");
    assert!(matches!(messages_from_json(json!(1)), Err(Error::WrongType { .. })));
}

#[test]
fn declarations_keep_their_form() {
    let bare = json!({"name": "get_weather", "description": "Returns the weather for a given location.", "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "The location to get the weather for."}},
        "required": ["location"],
    }});
    let wrapped = json!({"type": "function", "function": bare});
    for value in [bare, wrapped.clone()] {
        let spec = ToolSpec::from_json(value.clone()).unwrap();
        assert_eq!(
            (spec.name(), spec.description()),
            ("get_weather", "Returns the weather for a given location.")
        );
        assert_eq!(spec.to_json().to_string(), value.to_string());
        assert_eq!(spec.to_function_json().to_string(), wrapped.to_string());
    }
    assert!(ToolSpec::from_json(json!({"description": "nameless"})).is_err());
}

#[test]
fn preface_is_read_whole() {
    let preface: Preface = serde_json::from_value(json!({
        "messages": {"role": "system", "content": ["You are a model that can do function calling."]},
        "tools": [{"name": "get_weather"}],
        "extra_context": {"enable_thinking": false},
    }))
    .unwrap();
    assert_eq!(preface.messages[0].content.text(), "You are a model that can do function calling.");
    assert_eq!((preface.tools.len(), &preface.extra_context["enable_thinking"]), (1, &json!(false)));
    let empty: Preface = serde_json::from_value(json!({"messages": null, "tools": null})).unwrap();
    assert_eq!(empty, Preface::default());
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "[a-zA-Zäß🙂<|>\"\\\\\n ]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{1,6}", inner), 0..4).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

/// A message with arbitrary text, result, arguments and unknown keys, its keys in any order.
fn message() -> impl Strategy<Value = Value> {
    let arguments = prop::collection::vec(("[a-z]{1,4}", json_value()), 0..3);
    let call = ("[a-z_]{1,6}", arguments, any::<bool>()).prop_map(|(name, arguments, with_id)| {
        let arguments: Value = arguments.into_iter().collect();
        let mut call = json!({"type": "function", "function": {"name": name, "arguments": arguments}});
        if with_id {
            call["id"] = json!("call_1");
        }
        call
    });
    let unknown = prop::collection::vec(("x_[a-z]{1,4}", json_value()), 0..3);
    let assistant = (prop::collection::vec(call, 1..3), ".{0,8}").prop_map(|(calls, text)| {
        vec![
            ("role".to_owned(), json!("assistant")),
            ("content".to_owned(), json!(text)),
            ("tool_calls".to_owned(), json!(calls)),
        ]
    });
    let tool = json_value().prop_map(|result| {
        vec![
            ("role".to_owned(), json!("tool")),
            ("tool_call_id".to_owned(), json!("call_1")),
            ("content".to_owned(), result),
        ]
    });
    let fields = (prop_oneof![assistant, tool], unknown).prop_map(|(mut fields, unknown)| {
        fields.extend(unknown);
        fields
    });
    fields.prop_shuffle().prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    #[test]
    fn any_well_formed_message_round_trips(value in message()) {
        let read = Message::from_json(value.clone()).unwrap();
        prop_assert_eq!(read.to_json().to_string(), value.to_string());
    }
}

#[test]
fn empty_list_is_a_tool_result() {
    let message = Message::from_json(json!({"role": "tool", "content": []})).unwrap();
    assert_eq!((&message.content, message.content.text().as_str()), (&Content::Json(json!([])), "[]"));
}

/// An image would otherwise open the file that a tool's result names.
#[test]
fn tool_result_is_data_for_any_keys() {
    for result in [
        json!({"type": "image", "path": "/etc/passwd"}),
        json!({"type": "text", "title": "Notes"}),
        json!([{"type": "image", "path": "/etc/passwd"}]),
        json!([{"type": "audio", "blob": "UklGRg==", "path": "/etc/passwd"}]),
        json!([{"type": "text", "text": "a", "page": 1}]),
        json!([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]),
    ] {
        let message = Message::from_json(json!({"role": "tool", "content": result})).unwrap();
        assert_eq!(message.content, Content::Json(result));
    }
    for parts in [
        json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        json!([{"type": "tool_response", "name": "f", "response": 1}]),
        json!([{"type": "text", "text": "a"}, {"type": "audio", "blob": "UklGRg=="}]),
    ] {
        let message = Message::from_json(json!({"role": "tool", "content": parts})).unwrap();
        assert!(matches!(message.content, Content::Parts(_)), "{parts}");
    }
}

#[test]
fn messages_with_other_keys_differ() {
    let plain = json!({"role": "user", "content": "Hi"});
    let more = json!({"role": "user", "content": "Hi", "mood": "curious"});
    let [plain, more] = [plain, more].map(|value| Message::from_json(value).unwrap());
    assert_ne!(plain, more);
    assert_ne!(more, plain);
}

#[test]
fn reasoning_parts_of_the_assistant_are_its_reasoning() {
    let read = |content: Value| {
        Message::from_json(json!({"role": "assistant", "content": content})).expect("a message")
    };
    for part in [
        json!({"type": "thinking", "thinking": "Eight, or nine."}),
        json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Eight, or nine."}]}),
        json!({"type": "reasoning", "summary": [{"text": "Eight, "}, {"text": "or nine."}]}),
    ] {
        let message = read(json!([part, "Nine."]));
        assert_eq!(
            (message.reasoning_content.as_deref(), message.content.text().as_str()),
            (Some("Eight, or nine."), "Nine.")
        );
        assert_eq!(read(json!([part])).content, Content::None);
        let user = Message::from_json(json!({"role": "user", "content": [part]})).expect("a message");
        assert_eq!(user.reasoning_content, None);
    }
}

#[test]
fn arguments_that_are_no_object_are_kept_as_text() {
    for text in [r#"{"to": "An"#, "to=Anna", "[1, 2]", "null", r#"{"to": "Anna"}}"#] {
        let call = ToolCall::from_json(json!({"id": "1", "function": {"name": "send", "arguments": text}}))
            .expect("a call");
        assert_eq!((call.arguments.len(), call.arguments_text()), (0, Some(text)));
        assert_eq!(call.to_json()["function"]["arguments"], text);
        assert_eq!(ToolCall::from_json(call.to_json()).expect("a call"), call);
    }
    for none in [json!(null), json!(""), json!([]), json!({}), json!("{}")] {
        let call = ToolCall::from_json(json!({"name": "send", "arguments": none})).expect("a call");
        assert_eq!((call.arguments.len(), call.arguments_text()), (0, None), "{none}");
    }
}

#[test]
fn results_are_named_by_their_calls() {
    let call = |id: Option<&str>, name: &str| json!({"id": id, "function": {"name": name, "arguments": {}}});
    let messages = json!([
        {"role": "assistant", "tool_calls": [call(Some("a"), "alpha"), call(Some("b"), "beta")]},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": {"name": "alpha", "response": {"n": 1}}},
        {"role": "assistant", "tool_calls": [call(None, "gamma"), call(None, "delta")]},
        {"role": "tool", "content": "3"},
        {"role": "tool", "name": "own", "content": [{"type": "tool_response", "name": "delta", "response": "4"}]},
        {"role": "tool", "content": [{"type": "tool_response", "name": "x", "response": 5}, {"type": "tool_response", "name": "y", "response": [6]}]},
        {"role": "tool", "content": {"name": "n", "response": 1, "further": 2}},
    ]);
    let messages = lm_template::messages_from_json(messages).expect("messages");
    let named = lm_template::results_with_names(&messages);
    let results = named.iter().flatten().filter(|message| message.role == Role::Tool);
    let results: Vec<(Option<&str>, String)> =
        results.map(|message| (message.name.as_deref(), message.content.text())).collect();
    let expected = [
        (Some("beta"), "2"),
        (Some("alpha"), r#"{"n":1}"#),
        (Some("gamma"), "3"),
        (Some("delta"), "4"),
        (Some("x"), "5"),
        (Some("y"), "[6]"),
        (None, r#"{"name":"n","response":1,"further":2}"#),
    ];
    assert_eq!(results, expected.map(|(name, text)| (name, text.to_owned())));
}
