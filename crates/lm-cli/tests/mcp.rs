//! End-to-end tests of `lm mcp` and `lm chat --mcp`: the program with itself, and with the client of the
//! Python SDK.
#![cfg(feature = "mcp")]

use crate::reference;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::program::{lm, ok, parse, shown, text_file};
use serde_json::json;

const LM: &str = env!("CARGO_BIN_EXE_lm");

fn serve() -> String {
    format!("{LM} mcp serve")
}

/// A server on a free port; it ends with the value.
struct Listening(Child);

impl Listening {
    fn start() -> (Self, String) {
        let mut child = Command::new(LM)
            .args(["mcp", "serve", "--http", "0"])
            .env_remove("LM_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("is piped")).read_line(&mut line).expect("it says where");
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect("an address");
        (Self(child), url.trim_end_matches(';').to_owned())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn chat_calls_the_tools_of_a_server() {
    let (_server, url) = Listening::start();
    for source in [&serve(), &url] {
        let run = lm(&["chat", "--mcp", source, "--mcp-approve", "none"], "How is the weather in Paris?\n");
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(run.err.contains("→ get_weather({\"location\": \"Paris\"})"), "{}", run.err);
        assert!(run.err.contains("\"temperature\": 72"), "{}", run.err);
        assert_eq!(
            run.out,
            "The weather in Paris is sunny with a temperature of 72°F and humidity of 50%.\n"
        );
    }
}

#[test]
fn wrong_path_of_a_server_is_explained() {
    let (_server, url) = Listening::start();
    let run = lm(&["mcp", "tools", "--mcp", &url.replace("/mcp", "/wrong")], "");
    let expected = "HTTP 404 Not Found: nothing is at this path; MCP servers often use /mcp\n";
    assert!(run.code == Some(1) && run.err.ends_with(expected), "{}", run.err);
}

#[test]
fn calls_needing_approval_do_not_run_without_terminal() {
    let run =
        lm(&["chat", "--mcp", &serve(), "--mcp-approve", "all"], "How is the weather in Paris?\nHello\n");
    assert!(run.err.contains("note: `get_weather` was not called: without a terminal"), "{}", run.err);
    let reason = "permission denied: there is no one to ask";
    assert!(run.err.contains(&format!("\"error\": \"{reason}\"")), "{}", run.err);
    let answers = "Sorry, that did not work: permission denied.\nHello! How can I help you?\n";
    assert_eq!((run.code, run.out.as_str()), (Some(0), answers), "{}", run.err);
    assert!(!run.err.contains("temperature"), "{}", run.err);
}

#[test]
fn tools_of_servers_are_listed() {
    let config = json!({"mcpServers": {
        "lm": {"command": LM, "args": ["mcp", "serve"]},
        "off": {"command": "no-such-program", "disabled": true},
    }});
    let file = text_file(config.to_string().as_bytes());
    let run = lm(&["mcp", "tools", "--mcp-config", shown(file.path())], "");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let names: Vec<_> = run.out.lines().map(|line| line.split('(').next().expect("a name")).collect();
    assert_eq!(names, ["lm_get_weather", "lm_get_stock_price", "lm_current_time", "lm_calculate"]);
    assert_eq!(run.err, "");
    let named = ok(&["mcp", "tools", "--mcp", &format!("a={}", serve())], "");
    assert!(
        named.contains("a_calculate(expression) [a]: Calculate the result of an expression\n"),
        "{named}"
    );
}

#[cfg(unix)]
#[test]
fn server_names_cannot_start_a_line() {
    let schema = json!({"type": "object", "properties": {"x\nerror: y": {"type": "string"}}});
    let tools = json!([
        {"name": "a", "description": "Adds.\rerror: z", "inputSchema": schema},
        {"name": "b\nerror: c\u{202e}", "inputSchema": {"type": "array"}},
    ]);
    let info = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
    let answer = |kind: &str, value| {
        format!("printf '%s\\n' '{}'", json!({"jsonrpc": "2.0", "id": "ID", kind: value}))
    };
    let script = format!(
        "while read -r line; do
            id=$(printf '%s' \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/')
            case $line in
                *initialize\\\"*) {} ;;
                *tools/list*) {} ;;
                *server/discover*) {} ;;
            esac | sed \"s/\\\"ID\\\"/$id/\"
        done",
        answer("result", info),
        answer("result", json!({"tools": tools})),
        answer("error", json!({"code": -32601, "message": "unknown"})),
    );
    let file = text_file(script.as_bytes());
    let run = lm(&["mcp", "tools", "--mcp", &format!("sh {}", shown(file.path()))], "");
    assert_eq!(run.out, "a(x\\nerror: y) [sh]: Adds.\\rerror: z\n", "{}", run.err);
    let expected = r"note: tool `b\nerror: c\u{202e}` of MCP server `sh` cannot be used: its arguments are";
    assert!(run.err.starts_with(expected) && run.err.lines().count() == 1, "{}", run.err);
}

#[test]
fn python_client_calls_demo_tools_over_stdio() {
    let Some(python) = reference::python() else { return };
    let mut client = Command::new(python)
        .arg(reference::script("client.py"))
        .args(["stdio", LM, "mcp", "serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = client.stdin.take().expect("is piped");
    for command in [
        json!({"list": true}),
        json!({"call": "get_weather", "arguments": {"location": "Paris"}}),
        json!({"call": "calculate", "arguments": {"expression": "twelve"}}),
        json!({"call": "calculate", "arguments": {"expression": "6 * 7"}}),
    ] {
        writeln!(input, "{command}").expect("it reads");
    }
    drop(input);
    let output = client.wait_with_output().expect("it ends");
    let lines = String::from_utf8(output.stdout).expect("text");
    let seen: Vec<_> = lines.lines().map(parse).collect();
    assert_eq!(seen[0]["tools"].as_array().map(Vec::len), Some(4));
    assert_eq!(seen[1]["result"]["structuredContent"]["temperature"], 72);
    assert_eq!(seen[2]["result"]["isError"], true);
    assert_eq!(seen[3]["result"]["content"][0]["text"], "42");
    assert!(output.status.success());
}

/// A server of a resource and of a prompt.
#[cfg(unix)]
const LIBRARY: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"; continue ;;
    *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"resources/list"'*) r='{"resources":[{"uri":"a://b","name":"b","size":5}]}' ;;
    *'"resources/templates/list"'*) r='{"resourceTemplates":[{"uriTemplate":"a://{x}","name":"any","description":"One of\nthem."}]}' ;;
    *'"resources/read"'*) r='{"contents":[{"uri":"a://b","text":"words"}]}' ;;
    *'"prompts/list"'*) r='{"prompts":[{"name":"ask","description":"Asks.","arguments":[{"name":"who","required":true}]}]}' ;;
    *'"prompts/get"'*) r='{"messages":[{"role":"user","content":{"type":"text","text":"Who are you?"}}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

#[cfg(unix)]
#[test]
fn resources_and_prompts_begin_the_next_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("library.sh");
    std::fs::write(&script, LIBRARY).expect("is written");
    let server = format!("lib=sh {}", script.display());
    let lines = "/resources\n/prompts\n/resource a://b\n/prompt ask who=you\nHello\n/history\n/prompt ask\n/resource\n";
    let run = lm(&["chat", "--mcp", &server], lines);
    for expected in [
        "a://b [lib] b, 5 bytes",
        "a://{x} [lib] any: One of",
        "ask who=… [lib]: Asks.",
        "(a://b: 13 characters before the next message",
        "(ask: 12 characters before the next message",
        "user: [a://b]\nwords\n\nWho are you?\n\nHello",
        "the prompt `ask` needs the argument `who`",
        "(nothing is inserted)",
    ] {
        assert!(run.err.contains(expected), "{expected}: {}", run.err);
    }
}

#[cfg(unix)]
#[test]
fn resources_and_prompts_are_listed_beside_tools() {
    let file = text_file(LIBRARY.as_bytes());
    let own = format!("lm={}", serve());
    let run = lm(&["mcp", "tools", "--mcp", &format!("lib=sh {}", shown(file.path())), "--mcp", &own], "");
    let listed: Vec<&str> = run.out.lines().skip(4).collect();
    let expected = [
        "resource: a://b [lib] b, 5 bytes",
        "resource template: a://{x} [lib] any: One of",
        "prompt: ask who=… [lib]: Asks.",
    ];
    assert_eq!(listed, expected, "{}", run.out);
    assert_eq!((run.code, run.err.as_str()), (Some(0), "note: MCP server `lib` has no tools\n"));
}

#[test]
fn without_servers_there_are_no_resources() {
    let run = lm(&["chat"], "/resources\n/prompts\n/resource a://b\n/prompt\n");
    for expected in [
        "(no resources; MCP servers have them: --mcp SERVER)",
        "(no prompts; MCP servers have them: --mcp SERVER)",
        "there is no MCP server; start with --mcp SERVER",
        "/prompt needs the name of a prompt; /prompts shows them",
    ] {
        assert!(run.err.contains(expected), "{expected}: {}", run.err);
    }
}
