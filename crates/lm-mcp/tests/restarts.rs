//! Programs that end: the call that ran fails, and the next one starts the program again.
#![cfg(unix)]

use crate::common::raw::SOON;
use crate::common::wait_for;
use lm_mcp::{Mcp, McpLimits, ServerConfig};
use lm_tools::ToolCall;
use std::time::Instant;

/// A server whose tool returns its process id. `$1` calls are answered. Then, for `$2`,
/// - `during`: it ends at the next call,
/// - `after`: it ends after the last answer,
/// - `hang`: it reads nothing from the next call on,
/// - `slow`: it does not answer the next call.
const SERVER: &str = r#"
n=0
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"pid","inputSchema":{"type":"object"}}]}' ;;
    *'"ping"'*) answer '{}' ;;
    *'"tools/call"'*)
      n=$((n + 1))
      case "$n-$2" in
        "$(($1 + 1))-slow") continue ;;
        "$(($1 + 1))-hang") exec sleep 1000 ;;
        "$(($1 + 1))-during") exit 3 ;;
      esac
      answer "{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}"
      [ "$2" = after ] && [ "$n" -eq "$1" ] && exit 0 ;;
  esac
done
"#;

fn connect(calls: &str, end: &str) -> Mcp {
    let server = ServerConfig::command("s", "sh", ["-c", SERVER, "sh", calls, end]);
    Mcp::builder().server(server).connect().expect("a server")
}

fn impatient(calls: &str, end: &str) -> Mcp {
    let server = ServerConfig::command("s", "sh", ["-c", SERVER, "sh", calls, end]);
    let limits = McpLimits { call_timeout: Some(SOON), ..McpLimits::default() };
    Mcp::builder().server(server).limits(limits).connect().expect("a server")
}

fn call(mcp: &Mcp) -> String {
    let result = mcp.tools().call(&ToolCall::new("s_pid", Default::default()));
    result.content.text()
}

fn is_connected(mcp: &Mcp) -> bool {
    mcp.servers()[0].is_connected
}

#[test]
fn program_that_ends_in_a_call_is_started_again_by_the_next() {
    let mcp = connect("2", "during");
    let first = call(&mcp);
    assert!(first.parse::<u32>().is_ok(), "{first}");
    assert_eq!(call(&mcp), first, "the same process");
    let failed = call(&mcp);
    assert!(failed.contains("MCP server `s` has ended (exit status: 3) during the call"), "{failed}");
    assert!(failed.contains("the next call starts the server again"), "{failed}");
    assert!(!is_connected(&mcp));
    assert_eq!(mcp.servers()[0].tools, ["s_pid"], "its tools are kept");
    let generation = mcp.generation();
    let again = call(&mcp);
    assert!(again.parse::<u32>().is_ok() && again != first, "{again}");
    assert!(is_connected(&mcp));
    assert_eq!(mcp.generation(), generation);
}

#[test]
fn program_that_ends_between_calls_costs_no_call() {
    let mcp = connect("1", "after");
    let mut seen = vec![call(&mcp)];
    for _ in 0..2 {
        wait_for("it ends", || !is_connected(&mcp));
        seen.push(call(&mcp));
    }
    assert!(seen.iter().all(|pid| pid.parse::<u32>().is_ok()), "{seen:?}");
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[test]
fn restarts_are_limited() {
    let mcp = connect("0", "during");
    let began = Instant::now();
    for _ in 0..4 {
        let failed = call(&mcp);
        assert!(failed.contains("during the call"), "{failed}");
    }
    assert!(began.elapsed().as_millis() >= 2500, "the later restarts wait");
    let refused = call(&mcp);
    assert!(refused.contains("MCP server `s` has ended again after 3 restarts within 60 s"), "{refused}");
}

#[test]
fn closed_client_starts_nothing() {
    let mcp = connect("9", "during");
    let tools = mcp.tools();
    drop(mcp);
    let failed = tools.call(&ToolCall::new("s_pid", Default::default())).content.text();
    assert!(failed.contains("the call was not run"), "{failed}");
}

#[test]
fn program_that_hangs_is_killed_and_started_again_by_the_next_call() {
    let mcp = impatient("1", "hang");
    let first = call(&mcp);
    assert!(first.parse::<u32>().is_ok(), "{first}");
    let late = call(&mcp);
    assert!(late.contains("no result after 1 s"), "{late}");
    let again = call(&mcp);
    assert!(again.parse::<u32>().is_ok() && again != first, "{again}");
    let first = rustix::process::Pid::from_raw(first.parse().expect("a process id")).expect("not 0");
    wait_for("it is killed", || rustix::process::test_kill_process(first).is_err());
}

#[test]
fn program_with_a_slow_call_is_not_killed() {
    let mcp = impatient("1", "slow");
    let first = call(&mcp);
    let late = call(&mcp);
    assert!(late.contains("no result after 1 s"), "{late}");
    assert_eq!(call(&mcp), first, "the same process");
}
