//! Revisions of the protocol: the one without a handshake, and the handshake for servers that do not know it.

use crate::common::raw::{self, discovered, handshake, listed, methods, noting as client};
use crate::common::{LONG, wait_for};
use lm_mcp::{Error, HttpListen, Listen, Mcp, McpLimits, Protocol, ServerConfig, serve};
use lm_tools::Value;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn server_without_a_handshake_gets_complete_requests() {
    let (builder, seen, _runtime) = client(|raw, request| match request["method"].as_str() {
        Some("server/discover") => drop(raw.answer(request, &discovered())),
        Some("tools/list") => drop(raw.answer(request, &listed())),
        Some("tools/call") => drop(raw.answer(request, &raw::text("ok"))),
        Some("subscriptions/listen") => {
            let id = &request["id"];
            let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
            let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {"toolsListChanged": true}, "_meta": meta}});
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                "params": {"_meta": meta}});
            raw.send_line(acknowledged.to_string().as_bytes());
            raw.send_line(changed.to_string().as_bytes());
        }
        _ => {}
    });
    let mcp = builder.connect().expect("connects");
    assert_eq!(raw::call(&mcp), "ok");
    wait_for("the tools are listed again", || mcp.generation() > 0);
    assert_eq!(mcp.servers()[0].program.as_deref(), Some("raw 1"));
    let methods = methods(&seen);
    assert_eq!(methods[..2], ["server/discover", "ping"]);
    assert!(!methods.iter().any(|method| method == "initialize" || method == "notifications/initialized"));
    for request in seen.lock().expect("no panic").iter().filter(|request| request["method"] != "ping") {
        let meta = &request["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{request}");
    }
}

#[test]
fn tools_are_listed_again_after_a_lost_subscription() {
    let mut is_first = true;
    let (builder, seen, _runtime) = client(move |raw, request| match request["method"].as_str() {
        Some("server/discover") => drop(raw.answer(request, &discovered())),
        Some("tools/list") => drop(raw.answer(request, &listed())),
        Some("subscriptions/listen") => {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
            let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {"toolsListChanged": true}, "_meta": meta}});
            raw.send_line(acknowledged.to_string().as_bytes());
            // The first one ends at once.
            if std::mem::take(&mut is_first) {
                raw.answer(request, &json!({"resultType": "complete", "_meta": meta}));
            }
        }
        _ => {}
    });
    let mcp = builder.connect().expect("connects");
    wait_for("the tools are listed again", || mcp.generation() > 0);
    let count = methods(&seen).iter().filter(|method| *method == "subscriptions/listen").count();
    assert_eq!(count, 2);
}

#[test]
fn silent_probe_costs_no_seconds() {
    let start = Instant::now();
    let (builder, seen, _runtime) = client(|raw, request| match request["method"].as_str() {
        Some("ping") => drop(raw.answer(request, &json!({}))),
        Some("initialize") => drop(raw.answer(request, &handshake())),
        Some("tools/list") => drop(raw.answer(request, &json!({"tools": [raw::tool("t")]}))),
        _ => {} // It ignores others.
    });
    let mcp = builder.connect().expect("connects");
    assert_eq!(mcp.tool_list().len(), 1);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let expected = ["server/discover", "ping", "initialize", "notifications/initialized", "tools/list"];
    assert_eq!(methods(&seen), expected);
}

#[test]
fn server_ignoring_all_but_the_handshake_has_a_time_limit() {
    let (builder, _, _runtime) = client(|raw, request| match request["method"].as_str() {
        Some("initialize") => {
            // A late answer to the question comes first.
            raw.send_line(raw::response(&json!(0), &discovered()).as_bytes());
            raw.answer(request, &handshake());
        }
        Some("tools/list") => drop(raw.answer(request, &json!({"tools": [raw::tool("t")]}))),
        _ => {}
    });
    let probe_timeout = Duration::from_millis(300);
    let limits = McpLimits { start_timeout: LONG, probe_timeout, ..McpLimits::default() };
    assert_eq!(builder.limits(limits).connect().expect("connects").tool_list().len(), 1);
}

#[test]
fn first_answer_of_another_kind_is_no_revision() {
    let (builder, seen, _runtime) = client(|raw, request| match request["method"].as_str() {
        Some("server/discover" | "initialize") => drop(raw.answer(request, &handshake())),
        Some("tools/list") => drop(raw.answer(request, &json!({"tools": [raw::tool("t")]}))),
        _ => {}
    });
    assert_eq!(builder.connect().expect("connects").tool_list().len(), 1);
    assert!(methods(&seen).contains(&"initialize".to_owned()));
}

#[test]
fn configured_revision_is_the_only_one() {
    let server = serve(lm_tools::demo(), Listen::Http(HttpListen::default())).expect("listens");
    let url = server.url().expect("an address");
    for protocol in [Protocol::Auto, Protocol::V2025_11_25, Protocol::V2026_07_28] {
        let config = ServerConfig { protocol, ..ServerConfig::http("demo", &url) };
        let mcp = Mcp::builder().server(config).connect().expect("connects");
        assert_eq!(mcp.tool_list().len(), 4, "{protocol:?}");
    }
}

#[cfg(unix)]
#[test]
fn program_of_another_revision_is_an_error() {
    let answers = r#"read -r line; printf '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"unknown"}}\n'; cat > /dev/null"#;
    let config =
        ServerConfig { protocol: Protocol::V2026_07_28, ..ServerConfig::command("s", "sh", ["-c", answers]) };
    let error = Mcp::builder().server(config).connect().expect_err("it has no such revision");
    assert!(matches!(&error, Error::Connect { server, .. } if server == "s"), "{error}");
}

/// A program that ends when it is asked for its revision is started once more; one that answers late, and
/// then refuses the handshake, is used as it is.
#[cfg(unix)]
#[test]
fn programs_that_end_or_refuse_the_handshake_are_usable() {
    let folder = tempfile::tempdir().expect("a folder");
    let starts = folder.path().join("starts");
    let script = |text: &str| format!("echo start >> '{}'; {text}", starts.display());
    let answer = |result: &Value| {
        format!("printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}}\\n' \"$id\" '{result}'")
    };
    let serving = |on_discover: &str, on_initialize: &str| {
        let list = answer(&listed());
        script(&format!(
            r#"while read -r line; do
            id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
            case "$line" in
            *'"server/discover"'*) {on_discover};;
            *'"initialize"'*) {on_initialize};;
            *'"tools/list"'*) {list};;
            esac
            done"#
        ))
    };
    let refuse =
        r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no handshake"}}\n' "$id""#;
    for (text, expected) in [
        (serving("exit 1", &answer(&handshake())), "start\nstart\n"),
        (serving(&format!("sleep 0.5; {}", answer(&discovered())), refuse), "start\n"),
    ] {
        std::fs::write(&starts, "").expect("a file");
        let config = ServerConfig::command("s", "sh", ["-c", text.as_str()]);
        let probe_timeout = Duration::from_millis(300);
        let limits = McpLimits { start_timeout: LONG, probe_timeout, ..McpLimits::default() };
        let mcp = Mcp::builder().server(config).limits(limits).connect().expect("connects");
        assert_eq!(mcp.tool_list().len(), 1);
        assert_eq!(std::fs::read_to_string(&starts).expect("a file"), expected, "{text}");
    }
}

#[cfg(unix)]
#[test]
fn revision_is_asked_for_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes");
    let script = format!(
        r#"while read -r line; do
        printf '%s\n' "$line" >> '{}'
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case "$line" in
        *'"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"unknown"}}}}\n' "$id";;
        *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{}}}\n' "$id";;
        *'"tools/list"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[{}]}}}}\n' "$id";;
        *'"tools/call"'*) exit 1;;
        esac
        done"#,
        notes.display(),
        handshake(),
        raw::tool("t"),
    );
    let mcp = Mcp::builder().server(ServerConfig::command("s", "sh", ["-c", script.as_str()])).connect();
    let mcp = mcp.expect("connects");
    let error = raw::call(&mcp)["error"].to_string();
    assert!(error.contains("has ended"), "{error}");
    raw::call(&mcp);
    let notes = std::fs::read_to_string(&notes).expect("a file");
    let count = |method: &str| notes.lines().filter(|line| line.contains(&format!("\"{method}\""))).count();
    assert_eq!((count("server/discover"), count("initialize"), count("tools/call")), (1, 2, 2), "{notes}");
}
