//! Operations of `/openapi.json`.

use lm_server::{ServedTools, ServerConfig};
use lm_session::testing::scripted_engine;
use lm_tools::demo;
use serde_json::{Value, json};

use super::{Request, Running, model};

/// The document of a server.
pub struct Document(pub Value);

/// An operation of the document.
pub struct Operation {
    pub method: &'static str,
    pub path: String,
    /// Path with the names of its parameters.
    pub template: String,
    pub json: Value,
}

/// Serves what the examples of the document ask for.
pub fn serve() -> Running {
    let config = ServerConfig {
        tools: ServedTools::new(demo),
        store: Some(super::store()),
        ..ServerConfig::default()
    };
    Running::serve(model(scripted_engine(["Hello!"; 64])).alias("pocket"), config)
}

impl Document {
    pub fn of(server: &Running) -> Self {
        Self(server.get("/openapi.json").json())
    }

    /// All operations; names in paths are those of something that exists.
    pub fn operations(&self, server: &Running) -> Vec<Operation> {
        let paths = self.0["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods");
            methods.iter().map(move |(method, json)| (path, method, json))
        });
        let operations = operations.map(|(path, method, json)| {
            let method = match method.as_str() {
                "get" => "GET",
                "post" => "POST",
                "delete" => "DELETE",
                other => panic!("{other} is unknown"),
            };
            Operation { method, path: existing(server, path), template: path.clone(), json: json.clone() }
        });
        operations.collect()
    }

    /// Schema of this name of the document.
    fn schema(&self, reference: &Value) -> Value {
        let path = reference.as_str().and_then(|path| path.strip_prefix('#')).expect("a reference");
        self.0.pointer(path).expect("a schema").clone()
    }

    /// Fields of the body of an operation, with their schemas.
    pub fn fields(&self, operation: &Operation) -> Vec<(String, Value)> {
        let body = &operation.json["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let schema = self.schema(body);
        let fields = schema["properties"].as_object().expect("fields");
        fields.iter().map(|(name, schema)| (name.clone(), schema.clone())).collect()
    }

    /// Checks a body of JSON against a schema, and that it has no other fields than the schema.
    pub fn check(&self, schema: &Value, body: &Value, at: &str) {
        let mut schema = schema.clone();
        schema["unevaluatedProperties"] = false.into();
        schema["components"] = self.0["components"].clone();
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        if let Err(error) = validator.validate(body) {
            panic!("{at}: {error} at {}: {body}", error.instance_path());
        }
    }
}

impl Operation {
    /// Body of the operation's example.
    pub fn example(&self) -> Option<&Value> {
        self.json["requestBody"]["content"]["application/json"].get("example")
    }

    pub fn request(&self) -> Request {
        let request = Request::new(self.method, &self.path);
        match self.example() {
            Some(body) => request.body(body),
            None => request,
        }
    }

    /// Schema of a documented response.
    pub fn response(&self, status: u16, content_type: &str) -> &Value {
        let kind = content_type.split(';').next().unwrap_or_default();
        let content = &self.json["responses"][status.to_string()]["content"];
        let known = content.get(kind).unwrap_or_else(|| panic!("{}: {status} {kind}", self.path));
        &known["schema"]
    }
}

/// Path without parameters.
fn existing(server: &Running, path: &str) -> String {
    let id = |object: &Value| object["id"].as_str().expect("an id").to_owned();
    let path = path.replace("{name}", "other/name");
    let path = match path.split_once("/{id}") {
        Some(("/v1/responses", rest)) => {
            let created = json!({"input": "Hello", "background": rest == "/cancel"});
            path.replace("{id}", &id(&server.post("/v1/responses", &created).json()))
        }
        Some(("/v1/conversations", _)) => {
            let created = json!({"items": [{"role": "user", "content": "Hello"}]});
            let conversation = id(&server.post("/v1/conversations", &created).json());
            let items = server.get(&format!("/v1/conversations/{conversation}/items")).json();
            path.replace("{id}", &conversation).replace("{item}", &id(&items["data"][0]))
        }
        Some(("/v1/chats", _)) => {
            let node = json!({"id": "m1", "parent": null, "role": "user", "content": "Hello"});
            let chat = json!({"create": true, "title": "A chat", "nodes": {"m1": node}});
            assert_eq!(server.post("/v1/chats/c1", &chat).status, 200);
            path.replace("{id}", "c1")
        }
        _ => path,
    };
    assert!(!path.contains('{'), "{path} has an unknown parameter");
    path
}
