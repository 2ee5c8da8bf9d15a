//! `/v1/chats`: the kept conversations.

use crate::support::{Request, Running, store};
use lm_server::{ApiKeys, ServerConfig};
use lm_store::{Change, Conversation, Message, Owner, Role};
use serde_json::{Value, json};

fn node(id: &str, parent: Option<&str>, role: &str, content: &str) -> Value {
    json!({"id": id, "parent": parent, "role": role, "content": content})
}

fn titles(list: &Value) -> Vec<&str> {
    list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|chat| chat["title"].as_str().expect("a title"))
        .collect()
}

#[test]
fn chats_are_those_of_the_user_of_the_machine() {
    let store = store();
    let server =
        Running::scripted(["Hello!"], ServerConfig { store: Some(store.clone()), ..ServerConfig::default() });
    let mut talk = Conversation::new("In a terminal");
    talk.messages = vec![Message::new(None, Role::User, "Why is the sky blue?")];
    store.apply(&Owner::local(), &talk.id, &Change::creating(&talk)).expect("is added");
    let nodes = json!({"m1": node("m1", None, "user", "Hello"), "m2": node("m2", Some("m1"), "assistant", "Hello, too")});
    let created = server.post("/v1/chats/c1", &json!({"create": true, "title": "In a page", "nodes": nodes}));
    assert_eq!((created.status, created.json()), (200, json!({"object": "chat.changed", "id": "c1"})));
    let list = server.get("/v1/chats").json();
    assert_eq!(
        (titles(&list), &list["total"], &list["kept"]),
        (vec!["In a page", "In a terminal"], &json!(2), &json!(true))
    );
    assert_eq!(titles(&server.get("/v1/chats?limit=1&offset=1").json()), ["In a terminal"]);
    let found = server.get("/v1/chats?search=blue%20sk").json();
    assert_eq!(titles(&found), ["In a terminal"]);
    assert_eq!(found["data"][0]["excerpt"], "Why is the sky blue?");
    assert_eq!(server.get("/v1/chats/c1").json()["nodes"], nodes);
    let change = json!({"removed": ["m2"], "nodes": {"m3": node("m3", Some("m1"), "assistant", "Hi")}, "selected": {"m1": "m3"}});
    assert_eq!(server.post("/v1/chats/c1", &change).status, 200);
    let kept = store.get(&Owner::local(), "c1").expect("can be read").expect("is there");
    assert_eq!(
        kept.path().iter().map(|message| message.content.as_str()).collect::<Vec<_>>(),
        ["Hello", "Hi"]
    );
    assert_eq!(server.send(&Request::new("DELETE", "/v1/chats/c1")).status, 200);
    for (method, body) in [("GET", json!({})), ("DELETE", json!({})), ("POST", json!({"title": "again"}))] {
        let response = server.send(&Request::new(method, "/v1/chats/c1").body(&body));
        let expected = (404, "not_found_error".to_owned(), Some("chat_not_found".to_owned()));
        assert_eq!(response.error(), expected, "{method}");
    }
}

#[test]
fn each_key_has_its_own_chats() {
    let keys = ApiKeys::new(["one", "other"]).expect("keys");
    let store = store();
    let server = Running::scripted(
        ["Hello!"],
        ServerConfig { keys, store: Some(store.clone()), ..ServerConfig::default() },
    );
    let as_key = |key: &str, method, path: &str| {
        Request::new(method, path).header("Authorization", &format!("Bearer {key}"))
    };
    let body =
        json!({"create": true, "title": "Secret", "nodes": {"m1": node("m1", None, "user", "password")}});
    assert_eq!(server.send(&as_key("one", "POST", "/v1/chats/c1").body(&body)).status, 200);
    let mut own = Conversation::new("Of the terminal");
    own.messages = vec![Message::new(None, Role::User, "Private")];
    store.apply(&Owner::local(), &own.id, &Change::creating(&own)).expect("is added");
    let list = |key: &str| server.send(&as_key(key, "GET", "/v1/chats")).json();
    assert_eq!(titles(&list("one")), ["Secret"]);
    assert_eq!(list("other"), json!({"object": "list", "kept": true, "total": 0, "data": []}));
    assert_eq!(
        titles(&server.send(&as_key("other", "GET", "/v1/chats?search=password")).json()),
        Vec::<&str>::new()
    );
    for method in ["GET", "DELETE"] {
        assert_eq!(server.send(&as_key("other", method, "/v1/chats/c1")).status, 404, "{method}");
    }
    assert_eq!(server.get("/v1/chats").status, 401);
    // The other header of a key is the same key.
    let list = server.send(&Request::new("GET", "/v1/chats").header("x-api-key", "one")).json();
    assert_eq!(titles(&list), ["Secret"]);
}

#[test]
fn other_pages_of_this_machine_do_not_read_chats() {
    let config = ServerConfig {
        store: Some(store()),
        allowed_origins: vec!["https://chat.example.com".to_owned()],
        ..ServerConfig::default()
    };
    let server = Running::scripted(["Hello!"], config);
    let own = format!("http://{}", server.addr);
    let status = |origin: &str, path: &str| {
        let request = Request::new("GET", path).header("Host", &server.addr.to_string());
        server.send(&request.header("Origin", origin)).status
    };
    for (origin, expected) in [
        (own.as_str(), 200),
        ("https://chat.example.com", 200),
        ("http://localhost:3000", 403),
        ("http://127.0.0.1:3000", 403),
        ("null", 403),
    ] {
        assert_eq!(status(origin, "/v1/chats"), expected, "{origin}");
    }
    assert_eq!(status("http://localhost:3000", "/v1/models"), 200);
}

#[test]
fn server_without_a_store_says_so() {
    let server = Running::scripted(["Hello!"], ServerConfig::default());
    assert_eq!(
        server.get("/v1/chats").json(),
        json!({"object": "list", "kept": false, "total": 0, "data": []})
    );
    let response = server.post("/v1/chats/c1", &json!({"create": true}));
    let expected = (404, "not_found_error".to_owned(), Some("no_store".to_owned()));
    assert_eq!(response.error(), expected);
}

#[test]
fn invalid_changes_name_the_field() {
    let server =
        Running::scripted(["Hello!"], ServerConfig { store: Some(store()), ..ServerConfig::default() });
    for (path, body, field) in [
        ("c1", json!({"create": true, "title": 3}), "title"),
        ("c1", json!({"create": true, "nodes": {"m1": node("m2", None, "user", "")}}), "nodes.m1.id"),
        ("c1", json!({"create": true, "nodes": {"m1": node("m1", None, "system", "")}}), "nodes.m1.role"),
        (
            "c1",
            json!({"create": true, "nodes": {"m1": node("m1", Some("m0"), "user", "")}}),
            "nodes.m1.parent",
        ),
        ("c%20x", json!({"create": true}), "id"),
        ("c1", json!({"create": true, "removed": [3]}), "removed"),
    ] {
        let response = server.post(&format!("/v1/chats/{path}"), &body);
        assert_eq!(response.status, 400, "{body}");
        assert!(response.body.contains(&format!("`{field}")), "{field}: {}", response.body);
    }
    assert_eq!(server.get("/v1/chats?limit=many").status, 400);
    assert_eq!(server.get("/v1/chats").json()["total"], 0);
}
