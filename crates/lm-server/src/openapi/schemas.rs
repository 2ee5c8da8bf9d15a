//! Schemas of bodies.

use serde_json::{Map, Value};

use crate::routes::ROUTES;

/// Schemas of responses, an object of schemas by name for each API. Tests validate real responses against
/// them.
const RESPONSES: [&str; 4] = [
    include_str!("openai.json"),
    include_str!("anthropic.json"),
    include_str!("ollama.json"),
    include_str!("server.json"),
];

/// All schemas by name; those of requests are made of the structs that they are read as.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    for text in RESPONSES {
        let of_api: Map<String, Value> = serde_json::from_str(text).expect("the tests read all files");
        schemas.extend(of_api);
    }
    for body in ROUTES.iter().filter_map(|route| route.body) {
        schemas.insert(body.name.to_owned(), body.schema());
    }
    schemas
}
