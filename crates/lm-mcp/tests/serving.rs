//! Our server, driven by the client of the Python SDK, and by requests that it must refuse.

mod common;

use common::{installed, script, shown, wait_for};
use lm_mcp::{Error, HttpListen, Listen, Server, serve};
use lm_tools::{CallContext, Map, ToolAnnotations, Toolset, Value, tool};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Waits until it is cancelled, which it notes in a file.
#[tool]
async fn wait(context: &CallContext, file: String) -> String {
    std::fs::write(&file, "begun").expect("a folder of ours");
    let context = context.clone();
    let (done, waiting) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        while !context.is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::write(&file, "cancelled").expect("a folder of ours");
        let _ = done.send(());
    });
    let _ = waiting.await;
    "cancelled".to_owned()
}

/// Counts to three.
#[tool]
fn count(context: &CallContext) -> u32 {
    (1..=3).for_each(|number| context.progress(format!("at {number}")));
    3
}

/// Fails for a reason.
#[tool]
fn fail(reason: String) -> Result<Value, String> {
    Err(reason)
}

/// Runs the Python client against a server of ours; returns its observations.
fn drive(venv: &Path, args: &[&str], commands: &[Value]) -> Vec<Value> {
    let mut child = Command::new(venv.join("bin/python"))
        .arg(script("client.py"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("is piped");
    for command in commands {
        writeln!(input, "{command}").expect("it reads");
    }
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn our_server() -> (Server, String) {
    let tools =
        lm_tools::demo().with(wait::tool()).and_then(|tools| tools.with(fail::tool())).expect("two names");
    let tools = tools.with(Doubled).and_then(|tools| tools.with(count::tool())).expect("two names");
    let server = serve(tools, Listen::Http(HttpListen::default())).expect("listens");
    let url = server.url().expect("it listens");
    (server, url)
}

/// A tool with hints and a schema of its result.
struct Doubled;

impl lm_tools::Tool for Doubled {
    fn spec(&self) -> lm_tools::ToolSpec {
        let parameters =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        lm_tools::ToolSpec::new("double", "Doubles a number.", parameters)
    }

    fn call(&self, arguments: Map<String, Value>, _: &CallContext) -> lm_tools::ToolOutput {
        Ok(json!({"doubled": 2 * arguments["n"].as_i64().unwrap_or_default()})).into()
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() }
    }

    fn output_schema(&self) -> Option<Value> {
        Some(
            json!({"type": "object", "properties": {"doubled": {"type": "integer"}}, "required": ["doubled"]}),
        )
    }
}

/// Drives our server with the Python client, in a version of the protocol.
fn check_our_server(mode: &[&str], version: &str) {
    let Some(venv) = installed("venv") else { return };
    let (_server, url) = our_server();
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| shown(&folder.path().join(name));
    let seen = drive(
        &venv,
        &[mode, &["http", &url]].concat(),
        &[
            json!({"list": true}),
            json!({"call": "calculate", "arguments": {"expression": "6 * 7"}}),
            json!({"call": "get_weather", "arguments": {"location": "Paris"}}),
            json!({"call": "double", "arguments": {"n": 4}}),
            json!({"call": "fail", "arguments": {"reason": "no ink"}}),
            json!({"call": "calculate", "arguments": {"expression": 5}}),
            json!({"call": "absent"}),
            json!({"call": "wait", "arguments": {"file": file("late")}, "timeout": 1}),
            json!({"cancel": "wait", "arguments": {"file": file("cancelled")}, "after": 1}),
            json!({"call": "calculate", "arguments": {"expression": "1 + 1"}}),
            json!({"call": "count", "progress": true}),
        ],
    );
    assert_eq!(seen[0]["version"], version);
    let tools = seen[0]["tools"].as_array().expect("a list");
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(
        names,
        ["get_weather", "get_stock_price", "current_time", "calculate", "wait", "fail", "double", "count"]
    );
    assert_eq!(tools[6]["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(tools[6]["outputSchema"]["required"], json!(["doubled"]));
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["location"]));
    let text = |index: usize| &seen[index]["result"]["content"][0]["text"];
    assert_eq!((text(1), &seen[1]["result"]["isError"]), (&json!("42"), &json!(false)));
    assert_eq!(seen[2]["result"]["structuredContent"]["temperature"], 72);
    assert_eq!(seen[3]["result"]["structuredContent"], json!({"doubled": 8}));
    assert_eq!((text(4), &seen[4]["result"]["isError"]), (&json!("no ink"), &json!(true)));
    assert_eq!(text(5), "argument `expression`: expected string, got 5");
    assert!(
        seen[6]["error"].as_str().is_some_and(|error| error.contains("there is no tool `absent`")),
        "{}",
        seen[6]
    );
    assert!(seen[7]["error"].as_str().is_some_and(|error| error.contains("timed out")), "{}", seen[7]);
    assert_eq!(seen[8], json!({"cancelled": true}));
    for name in ["late", "cancelled"] {
        let notes = || std::fs::read_to_string(file(name)).unwrap_or_default();
        wait_for("the call is cancelled", || notes() == "cancelled");
    }
    assert_eq!(text(9), "2");
    assert_eq!(seen[10]["progress"], json!([[1.0, "at 1"], [2.0, "at 2"], [3.0, "at 3"]]));
}

#[test]
fn the_python_client_calls_our_tools_in_the_version_with_a_handshake() {
    check_our_server(&["--legacy"], "2025-11-25");
}

#[test]
fn the_python_client_calls_our_tools_in_the_version_without_a_handshake() {
    check_our_server(&[], "2026-07-28");
}

#[test]
fn our_server_refuses_other_hosts_and_pages_of_other_origins() {
    let (server, _) = our_server();
    let addr = server.local_addr().expect("it listens");
    let status = |host: &str, origin: &str| {
        use std::io::Read;
        let mut stream = TcpStream::connect(addr).expect("it listens");
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let body = body.to_string();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{origin}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .expect("it reads");
        let mut line = [0; 12];
        stream.read_exact(&mut line).expect("it answers");
        String::from_utf8_lossy(&line[9..]).into_owned()
    };
    let host = addr.to_string();
    assert_eq!(status(&host, ""), "200");
    assert_eq!(status(&host, "Origin: http://localhost:6274\r\n"), "200");
    assert_eq!(status("evil.example", ""), "403");
    assert_eq!(status(&host, "Origin: https://evil.example\r\n"), "403");
    let open = HttpListen { addr: ([0, 0, 0, 0], 0).into(), ..HttpListen::default() };
    assert!(matches!(serve(Toolset::new(), Listen::Http(open)), Err(Error::OpenAddress { .. })));
}
