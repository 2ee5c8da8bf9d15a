//! Embeddings: bodies, vectors and errors.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lm_api::{ApiError, EmbeddingRequest, Embeddings, Limits, Value};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{EmbedParams, Engine, EngineSettings, Pooling, TextSegment};
use proptest::prelude::*;
use serde_json::json;

fn engine() -> Engine {
    let model = FakeLm::random(1, tokenizer().logits_width());
    Engine::new(loaded(model), EngineSettings::default()).expect("an engine")
}

fn create(engine: &Engine, body: Value) -> Result<Value, ApiError> {
    Embeddings::new(engine.clone(), None).create(&EmbeddingRequest::from_json(body)?)
}

fn floats(embedding: &Value) -> Vec<f32> {
    match embedding {
        Value::String(text) => {
            let bytes = STANDARD.decode(text).expect("base64");
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four"))).collect()
        }
        list => {
            let list = list.as_array().expect("a list");
            list.iter().map(|value| value.as_f64().expect("a number") as f32).collect()
        }
    }
}

#[test]
fn every_input_form_equals_the_engine() {
    let engine = engine();
    let texts = ["The weather in Paris", "hello<|im_end|>"];
    let ids = texts.map(|text| {
        let ids = engine.tokenizer().encode_with_special_tokens(TextSegment::Content(text));
        ids.expect("it encodes")
    });
    for (name, pooling) in [("mean", Pooling::Mean), ("last", Pooling::Last)] {
        let params = EmbedParams { pooling: Some(pooling), ..EmbedParams::default() };
        let expected = ids.clone().map(|ids| engine.embed(&ids, &params).expect("a vector"));
        let inputs = [
            (json!(texts[0]), 1),
            (json!([texts[0]]), 1),
            (json!(texts), 2),
            (json!(ids[0]), 1),
            (json!(ids), 2),
            (json!([texts[0], ids[1]]), 2),
        ];
        for (input, count) in inputs {
            for encoding in ["float", "base64"] {
                let body = json!({"model": "mine", "input": input, "encoding_format": encoding, "pooling": name, "user": "u"});
                let object = create(&engine, body).expect("embeddings");
                assert_eq!((&object["object"], &object["model"]), (&json!("list"), &json!("mine")));
                let data = object["data"].as_array().expect("a list");
                assert_eq!(data.len(), count, "{input}");
                for (index, item) in data.iter().enumerate() {
                    assert_eq!((&item["object"], &item["index"]), (&json!("embedding"), &json!(index)));
                    assert_eq!(item["embedding"].is_string(), encoding == "base64");
                    assert_eq!(floats(&item["embedding"]), expected[index], "{input} {encoding}");
                }
                let tokens: usize = ids[..count].iter().map(Vec::len).sum();
                assert_eq!(object["usage"], json!({"prompt_tokens": tokens, "total_tokens": tokens}));
            }
        }
    }
}

#[test]
fn truncated_embeddings_are_normalized() {
    let engine = engine();
    let vector = |dimensions: Value| {
        let object = create(&engine, json!({"input": "hello", "dimensions": dimensions})).expect("a vector");
        floats(&object["data"][0]["embedding"])
    };
    let whole = vector(Value::Null);
    assert_eq!(vector(whole.len().into()), whole);
    let half = vector((whole.len() / 2).into());
    assert_eq!(half.len(), whole.len() / 2);
    let length = |vector: &[f32]| vector.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    assert!((length(&half) - 1.0).abs() < 1e-6);
    let rest = length(&whole[..half.len()]);
    for (half, whole) in half.iter().zip(&whole) {
        assert!((f64::from(*half) - f64::from(*whole) / rest).abs() < 1e-6);
    }
}

#[test]
fn prompt_precedes_texts_alone() {
    let engine = engine();
    let vector = |body: Value| floats(&create(&engine, body).expect("a vector")["data"][0]["embedding"]);
    let whole = vector(json!({"input": "query: hello"}));
    assert_eq!(vector(json!({"input": "hello", "prompt": "query: "})), whole);
    assert_eq!(vector(json!({"input": "hello", "prompt": "query: ", "prompt_name": "query"})), whole);
    let (text, ids) = (vector(json!({"input": "hello"})), vector(json!({"input": [5, 6]})));
    assert_ne!(text, whole);
    for name in ["query", "document"] {
        assert_eq!(vector(json!({"input": "hello", "prompt_name": name})), text, "the model has none");
    }
    assert_eq!(vector(json!({"input": [5, 6], "prompt": "query: "})), ids);
}

#[test]
fn vectors_are_normalized_unless_the_request_says_otherwise() {
    let engine = engine();
    let vector = |body: Value| floats(&create(&engine, body).expect("a vector")["data"][0]["embedding"]);
    let raw = vector(json!({"input": "hello", "normalize": false}));
    assert!((raw.iter().map(|v| v * v).sum::<f32>() - 1.0).abs() > 1e-3);
    let length_1 = vector(json!({"input": "hello"}));
    assert_eq!(lm_session::normalized(raw.clone()), length_1);
    assert_eq!(vector(json!({"input": "hello", "normalize": true, "embd_normalize": 2})), length_1);
    assert_eq!(vector(json!({"input": "hello", "normalize": false, "dimensions": 3})), raw[..3]);
}

#[test]
fn invalid_field_is_named() {
    let engine = engine();
    let (width, size) = (engine.model_info().logits_width, engine.model_info().hidden_size);
    let long = "hello ".repeat(engine.context_tokens() + 1);
    let many = vec!["a"; Limits::default().embedding_inputs + 1];
    for (body, param) in [
        (json!({}), "input"),
        (json!({"input": null}), "input"),
        (json!({"input": 7}), "input"),
        (json!({"input": {}}), "input"),
        (json!({"input": ""}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": ["a", ""]}), "input[1]"),
        (json!({"input": ["a", 7]}), "input[1]"),
        (json!({"input": [1, "a"]}), "input[1]"),
        (json!({"input": [1, -1]}), "input[1]"),
        (json!({"input": [[1], [2, 0.5]]}), "input[1][1]"),
        (json!({"input": [[1], []]}), "input[1]"),
        (json!({"input": [width]}), "input"),
        (json!({"input": [[1], [width]]}), "input[1]"),
        (json!({"input": many}), "input"),
        (json!({"input": long}), "input"),
        (json!({"input": ["a", long]}), "input[1]"),
        (json!({"input": "a", "encoding_format": "int8"}), "encoding_format"),
        (json!({"input": "a", "dimensions": 0}), "dimensions"),
        (json!({"input": "a", "dimensions": -1}), "dimensions"),
        (json!({"input": "a", "dimensions": size + 1}), "dimensions"),
        (json!({"input": "a", "pooling": "max"}), "pooling"),
        (json!({"input": "a", "normalize": "yes"}), "normalize"),
        (json!({"input": "a", "prompt_name": "STS"}), "prompt_name"),
        (json!({"input": "a", "prompt": 7}), "prompt"),
        (json!({"input": "a", "model": 7}), "model"),
    ] {
        let shown = body.to_string();
        let error = create(&engine, body).expect_err("it is refused");
        assert_eq!((error.status, error.param.as_deref()), (400, Some(param)), "{shown:.80}: {error}");
    }
}

#[test]
fn cancelled_request_is_not_a_server_error() {
    let request = EmbeddingRequest::from_json(json!({"input": "hello"})).expect("a request");
    request.cancel.cancel();
    let error = Embeddings::new(engine(), None).create(&request).expect_err("it is cancelled");
    assert_eq!(error.status, 499, "{error}");
}

proptest! {
    #[test]
    fn any_input_is_read_or_named_in_the_error(
        input in prop::collection::vec(
            prop_oneof![
                Just(Value::Null),
                any::<f64>().prop_map(Value::from),
                any::<u32>().prop_map(Value::from),
                "[a-z]{0,3}".prop_map(Value::from),
                prop::collection::vec(any::<i64>(), 0..3).prop_map(Value::from),
            ],
            0..4,
        )
    ) {
        let input = Value::from(input);
        match EmbeddingRequest::from_json(json!({"input": input.clone()})) {
            Ok(request) => prop_assert!(!request.inputs.texts().is_empty()),
            Err(error) => {
                prop_assert!(error.param.unwrap_or_default().starts_with("input"));
                prop_assert_eq!(error.status, 400);
            }
        }
    }
}
