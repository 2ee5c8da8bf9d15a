//! Access to a server: host names, origins and keys.

use crate::support::operations::{self, Document};
use crate::support::{Request, Running};
use lm_server::{ApiKeys, Error, ServedModel, Server, ServerConfig};
use lm_session::testing::scripted_engine;

fn with_keys() -> Running {
    let keys = ApiKeys::new(["first", "second"]).expect("keys");
    Running::scripted(["Hello!"], ServerConfig { keys, ..ServerConfig::default() })
}

#[test]
fn every_route_but_health_and_openapi_needs_a_key() {
    let server = with_keys();
    let operations = Document::of(&server).operations(&operations::serve());
    let (guarded, open): (Vec<_>, Vec<_>) =
        operations.iter().partition(|operation| operation.json.get("security").is_some());
    let guarded = guarded.iter().map(|operation| (operation.method, operation.path.as_str()));
    for (method, path) in guarded.chain([("GET", "/nothing"), ("DELETE", "/v1/models")]) {
        for request in [
            Request::new(method, path),
            Request::new(method, path).header("Authorization", "Bearer wrong"),
            Request::new(method, path).header("Authorization", "Basic first"),
            Request::new(method, path).header("Authorization", "Bearer"),
            Request::new(method, path).header("x-api-key", "first "),
        ] {
            let response = server.send(&request);
            if request.text().contains("x-api-key") {
                // Spaces around a header's value do not belong to it.
                assert_ne!(response.status, 401, "{path}");
                continue;
            }
            assert_eq!(response.status, 401, "{method} {path}");
            if path == "/nothing" {
                let expected = (401, "authentication_error".to_owned(), Some("invalid_api_key".to_owned()));
                assert_eq!(response.error(), expected);
            }
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
            assert_eq!(response.header("connection"), Some("close"));
            assert!(!response.body.contains("wrong"), "a key is not repeated");
        }
    }
    let open: Vec<_> = open.iter().map(|operation| operation.path.as_str()).collect();
    assert_eq!(open, ["/health", "/v1/health", "/ready", "/openapi.json"]);
    for path in open {
        assert_eq!(server.get(path).status, 200);
    }
}

#[test]
fn every_key_works_in_either_header() {
    let server = with_keys();
    for (name, value) in
        [("Authorization", "Bearer first"), ("authorization", "bearer second"), ("x-api-key", "second")]
    {
        let response = server.send(&Request::new("GET", "/v1/models").header(name, value));
        assert_eq!(response.status, 200, "{name}: {value}: {}", response.body);
    }
}

#[test]
fn requests_for_foreign_hosts_are_refused() {
    let config =
        ServerConfig { allowed_hosts: vec!["llm.example.com".to_owned()], ..ServerConfig::default() };
    let server = Running::scripted(["Hello!"], config);
    let status = |host: &str| server.send(&Request::new("GET", "/v1/models").header("Host", host)).status;
    for host in ["localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8080", "192.168.1.5", "LLM.example.com:443"]
    {
        assert_eq!(status(host), 200, "{host}");
    }
    for host in
        ["evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "llm.example.com.evil.com", "example.com"]
    {
        assert_eq!(status(host), 403, "{host}");
    }
    assert_eq!(status("localhost:"), 200, "a port may be empty");
    for host in
        ["", "a b", "http://localhost", "localhost:abc", "localhost:99999", "[::1]:x", "localhost:1:2"]
    {
        assert_eq!(status(host), 400, "{host:?}");
    }
    let twice = Request::new("GET", "/v1/models").header("Host", "localhost").header("Host", "localhost");
    assert_eq!(server.send(&twice).error(), (400, "invalid_request_error".to_owned(), None));
    // The health route is no exception, and an address in the first line counts before the header.
    let health = Request::new("GET", "/health").header("Host", "evil.com");
    assert_eq!(server.send(&health).error(), (403, "permission_error".to_owned(), None));
    assert_eq!(server.send(&Request::new("GET", "http://evil.com/v1/models")).status, 403);
}

#[test]
fn foreign_origins_are_refused() {
    let origins = vec!["https://chat.example.com".to_owned()];
    let config = ServerConfig {
        allowed_origins: origins,
        allowed_hosts: vec!["llm.example.com".to_owned()],
        ..ServerConfig::default()
    };
    let server = Running::scripted(["Hello!"], config);
    let of = |method, origin: &str| Request::new(method, "/v1/models").header("Origin", origin);
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5", "https://chat.example.com"]
    {
        let response = server.send(&of("GET", origin));
        assert_eq!((response.status, response.header("access-control-allow-origin")), (200, Some(origin)));
        let asks = of("OPTIONS", origin)
            .header("Access-Control-Request-Method", "POST")
            .header("Access-Control-Request-Headers", "authorization, content-type");
        let answer = server.send(&asks);
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some(origin)));
        assert_eq!(answer.header("access-control-allow-headers"), Some("authorization, content-type"));
    }
    for origin in [
        "http://evil.com",
        "null",
        "http://localhost.evil.com",
        "file://localhost",
        "chat.example.com",
        "http://chat.example.com",
        "https://chat.example.com.evil.com",
        "https://chat.example.com:8443",
        "https://evil-chat.example.com",
    ] {
        let response = server.send(&of("GET", origin));
        assert_eq!(response.error(), (403, "permission_error".to_owned(), None), "{origin}");
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
    // A page of the server itself.
    let own = of("GET", "http://llm.example.com:80").header("Host", "llm.example.com:80");
    assert_eq!(server.send(&own).status, 200);
    let other = of("GET", "http://llm.example.com:81").header("Host", "llm.example.com:80");
    assert_eq!(server.send(&other).status, 403);
}

#[test]
fn preflight_needs_no_key() {
    let server = with_keys();
    let asks = Request::new("OPTIONS", "/v1/chat/completions")
        .header("Origin", "http://localhost:3000")
        .header("Access-Control-Request-Method", "POST");
    assert_eq!(server.send(&asks).status, 200);
}

#[test]
fn public_address_without_key_is_not_bound() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let bind = |models, config| runtime.block_on(Server::bind(models, config));
    let engine = scripted_engine(["Hello!"]);
    let model =
        || ServedModel::new(engine.clone(), lm_conversation::ConversationConfig::from_engine(&engine));
    let open = ServerConfig { addr: ([0, 0, 0, 0], 0).into(), ..ServerConfig::default() };
    assert!(matches!(bind(vec![model()], open.clone()), Err(Error::OpenAddress { .. })));
    let insecure = bind(vec![model()], ServerConfig { insecure: true, ..open.clone() }).expect("is allowed");
    assert!(insecure.url().starts_with("http://127.0.0.1:"), "{}", insecure.url());
    assert!(matches!(bind(vec![], ServerConfig { insecure: true, ..open.clone() }), Err(Error::NoModel)));
    let twice = vec![model(), model().alias("x")];
    let error = bind(twice, ServerConfig { insecure: true, ..open }).expect_err("one name");
    assert!(matches!(error, Error::DuplicateModel { name } if name == "fake"));
}
