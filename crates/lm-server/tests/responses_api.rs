//! `/v1/responses`: objects, streams, and responses that continue others.

use crate::support::{Request, Running};
use lm_server::ServerConfig;
use serde_json::{Value, json};

fn server<const N: usize>(replies: [&'static str; N]) -> Running {
    Running::scripted(replies, ServerConfig::default())
}

fn respond(server: &Running, body: &Value) -> Value {
    let response = server.post("/v1/responses", body);
    assert_eq!(response.status, 200, "{}", response.body);
    response.json()
}

/// Events of a stream: their names and data.
fn events(server: &Running, mut body: Value) -> Vec<(String, Value)> {
    body["stream"] = true.into();
    let response = server.post("/v1/responses", &body);
    let lines = response.body.lines();
    let names = lines.clone().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned);
    let data = lines.filter_map(|line| line.strip_prefix("data: "));
    let data = data.map(|data| serde_json::from_str::<Value>(data).expect("JSON"));
    names.zip(data).collect()
}

#[test]
fn response_has_items_usage_and_fields_of_its_request() {
    let server = server(["Hello!"]);
    let response = respond(&server, &json!({"input": "Hi", "instructions": "Be brief.", "temperature": 0}));
    assert_eq!((&response["object"], &response["status"]), (&json!("response"), &json!("completed")));
    let [item] = &response["output"].as_array().expect("items")[..] else { panic!("{response}") };
    let counted = json!({"input": "Hi", "instructions": "Be brief."});
    let counted = server.post("/v1/responses/input_tokens", &counted).json();
    let tokens = &response["usage"]["input_tokens"];
    assert_eq!(counted, json!({"object": "response.input_tokens", "input_tokens": tokens}));
    assert_eq!(
        (&item["type"], &item["status"], &item["role"]),
        (&json!("message"), &json!("completed"), &json!("assistant"))
    );
    let part = json!({"type": "output_text", "text": "Hello!", "annotations": [], "logprobs": []});
    assert_eq!(item["content"], json!([part]));
    assert_eq!((&response["instructions"], &response["temperature"]), (&json!("Be brief."), &json!(0)));
    assert_eq!((&response["tools"], &response["error"]), (&json!([]), &Value::Null));
    let usage = &response["usage"];
    assert_eq!(
        usage["total_tokens"],
        usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap()
    );
}

#[test]
fn numbered_stream_events_build_the_response() {
    let server = server(["Hello there!", "Hello there!"]);
    let events = events(&server, json!({"input": "Hi"}));
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let begin = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ];
    assert_eq!(names[..4], begin);
    let end = [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names[names.len() - 4..], end);
    assert!(names[4..names.len() - 4].iter().all(|name| *name == "response.output_text.delta"), "{names:?}");
    for (number, (name, data)) in events.iter().enumerate() {
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(number)));
    }
    let of = |name: &str| {
        events.iter().filter(|(known, _)| known == name).map(|(_, data)| data).collect::<Vec<_>>()
    };
    let item = of("response.output_item.done")[0];
    for delta in of("response.output_text.delta") {
        assert_eq!(
            (&delta["item_id"], &delta["output_index"], &delta["content_index"]),
            (&item["item"]["id"], &json!(0), &json!(0))
        );
    }
    let text: String =
        of("response.output_text.delta").iter().map(|data| data["delta"].as_str().unwrap()).collect();
    let response = &of("response.completed")[0]["response"];
    assert_eq!(text, "Hello there!");
    assert_eq!((&response["output"][0], &response["status"]), (&item["item"], &json!("completed")));
    let mut whole = respond(&server, &json!({"input": "Hi"}));
    whole["output"][0]["id"] = item["item"]["id"].clone();
    assert_eq!(
        (&whole["output"], &whole["usage"]["output_tokens"]),
        (&response["output"], &response["usage"]["output_tokens"])
    );
}

#[test]
fn cut_reply_is_incomplete() {
    let server = server(["Hello there, this is long.", "Hello there, this is long."]);
    let body = json!({"input": "Hi", "max_output_tokens": 3});
    let response = respond(&server, &body);
    assert_eq!(
        (&response["status"], &response["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    assert_eq!(response["output"][0]["status"], "incomplete");
    let events = events(&server, body);
    let (name, data) = events.last().expect("events");
    assert_eq!((name.as_str(), &data["response"]["status"]), ("response.incomplete", &json!("incomplete")));
    assert_eq!(data["response"]["output"][0]["status"], "incomplete");
}

#[test]
fn response_continues_an_earlier_one() {
    let server = server(["One.", "Two.", "Three.", "Four.", "Five."]);
    let first = respond(&server, &json!({"input": "Count."}));
    let id = first["id"].as_str().expect("an id");
    assert_eq!(server.get(&format!("/v1/responses/{id}")).json(), first);
    let second = respond(&server, &json!({"input": "On.", "previous_response_id": id}));
    let prompt = |body: Value| server.post("/apply-template", &body).json()["count"].as_u64();
    let message = |role: &str, text: &str| json!({"role": role, "content": text});
    let history = [message("user", "Count."), message("assistant", "One."), message("user", "On.")];
    assert_eq!(second["usage"]["input_tokens"].as_u64(), prompt(json!({"messages": history})));
    // One that continues this one has the whole conversation, and so has one that continues a stream.
    let on = json!({"input": "And?", "previous_response_id": second["id"]});
    let third = events(&server, on).pop().expect("events").1["response"].clone();
    let history = [&history[..], &[message("assistant", "Two."), message("user", "And?")]].concat();
    assert_eq!(third["usage"]["input_tokens"].as_u64(), prompt(json!({"messages": history})));
    let id_of_third = third["id"].as_str().expect("an id");
    assert_eq!(server.get(&format!("/v1/responses/{id_of_third}")).json(), third);
    // The same in one request.
    let items = json!([message("user", "Count."), first["output"][0], message("user", "On.")]);
    let whole = respond(&server, &json!({"input": items}));
    assert_eq!(whole["usage"]["input_tokens"], second["usage"]["input_tokens"]);

    // An error names the place in the request's own input.
    let unreadable = json!({"type": "picture"});
    let body = json!({"input": [message("user", "a"), unreadable], "previous_response_id": id});
    let error = server.post("/v1/responses", &body).json();
    assert!(error["error"]["param"].as_str().is_some_and(|param| param.starts_with("input[1]")), "{error}");

    let unknown = server.post("/v1/responses", &json!({"input": "On.", "previous_response_id": "resp_0"}));
    assert_eq!(
        unknown.error(),
        (404, "invalid_request_error".into(), Some("previous_response_not_found".into()))
    );
    let deleted = server.send(&Request::new("DELETE", &format!("/v1/responses/{id}")));
    assert_eq!((deleted.status, &deleted.json()["deleted"]), (200, &json!(true)));
    assert_eq!(server.get(&format!("/v1/responses/{id}")).status, 404);
    let kept = respond(&server, &json!({"input": "Hi", "store": false}));
    assert_eq!(server.get(&format!("/v1/responses/{}", kept["id"].as_str().expect("an id"))).status, 404);
}

#[test]
fn errors_name_responses_api_fields() {
    let server = server(["Hello!"]);
    for (body, param) in [
        (json!({}), "input"),
        (json!({"input": 5}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": [{"role": "user", "content": "Hi"}, {"type": "poem"}]}), "input[1].type"),
        (json!({"input": [{"role": "boss", "content": "Hi"}]}), "input[0].role"),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}),
            "input[0].content[0].image_url",
        ),
        (json!({"input": "Hi", "background": true, "store": false}), "background"),
        (json!({"input": "Hi", "truncation": "middle"}), "truncation"),
        (json!({"input": "Hi", "top_logprobs": 100}), "top_logprobs"),
        (json!({"input": ["Hi"]}), "input[0]"),
        (json!({"input": "Hi", "max_output_tokens": 0}), "max_output_tokens"),
        (json!({"input": "Hi", "reasoning": {"effort": "extreme"}}), "reasoning.effort"),
        (json!({"input": "Hi", "text": {"format": {"type": "yaml"}}}), "text.format"),
        (json!({"input": "Hi", "text": {"format": {"type": "json_schema", "name": "a"}}}), "text.format"),
        (json!({"input": "Hi", "tools": [{"type": "web_search"}], "tool_choice": "required"}), "tool_choice"),
        (json!({"input": "Hi", "tools": [{"type": "function"}]}), "tools[0].name"),
        (json!({"input": "Hi", "tool_choice": "required"}), "tool_choice"),
        (json!({"input": "word ".repeat(100_000)}), "input"),
    ] {
        let response = server.post("/v1/responses", &body);
        assert_eq!(
            (response.status, &response.json()["error"]["param"]),
            (400, &json!(param)),
            "{:.100}",
            body.to_string()
        );
    }
}

#[test]
fn log_probabilities_belong_to_the_text() {
    let server = server(["Hello, Ann!", "Hello, Ann!", "Hello!", "Hello!"]);
    let tokens = |list: &Value| -> String {
        let tokens = list.as_array().expect("a list").iter();
        tokens.map(|token| token["token"].as_str().expect("a text")).collect()
    };
    let whole = respond(&server, &json!({"input": "Hi", "top_logprobs": 2}));
    let part = &whole["output"].as_array().and_then(|items| items.last()).expect("an item")["content"][0];
    assert_eq!(tokens(&part["logprobs"]), "Hello, Ann!");
    assert_eq!(part["logprobs"][0]["top_logprobs"].as_array().map(Vec::len), Some(2));
    assert_eq!(whole["top_logprobs"], 2);

    let streamed = events(&server, json!({"input": "Hi", "top_logprobs": 2}));
    let of = |name: &str| {
        let events = streamed.iter().filter(|(known, _)| known == name);
        events.map(|(_, data)| data["logprobs"].clone()).collect::<Vec<_>>()
    };
    let deltas: String = of("response.output_text.delta").iter().map(tokens).collect();
    assert_eq!(deltas, "Hello, Ann!");
    assert_eq!(of("response.output_text.done").iter().map(tokens).collect::<String>(), deltas);

    let included = json!({"input": "Hi", "include": ["message.output_text.logprobs"]});
    let scored = &respond(&server, &included)["output"][0]["content"][0]["logprobs"];
    assert_eq!((tokens(scored).as_str(), &scored[0]["top_logprobs"]), ("Hello!", &json!([])));
    let without = respond(&server, &json!({"input": "Hi"}));
    assert_eq!(without["output"][0]["content"][0]["logprobs"], json!([]));
}
