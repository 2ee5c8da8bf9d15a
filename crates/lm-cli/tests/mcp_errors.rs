//! Errors, hints and notes about MCP servers, word for word.
#![cfg(all(unix, feature = "mcp"))]

use std::process::Command;

use crate::program::{error, lm, refused, shown, text_file};
use serde_json::json;

const LM: &str = env!("CARGO_BIN_EXE_lm");

/// Lists the tools of a server that cannot be used; returns what is written on standard error.
fn failure(server: &str) -> String {
    let run = lm(&["mcp", "tools", "--mcp", server], "");
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{}", run.err);
    run.err
}

/// The same of a file of servers, whose path is replaced by `FILE`.
fn of_file(text: &str) -> (Option<i32>, String) {
    let file = text_file(text.as_bytes());
    let run = lm(&["mcp", "tools", "--mcp-config", shown(file.path())], "");
    (run.code, run.err.replace(shown(file.path()), "FILE"))
}

/// Checks the message of an argument of `--mcp` that is refused.
fn refuses(server: &str, message: &str) {
    let run = lm(&["mcp", "tools", "--mcp", server], "");
    let expected = format!(
        "error: invalid value '{server}' for '--mcp <[NAME=]COMMAND|URL>': {message}\n\nFor more information, try '--help'.\n"
    );
    assert_eq!((run.code, run.err), (Some(2), expected));
}

#[test]
fn addresses_need_a_scheme() {
    let meant = |url: &str| format!("an address begins with http:// or https://: did you mean `{url}`?");
    refuses("127.0.0.1:8000", &meant("http://127.0.0.1:8000/mcp"));
    refuses("web=localhost:8000/mcp", &meant("http://localhost:8000/mcp"));
    for word in ["http:", "https:"] {
        refuses(word, &format!("`{word}` is not a complete address: expected {word}//HOST:PORT/mcp"));
    }
    refuses("htp://127.0.0.1:8000/mcp", "unknown scheme `htp`: an address begins with http:// or https://");
}

#[test]
fn server_names_have_restricted_characters() {
    for name in ["", "bad name"] {
        let message = format!(
            "`{name}` cannot be the name of a server: a name has one or more of the letters a-z and A-Z, digits, `_` and `-`"
        );
        refuses(&format!("{name}=true"), &message);
    }
}

#[test]
fn missing_or_exited_program_is_named() {
    let missing = "No such file or directory (os error 2)\n";
    let expected =
        format!("error: MCP server `no-such-program`: `no-such-program` cannot be started: {missing}");
    assert_eq!(failure("no-such-program x"), expected);
    let hint = "hint: is it an MCP server? LM_LOG=lm_mcp=info shows all of its stderr; it gets few variables of the environment, and \
                `env` in a file of servers adds others\n";
    let expected = "error: MCP server `sh`: the program ended at the start (exit status: 3); the last line of its stderr: boom\n";
    assert_eq!(failure("sh -c 'echo wait >&2; echo boom >&2; exit 3'"), format!("{expected}{hint}"));
    let expected = "error: MCP server `true`: the program ended at the start (exit status: 0)\n";
    assert_eq!(failure("true"), format!("{expected}{hint}"));
}

#[test]
fn refused_connection_is_one_sentence() {
    let expected = "error: MCP server `127.0.0.1:9`: connection to http://127.0.0.1:9/mcp refused: is the server running?\n";
    assert_eq!(failure("http://127.0.0.1:9/mcp?key=secret"), expected);
}

#[test]
fn slow_start_is_reported_and_has_a_time_limit() {
    let run = lm(&["mcp", "tools", "--mcp-start-timeout", "3", "--mcp", "slow=sh -c 'cat > /dev/null'"], "");
    let expected = "waiting for MCP server \"slow\" …\nerror: MCP server `slow`: not ready after 3 s\n\
                    hint: is it an MCP server? --mcp-start-timeout SECONDS gives it more time\n";
    assert_eq!((run.code, run.err.as_str()), (Some(1), expected));
}

#[test]
fn server_on_a_terminal_explains_its_use() {
    let run = lm(&["mcp", "serve"], "");
    let expected = "error: standard input ended before a client sent `initialize`\n\
                    hint: an MCP client starts this program and writes to its standard input; --http PORT serves over HTTP\n";
    assert_eq!((run.code, run.err.as_str()), (Some(1), expected));
}

#[test]
fn unusable_server_file_is_named_once() {
    let message = error(&["mcp", "tools", "--mcp-config", "absent.json"], "");
    let expected =
        "the file of MCP servers `absent.json` cannot be read: No such file or directory (os error 2)";
    assert_eq!(message, expected);
    for (text, expected) in [
        (
            "{\n  \"mcpServers\": {\n}",
            "invalid JSON at line 3, column 1: EOF while parsing an object; expected {\"mcpServers\": {\"NAME\": {…}}}",
        ),
        (
            "{\"servers\": {}}",
            "`mcpServers` is missing: expected an object of servers by name, found `servers`",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "args": [1]}}}"#,
            "`mcpServers.a.args[0]`: expected a string, got 1",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}"#,
            "`mcpServers.a`: expected either `command` or `url`, got both",
        ),
    ] {
        let expected = format!("error: the file of MCP servers `FILE` cannot be used: {expected}\n");
        assert_eq!(of_file(text), (Some(1), expected));
    }
}

#[test]
fn command_with_arguments_hints_at_args() {
    let expected = "error: MCP server `a`: `no-such-program -y 'a b'` cannot be started: No such file or directory (os error 2)\n\
                    hint: `command` is a program without arguments, which go into `args`: \"command\": \"no-such-program\", \
                    \"args\": [\"-y\",\"a b\"]\n";
    let config = json!({"mcpServers": {"a": {"command": "no-such-program -y 'a b'"}}});
    assert_eq!(of_file(&config.to_string()), (Some(1), expected.to_owned()));
}

#[test]
fn keys_and_servers_without_effect_are_noted() {
    let server = json!({"command": "x", "disabled": true, "arg": [], "autoApprove": []});
    let config = json!({"theme": "dark", "mcpServers": {"a": server}});
    let expected = "note: FILE: `theme` is not known and has no effect\n\
                    note: FILE: `mcpServers.a.arg` is not known and has no effect (did you mean `args`?)\n\
                    note: FILE: `mcpServers.a.autoApprove` is not known and has no effect\n\
                    note: FILE: no server is enabled\n";
    assert_eq!(of_file(&config.to_string()), (Some(0), expected.to_owned()));
}

#[test]
fn server_without_tools_is_noted() {
    let unknown = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "unknown"}});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "empty", "version": "1"},
    }});
    // The question for the revision of the protocol, a ping and the handshake.
    let server = format!(
        "sh -c 'read a; echo \"$0\"; read b; read c; echo \"$1\"; cat > /dev/null' '{unknown}' '{answer}'"
    );
    let run = lm(&["mcp", "tools", "--mcp", &server], "");
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (Some(0), "", "note: MCP server `sh` has no tools\n")
    );
}

#[test]
fn environment_secrets_do_not_reach_servers() {
    let script = "echo \"[$SECRET_TOKEN] [$GREETING] ${PATH:+path} ${HOME:+home}\" >&2; exit 1";
    let server = json!({"command": "sh", "args": ["-c", script], "env": {"GREETING": "hello"}});
    let file = text_file(json!({"mcpServers": {"a": server}}).to_string().as_bytes());
    let mut command = Command::new(LM);
    command.args(["mcp", "tools", "--mcp-config", shown(file.path())]);
    command.env("SECRET_TOKEN", "secret").env("HOME", "/").env_remove("LM_LOG");
    let output = command.output().expect("the program runs");
    let err = String::from_utf8(output.stderr).expect("text");
    assert!(err.contains("the last line of its stderr: [] [hello] path home\n"), "{err}");
}

#[test]
fn server_name_resolves_tool_name_conflict() {
    let message = error(&["chat", "--tools", "demo", "--mcp", &format!("{LM} mcp serve")], "");
    let expected = "tool `get_weather` of MCP server `lm` has the name of a tool of --tools: --mcp NAME=… puts `NAME_` before the names of \
                    the server's tools";
    assert_eq!(message, expected);
    let server = format!("{LM} mcp serve");
    let run = lm(&["mcp", "tools", "--mcp", &server, "--mcp", &server], "");
    let hint = "hint: --mcp NAME=… puts `NAME_` before the names of a server's tools\n";
    assert!(run.code == Some(1) && run.err.ends_with(hint), "{}", run.err);
}

#[test]
fn wrong_usage_is_rejected() {
    refused(&["mcp", "tools"], "name a server: --mcp COMMAND, --mcp URL or --mcp-config FILE");
    refused(&["mcp", "tools", "--mcp-approve", "all"], "unexpected argument '--mcp-approve'");
    refused(&["mcp", "tools", "--mcp-timeout", "5"], "unexpected argument '--mcp-timeout'");
    refused(&["mcp", "serve", "--tools", "tools.json"], "tools declared in a file have no code to serve");
    refused(&["mcp", "serve", "--http", "nowhere"], "expected a port, or an address such as 127.0.0.1:8000");
    refused(&["chat", "--mcp", "a 'b"], "a quote is not closed");
    let message = error(&["mcp", "serve", "--http", "0.0.0.0:0"], "");
    assert!(message.ends_with("name the hosts that clients use to reach it"), "{message}");
}
