//! Calls of MCP servers' tools in a chat on a terminal: questions, and Ctrl-C.
#![cfg(all(unix, feature = "mcp"))]

use crate::reference;
use std::fs;
use std::time::{Duration, Instant};

use crate::pty::{TIMEOUT_MS, Terminal, state};

#[test]
fn approved_server_calls_run() {
    let state = state();
    let server = format!("{} mcp serve", env!("CARGO_BIN_EXE_lm"));
    let mut terminal = Terminal::chat(&["--mcp", &server, "--mcp-approve", "all"], state.path());
    terminal.ask("/tools", "get_weather(location) [lm]: ");
    let question = "Run it? [yes/no/always] ";
    let shown = terminal.ask("How is the weather in Paris?", question);
    let call = "get_weather({\"location\": \"Paris\"})\r\nget_weather of server \"lm\" says that it changes nothing.\r\n";
    assert!(shown.contains(call), "{shown}");
    terminal.ask("perhaps", question);
    terminal.ask("yes", "The weather in Paris is sunny with a temperature of 72");
    terminal.expect("> ");
    terminal.ask("How is the weather in Paris?", question);
    terminal.interrupt();
    terminal.expect("the message is taken back");
    terminal.expect("> ");
    terminal.ask("How is the weather in Paris?", question);
    terminal.ask("no", "\"error\": \"permission denied: the user said no\"}");
    terminal.expect("Sorry, that did not work: permission denied.");
    terminal.expect("> ");
    terminal.ask("How is the weather in Paris?", question);
    terminal.ask("always", "temperature of 72");
    terminal.expect("> ");
    let shown = terminal.ask("How is the weather in Paris?", "temperature of 72");
    assert!(!shown.contains("Run it?"), "{shown}");
    terminal.expect("> ");
    terminal.exit();
}

/// A server whose tool asks the user before it answers with the answer.
const CURIOUS: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"get_weather","description":"Gets the weather of a city.","inputSchema":{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}}]}}\n' "$id" ;;
    *'"tools/call"'*) call=$id; printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Which day?","requestedSchema":{"type":"object","properties":{"day":{"type":"string","enum":["today","tomorrow"]},"hour":{"type":"integer"}},"required":["day"]}}}\n' ;;
    *'"id":900'*) answer=$(printf '%s' "$line" | sed 's/.*"result"://; s/}$//; s/"/\\"/g'); printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$call" "$answer" ;;
  esac
done
"#;

#[test]
fn questions_of_a_server_are_answered_on_the_terminal() {
    let state = state();
    let script = state.path().join("curious.sh");
    fs::write(&script, CURIOUS).expect("is written");
    let server = format!("sh {}", script.display());
    let mut terminal = Terminal::chat(&["--mcp", &server, "--mcp-approve", "none"], state.path());
    terminal.ask("How is the weather in Paris?", "server \"sh\" asks: Which day?");
    terminal.expect("day [today/tomorrow] ");
    terminal.ask("never", "expected one of today, tomorrow");
    terminal.expect("day [today/tomorrow] ");
    terminal.ask("tomorrow", "hour [integer; optional] ");
    let shown = terminal.ask("9", "\"accept");
    assert!(!shown.contains("expected"), "{shown}");
    terminal.expect("tomorrow");
    terminal.expect("> ");
    terminal.ask("How is the weather in Paris?", "day [today/tomorrow] ");
    terminal.interrupt();
    terminal.expect("the message is taken back");
    terminal.expect("> ");
    terminal.exit();
}

#[test]
fn server_on_a_terminal_waits_for_a_client() {
    let state = state();
    let mut terminal = Terminal::start(&["mcp", "serve"], state.path());
    terminal.expect("waiting for an MCP client on standard input; --http PORT serves over HTTP, Ctrl-C ends");
    terminal.interrupt();
    terminal.end();
}

#[test]
fn interrupt_cancels_the_running_call_of_a_server() {
    let Some(python) = reference::python() else { return };
    let state = state();
    let notes = state.path().join("notes");
    let script = reference::script("slow.py");
    let server = format!("{} {} {}", python.display(), script.display(), notes.display());
    let mut terminal = Terminal::chat(&["--mcp", &server, "--mcp-approve", "none"], state.path());
    terminal.ask("How is the weather in Paris?", "get_weather(");
    let wait_for = |expected: &str| {
        let start = Instant::now();
        while fs::read_to_string(&notes).unwrap_or_default() != expected {
            assert!(start.elapsed() < Duration::from_millis(TIMEOUT_MS), "no {expected:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for("started\n");
    terminal.interrupt();
    terminal.expect("the message is taken back");
    wait_for("started\ncancelled\n");
    terminal.exit();
}
