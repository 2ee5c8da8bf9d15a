//! `/openapi.json` beside the routes: what it says of them is true.

use crate::support::operations::{Document, Operation, serve};
use crate::support::{Request, Response, Running, values};
use lm_server::{ApiKeys, ServerConfig};
use serde_json::{Value, json};

/// Checks that a response is one that the document has.
fn check(document: &Document, operation: &Operation, response: &Response) {
    let at = format!("{} {}: {}", operation.method, operation.path, response.status);
    let kind = response.header("content-type").unwrap_or_else(|| panic!("{at} has no type"));
    let schema = operation.response(response.status, kind);
    match kind {
        "application/json" => document.check(schema, &response.json(), &at),
        "application/x-ndjson" => {
            let schema = operation.response(response.status, "application/json");
            let lines = response.body.lines().filter(|line| line.starts_with('{'));
            lines.for_each(|line| document.check(schema, &serde_json::from_str(line).expect("JSON"), &at));
        }
        _ => assert!(!response.body.is_empty(), "{at}"),
    }
}

#[test]
fn examples_are_answered_as_documented() {
    let server = serve();
    let document = Document::of(&server);
    for operation in document.operations(&server) {
        let response = server.send(&operation.request());
        // The model is no reranker; `rerank` tests one.
        let expected = if operation.path.ends_with("/rerank") { 400 } else { 200 };
        assert_eq!(response.status, expected, "{} {}: {}", operation.method, operation.path, response.body);
        check(&document, &operation, &response);
    }
}

#[test]
fn streams_have_the_documented_type() {
    let server = serve();
    let document = Document::of(&server);
    let mut streams = 0;
    for operation in document.operations(&server) {
        let Some(mut body) = operation.example().cloned() else { continue };
        body["stream"] = true.into();
        let response = server.post(&operation.path, &body);
        check(&document, &operation, &response);
        streams += usize::from(response.header("content-type") != Some("application/json"));
        let documented = operation.json["responses"]["200"]["content"].as_object().expect("types").len();
        assert_eq!(
            documented > 1,
            response.header("content-type") != Some("application/json"),
            "{}",
            operation.path
        );
    }
    assert_eq!(streams, 8);
}

/// Fields that a response repeats as they are.
const ANY_VALUE: [&str; 2] = ["metadata", "user"];

#[test]
fn field_schemas_accept_all_that_the_reader_accepts() {
    let server = serve();
    let document = Document::of(&server);
    for operation in document.operations(&server) {
        let Some(example) = operation.example() else { continue };
        for (name, schema) in document.fields(&operation) {
            let validator = jsonschema::draft202012::new(&schema).expect("a schema");
            let mut is_named = ANY_VALUE.contains(&name.as_str());
            for value in values().into_iter().filter(|value| !validator.is_valid(value)) {
                let mut body = example.clone();
                body[&name] = value;
                let response = server.post(&operation.path, &body);
                assert_eq!(response.status, 400, "{} {name}: {}", operation.path, body[&name]);
                is_named |= response.body.contains(&format!("`{name}"));
            }
            assert!(is_named, "{}: no error names `{name}`", operation.path);
        }
    }
}

#[test]
fn errors_have_the_documented_form() {
    let server = serve();
    let document = Document::of(&server);
    for operation in document.operations(&server) {
        for request in [
            operation.request().header("Host", "evil.com"),
            operation.request().header("Origin", "https://evil.com"),
            operation.request().text_body("{"),
        ] {
            check(&document, &operation, &server.send(&request));
        }
        if operation.template.ends_with('}') {
            let (start, _) = operation.path.rsplit_once('/').expect("a path");
            let response = server.send(&Request::new(operation.method, &format!("{start}/%FF")));
            assert_eq!(response.status, 400, "{}", response.body);
            check(&document, &operation, &response);
        }
    }
}

#[test]
fn path_parameters_are_named() {
    let document = Document::of(&serve());
    for (path, methods) in document.0["paths"].as_object().expect("paths") {
        let places: Vec<&str> = path.split('{').skip(1).filter_map(|part| part.split('}').next()).collect();
        for operation in methods.as_object().expect("methods").values() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let named =
                parameters.filter(|it| it["in"] == "path").map(|it| it["name"].as_str().expect("a name"));
            assert_eq!(named.collect::<Vec<_>>(), places, "{path}");
        }
    }
}

#[test]
fn openapi_needs_no_key_and_head_has_no_body() {
    let config = ServerConfig { keys: ApiKeys::new(["secret"]).expect("a key"), ..ServerConfig::default() };
    let server = Running::scripted(["Hello!"], config);
    assert_eq!(server.get("/openapi.json").json()["openapi"], "3.1.0");
    let head = server.send(&Request::new("HEAD", "/openapi.json"));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(server.send(&Request::new("POST", "/openapi.json").body(&json!({}))).status, 405);
    let kept: Value = server.get("/openapi.json").json();
    assert_eq!(kept["paths"]["/openapi.json"]["get"].get("security"), None);
}
