use super::*;
use crate::Error;
use serde_json::json;

#[test]
fn file_round_trips() {
    let value = json!({"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "cwd": "/tmp"},
        "search": {"url": "https://example.com/mcp", "headers": {"X-Key": "k"}, "protocol": "2025-11-25", "disabled": true},
        "login": {"url": "https://example.com/mcp", "headers": {},
            "oauth": {"clientId": "lm", "clientSecret": "s", "scopes": ["a", "b"], "callbackPort": 8080}},
    }});
    let servers = McpServers::from_json(&value).expect("a good file");
    assert_eq!(servers.servers[0].prefix, "files");
    assert!(!servers.servers[0].disabled && servers.servers[1].disabled);
    assert_eq!(servers.unknown_keys, []);
    assert_eq!(serde_json::to_value(&servers).expect("serialises"), value);
    assert_eq!(serde_json::from_value::<McpServers>(value).expect("deserialises"), servers);
}

#[test]
fn errors_name_the_path_of_the_key() {
    for (server, expected) in [
        (json!(5), "`mcpServers.a`: expected an object, got 5"),
        (json!({}), "`mcpServers.a.command` is missing: expected `command` or `url`"),
        (
            json!({"cmd": "x", "args": []}),
            "`mcpServers.a.command` is missing: expected `command` or `url`, found `cmd`, `args`",
        ),
        (json!({"command": ""}), "`mcpServers.a.command`: expected the name of a program, got \"\""),
        (
            json!({"command": "x", "url": "http://y"}),
            "`mcpServers.a`: expected either `command` or `url`, got both",
        ),
        (
            json!({"command": "x", "args": "-y"}),
            "`mcpServers.a.args`: expected an array of strings, got \"-y\"",
        ),
        (json!({"command": "x", "env": {"A": 1}}), "`mcpServers.a.env.A`: expected a string, got 1"),
        (
            json!({"command": "x", "disabled": "no"}),
            "`mcpServers.a.disabled`: expected true or false, got \"no\"",
        ),
        (
            json!({"url": "ws://x"}),
            "`mcpServers.a.url`: expected an address that begins with http:// or https://, got \"ws://x\"",
        ),
        (
            json!({"url": "http://x", "headers": []}),
            "`mcpServers.a.headers`: expected an object of strings, got an array",
        ),
        (
            json!({"command": "x", "protocol": "2024"}),
            "`mcpServers.a.protocol`: expected `auto`, `2026-07-28` or `2025-11-25`, got \"2024\"",
        ),
        (
            json!({"url": "http://x", "oauth": {"callbackPort": 65536}}),
            "`mcpServers.a.oauth.callbackPort`: expected a port, 1 to 65535, got 65536",
        ),
        (
            json!({"url": "http://x", "oauth": {"clientSecret": "s"}}),
            "`mcpServers.a.oauth.clientId` is missing: expected the client that `clientSecret` belongs to",
        ),
    ] {
        let error = McpServers::from_json(&json!({"mcpServers": {"a": server}})).expect_err("is refused");
        assert_eq!(error.to_string(), expected);
    }
    let error = McpServers::from_json(&json!({"mcpServers": {"a": {"url": "http://x", "type": "sse"}}}));
    assert!(error.expect_err("is refused").to_string().starts_with("`mcpServers.a.type`: expected `http`"));
    let error = McpServers::from_json(&json!({"servers": {}})).expect_err("is refused");
    let expected = "`mcpServers` is missing: expected an object of servers by name, found `servers`";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(
        " ".repeat(2 << 20).parse::<McpServers>(),
        Err(Error::TooLarge { max_bytes: 1_048_576 })
    ));
}

#[test]
fn text_that_is_not_json_is_an_error_with_its_place() {
    let error = "{\n  \"mcpServers\": {},\n}".parse::<McpServers>().expect_err("is not JSON");
    let expected =
        "invalid JSON at line 3, column 1: trailing comma; expected {\"mcpServers\": {\"NAME\": {…}}}";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn file_errors_name_it_once() {
    let error = McpServers::read("absent.json").expect_err("is not there");
    assert_eq!(error.to_string(), "the file of MCP servers `absent.json` cannot be read");
    assert!(matches!(error, Error::ReadFile { .. }));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), "[]").expect("can be written");
    let error = McpServers::read(file.path()).expect_err("not an object");
    let expected = format!("the file of MCP servers `{}` cannot be used", file.path().display());
    assert_eq!(error.to_string(), expected);
    let source = std::error::Error::source(&error).expect("a cause");
    assert_eq!(source.to_string(), "`the file`: expected an object, got an array");
}

#[test]
fn secrets_are_not_in_debug_output() {
    let value = json!({"mcpServers": {
        "a": {"command": "x", "env": {"TOKEN": "hidden"}},
        "b": {"url": "http://x", "headers": {"Authorization": "hidden"},
            "oauth": {"clientId": "id", "clientSecret": "hidden"}},
    }});
    let shown = format!("{:?}", McpServers::from_json(&value).expect("a good file"));
    assert!(
        shown.contains("TOKEN") && shown.contains("Authorization") && !shown.contains("hidden"),
        "{shown}"
    );
}

#[test]
fn unknown_keys_are_listed_with_their_paths() {
    let value =
        json!({"theme": "dark", "mcpServers": {"a": {"command": "x", "type": "stdio", "timeout": 5}}});
    let servers = McpServers::from_json(&value).expect("a good file");
    let known = vec!["type", "disabled", "protocol", "command", "url", "args", "env", "cwd"];
    let (theme, timeout) = ("theme".to_owned(), "timeout".to_owned());
    let oauth = json!({"mcpServers": {"a": {"url": "http://x", "oauth": {"clientID": "x"}}}});
    let oauth = McpServers::from_json(&oauth).expect("a good file").unknown_keys;
    assert_eq!(oauth[0].path, "mcpServers.a.oauth.clientID");
    assert_eq!(oauth[0].known, ["clientId", "clientSecret", "scopes", "callbackPort"]);
    let expected = [
        UnknownKey { path: theme.clone(), name: theme, known: vec!["mcpServers"] },
        UnknownKey { path: "mcpServers.a.timeout".to_owned(), name: timeout, known },
    ];
    assert_eq!(servers.unknown_keys, expected);
}
