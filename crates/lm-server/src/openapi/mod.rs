//! OpenAPI document of the routes.

mod operation;
mod schemas;

use serde_json::{Map, Value, json};

use crate::routes::ROUTES;

/// Creates the document from the table of routes and the structs of the bodies.
pub(crate) fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "lm",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "HTTP server of local language models, for clients of OpenAI, Anthropic and Ollama. Bodies may have fields that are not listed, which are ignored.",
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{"url": "/"}],
        "paths": paths(),
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    })
}

fn paths() -> Map<String, Value> {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(operation::path(route)).or_insert_with(|| json!({}));
        path[route.method.name()] = operation::operation(route);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_one_operation() {
        let document = document();
        for route in ROUTES {
            let operation = &document["paths"][operation::path(route)][route.method.name()];
            assert_eq!(operation["summary"], route.summary, "{}", route.path);
            assert_eq!(operation["requestBody"].is_object(), route.body.is_some(), "{}", route.path);
        }
        let paths = document["paths"].as_object().expect("paths");
        let operations: usize = paths.values().map(|path| path.as_object().map_or(0, Map::len)).sum();
        assert_eq!(operations, ROUTES.len());
    }

    #[test]
    fn schemas_and_references_match() {
        let text = document().to_string();
        let named = |part: &str| part.split('"').next().map(str::to_owned);
        let mut used: Vec<_> = text.split("#/components/schemas/").skip(1).filter_map(named).collect();
        used.sort_unstable();
        used.dedup();
        let mut known: Vec<_> = schemas::all().keys().cloned().collect();
        known.sort_unstable();
        assert_eq!(used, known);
    }
}
