use super::*;

#[test]
fn a_file_is_read_and_written_back() {
    let value = json!({"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "cwd": "/tmp"},
        "search": {"url": "https://example.com/mcp", "headers": {"X-Key": "k"}, "disabled": true},
    }});
    let servers = McpServers::from_json(&value).expect("a good file");
    assert_eq!(servers.servers[0].prefix, "files");
    assert!(!servers.servers[0].disabled && servers.servers[1].disabled);
    assert_eq!(servers.unknown_keys, [""; 0]);
    assert_eq!(serde_json::to_value(&servers).expect("serialises"), value);
    assert_eq!(serde_json::from_value::<McpServers>(value).expect("deserialises"), servers);
}

#[test]
fn errors_name_the_path_of_the_key() {
    for (server, expected) in [
        (json!(5), "`mcpServers.a`: expected an object, got 5"),
        (json!({}), "`mcpServers.a.command` is missing: a server has `command` or `url`"),
        (json!({"command": ""}), "`mcpServers.a.command`: expected the name of a program, got \"\""),
        (
            json!({"command": "x", "url": "http://y"}),
            "`mcpServers.a.url`: expected no `url` beside `command`, got \"http://y\"",
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
    ] {
        let error = McpServers::from_json(&json!({"mcpServers": {"a": server}})).expect_err("is refused");
        assert_eq!(error.to_string(), expected);
    }
    let error = McpServers::from_json(&json!({"mcpServers": {"a": {"url": "http://x", "type": "sse"}}}));
    assert!(error.expect_err("is refused").to_string().starts_with("`mcpServers.a.type`: expected `http`"));
    assert!(matches!(McpServers::from_json(&json!({})), Err(Error::MissingConfig { .. })));
    assert!(matches!("{".parse::<McpServers>(), Err(Error::NotJson { .. })));
    assert!(matches!(" ".repeat(2 << 20).parse::<McpServers>(), Err(Error::NotJson { .. })));
    assert!(matches!(McpServers::read("absent.json"), Err(Error::ReadFile { .. })));
}

#[test]
fn secrets_are_not_in_debug_output() {
    let value = json!({"mcpServers": {
        "a": {"command": "x", "env": {"TOKEN": "hidden"}},
        "b": {"url": "http://x", "headers": {"Authorization": "hidden"}},
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
    assert_eq!(servers.unknown_keys, ["theme", "mcpServers.a.timeout"]);
}
