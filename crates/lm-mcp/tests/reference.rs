//! Servers made with the reference SDKs in Python and TypeScript, which `tests/reference/install` installs.

use crate::common::{LONG, installed, script, shown, wait_for};
use lm_mcp::{Error, Mcp, McpLimits, ServerConfig};
use lm_tools::{CancelHandle, ToolAnnotations, ToolCall, Value};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Command of the Python server, without the transport.
fn python() -> Option<Vec<String>> {
    let venv = installed("venv")?;
    Some(vec![shown(&venv.join("bin/python")), script("server.py")])
}

/// Command of the TypeScript server, without the transport.
fn node() -> Option<Vec<String>> {
    let npm = installed("npm")?;
    let index = npm.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    Some(vec!["node".to_owned(), shown(&index)])
}

/// A server that listens; it ends with the value.
struct Listening {
    child: Child,
    port: u16,
    url: String,
}

impl Listening {
    /// Starts a server. `{port}` in an argument is its port, as is `PORT` in its environment.
    fn start(command: &[String], args: &[&str]) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let args = args.iter().map(|arg| arg.replace("{port}", &port.to_string()));
        let child = Command::new(&command[0])
            .args(&command[1..])
            .args(args)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let server = Self { child, port, url: format!("http://127.0.0.1:{port}/mcp") };
        wait_for("the server listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        server
    }

    fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it is ours");
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.kill();
    }
}

fn stdio(command: &[String], args: &[&str]) -> ServerConfig {
    let args = command[1..].iter().map(String::as_str).chain(args.iter().copied());
    ServerConfig::command("r", command[0].as_str(), args)
}

fn connect(server: ServerConfig, call_timeout: Duration) -> Mcp {
    let limits = McpLimits { call_timeout: Some(call_timeout), ..McpLimits::default() };
    Mcp::builder().server(server).limits(limits).connect().expect("connects")
}

fn call_of(name: &str, arguments: Value) -> ToolCall {
    ToolCall::from_json(json!({"name": name, "arguments": arguments})).expect("a call")
}

fn call(mcp: &Mcp, name: &str, arguments: Value) -> Value {
    mcp.tools().call(&call_of(name, arguments)).to_json()["content"].clone()
}

fn names(mcp: &Mcp) -> Vec<String> {
    mcp.tools().specs().iter().map(|spec| spec.name().to_owned()).collect()
}

/// Lists, calls, and reads the errors of the Python server.
fn check_python(server: ServerConfig) {
    let mcp = connect(server, LONG);
    let (tools, described) = (mcp.tools(), &mcp.servers()[0]);
    assert_eq!(names(&mcp), ["r_add", "r_fail", "r_wait", "r_grow", "r_crash"]);
    assert_eq!(described.instructions.as_deref(), Some("Tools for tests."));
    assert!(described.program.as_ref().is_some_and(|program| program.starts_with("reference ")));
    let hints = ToolAnnotations {
        title: Some("Addition".to_owned()),
        read_only: Some(true),
        ..ToolAnnotations::default()
    };
    assert_eq!(tools.annotations("r_add"), Some(&hints));
    assert!(tools.annotations("r_fail").is_some_and(ToolAnnotations::is_destructive));
    assert_eq!(tools.output_schema("r_add").expect("a schema")["properties"]["result"]["type"], "integer");

    assert_eq!(call(&mcp, "r_add", json!({"a": 2, "b": 3})), json!({"result": 5}));
    assert_eq!(
        call(&mcp, "r_fail", json!({"reason": "no ink"}))["error"],
        "Error executing tool fail: no ink"
    );
    let error = &call(&mcp, "r_add", json!({"a": 2, "b": "x"}))["error"];
    assert_eq!(error, "argument `b`: expected integer, got \"x\"");

    let before = mcp.generation();
    assert_eq!(call(&mcp, "r_grow", json!({"name": "extra"})), json!({"result": "extra"}));
    wait_for("the new tool is listed", || mcp.generation() > before);
    assert_eq!(names(&mcp).last().map(String::as_str), Some("r_extra"));
    assert!(call(&mcp, "r_extra", json!({})).to_string().contains("extra"));
}

/// Cancels one call and exceeds the time of another; the Python server notes both.
fn check_cancellation(server: ServerConfig) {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let arguments = |name: &str| json!({"file": shown(&folder.path().join(name))});
    let mcp = connect(server, Duration::from_secs(2));
    let cancel = CancelHandle::new();
    let mut calls = mcp.tools().start(vec![call_of("r_wait", arguments("cancelled"))], &cancel, None);
    wait_for("the call begins", || notes("cancelled") == "started\n");
    cancel.cancel();
    let result = calls.next().expect("one result").to_json();
    assert_eq!(
        result["content"]["error"],
        "the call of MCP server `r` was cancelled; it may have taken effect"
    );
    wait_for("the server cancels the call", || notes("cancelled") == "started\ncancelled\n");

    let error = call(&mcp, "r_wait", arguments("late"))["error"].to_string();
    assert!(error.contains("no result after"), "{error}");
    wait_for("the server cancels the call", || notes("late") == "started\ncancelled\n");
    assert_eq!(call(&mcp, "r_add", json!({"a": 1, "b": 1})), json!({"result": 2}));
}

#[test]
fn python_sdk_tools_are_called_over_stdio() {
    let Some(command) = python() else { return };
    check_python(stdio(&command, &["stdio"]));
}

#[test]
fn python_sdk_tools_are_called_over_http() {
    let Some(command) = python() else { return };
    let server = Listening::start(&command, &["http", "{port}"]);
    check_python(ServerConfig::http("r", server.url.as_str()));
}

#[test]
fn python_sdk_cancels_calls_over_stdio() {
    let Some(command) = python() else { return };
    check_cancellation(stdio(&command, &["stdio"]));
}

#[test]
fn python_sdk_cancels_calls_over_http() {
    let Some(command) = python() else { return };
    let server = Listening::start(&command, &["http", "{port}"]);
    check_cancellation(ServerConfig::http("r", server.url.as_str()));
}

#[test]
fn crashed_program_fails_the_running_call_and_is_started_again() {
    let Some(command) = python() else { return };
    let mcp = connect(stdio(&command, &["stdio"]), LONG);
    let ended = "MCP server `r` has ended (exit status: 3) during the call, which may have taken effect; \
                 the next call starts the server again";
    assert_eq!(call(&mcp, "r_crash", json!({}))["error"], ended);
    assert!(!mcp.servers()[0].is_connected);
    assert_eq!(call(&mcp, "r_add", json!({"a": 1, "b": 1})), json!({"result": 2}));
    assert!(mcp.servers()[0].is_connected);
}

#[test]
fn killed_http_server_fails_running_and_later_calls() {
    let Some(command) = python() else { return };
    let mut server = Listening::start(&command, &["http", "{port}"]);
    let mcp = connect(ServerConfig::http("r", server.url.as_str()), LONG);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes");
    let arguments = json!({"file": shown(&file)});
    let mut calls = mcp.tools().start(vec![call_of("r_wait", arguments)], &CancelHandle::new(), None);
    wait_for("the call begins", || file.exists());
    let killed = Instant::now();
    server.kill();
    let result = calls.next().expect("one result").to_json();
    let message = result["content"]["error"].as_str().expect("an error").to_owned();
    assert!(message.contains("MCP server `r`") && killed.elapsed() < LONG / 2, "{message}");
    let message = call(&mcp, "r_add", json!({"a": 1, "b": 1}))["error"].to_string();
    assert!(message.contains("MCP server `r`"), "{message}");
    let error = Mcp::builder().server(ServerConfig::http("r", server.url.as_str())).connect();
    assert!(matches!(error, Err(Error::Connect { .. })), "nobody listens");
}

/// Lists and calls the tools of the TypeScript server: all kinds of content.
fn check_node(server: ServerConfig) {
    let mcp = connect(server, LONG);
    assert!(names(&mcp).contains(&"r_get-sum".to_owned()), "{:?}", names(&mcp));
    assert_eq!(mcp.problems(), []);
    assert_eq!(call(&mcp, "r_echo", json!({"message": "hello"})), "Echo: hello");
    assert_eq!(call(&mcp, "r_get-sum", json!({"a": 2, "b": 3})), "The sum of 2 and 3 is 5.");
    let weather = call(&mcp, "r_get-structured-content", json!({"location": "Chicago"}));
    assert_eq!(weather, json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}));
    let error = &call(&mcp, "r_get-structured-content", json!({"location": "Rome"}))["error"];
    assert!(
        error.as_str().is_some_and(|error| error.starts_with("argument `location`: \"Rome\" is not one of"))
    );
    let image = call(&mcp, "r_get-tiny-image", json!({}));
    assert_eq!(image[0]["text"], "Here's the image you requested:\n");
    assert_eq!((&image[1]["type"], &image[1]["mime_type"]), (&json!("image"), &json!("image/png")));
    assert_eq!(image.as_array().map(Vec::len), Some(3));
    let links = call(&mcp, "r_get-resource-links", json!({"count": 2}));
    assert!(
        links.as_str().is_some_and(|links| links.matches("[link to demo://resource/").count() == 2),
        "{links}"
    );
    let resource = call(&mcp, "r_get-resource-reference", json!({"resourceType": "Text", "resourceId": 1}));
    assert!(resource.as_str().is_some_and(|text| text.contains("[demo://resource/")), "{resource}");
    let steps = json!({"duration": 0.1, "steps": 2});
    let done = call(&mcp, "r_trigger-long-running-operation", steps);
    assert!(done.as_str().is_some_and(|text| text.starts_with("Long running operation completed")), "{done}");
}

/// Cancels one call of the TypeScript server and exceeds the time of another. The server's tool runs to its
/// end, but its result is not sent. `passed` has the messages of both sides.
fn check_node_cancellation(server: ServerConfig, passed: &Path) {
    let read = |name: &str| std::fs::read_to_string(passed.join(name)).unwrap_or_default();
    let mcp = connect(server, Duration::from_secs(3));
    let slow =
        |seconds: f32| call_of("r_trigger-long-running-operation", json!({"duration": seconds, "steps": 1}));
    let is_notified = |seconds: &str| {
        let id = id_before(&read("client"), seconds);
        let cancelled = format!("\"requestId\":{id},");
        wait_for("the server is notified", || read("client").contains(&cancelled));
        id
    };
    let cancel = CancelHandle::new();
    let mut calls = mcp.tools().start(vec![slow(2.75)], &cancel, None);
    wait_for("the call is sent", || read("client").contains("2.75"));
    cancel.cancel();
    let result = calls.next().expect("one result").to_json();
    let cancelled = "the call of MCP server `r` was cancelled; it may have taken effect";
    assert_eq!(result["content"]["error"], cancelled);
    let id = is_notified("2.75");

    let late = mcp.tools().call(&slow(3600.5)).to_json()["content"]["error"].to_string();
    assert!(late.contains("no result after 3 s"), "{late}");
    is_notified("3600.5");
    assert_eq!(call(&mcp, "r_echo", json!({"message": "hello"})), "Echo: hello");
    let is_answered = |id: &str| read("server").contains(&format!("\"jsonrpc\":\"2.0\",\"id\":{id}}}"));
    // What passes the bytes on may write them to the file after it has sent them.
    wait_for("the answer is in the file", || is_answered(&id_before(&read("client"), "hello")));
    assert!(!is_answered(&id), "the first call has ended");
}

/// Id of the first request with a text.
fn id_before(requests: &str, text: &str) -> String {
    let request = &requests[..requests.find(text).expect("it is sent")];
    let id = &request[request.rfind("\"id\":").expect("it has an id") + 5..];
    id.chars().take_while(char::is_ascii_digit).collect()
}

/// Passes bytes between clients and a server on, and writes them to the files `client` and `server` in a
/// folder. Returns its address.
fn tapped(server: &Listening, folder: &Path) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let port = server.port;
    let file = |name: &str| {
        let options = File::options().create(true).append(true).open(folder.join(name));
        options.expect("a folder of ours")
    };
    let files = [file("client"), file("server")];
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
            for (from, to, file) in [(&client, &server, &files[0]), (&server, &client, &files[1])] {
                let ends = (from.try_clone(), to.try_clone(), file.try_clone());
                let (Ok(from), Ok(to), Ok(file)) = ends else { continue };
                std::thread::spawn(move || pass(from, to, file));
            }
        }
    });
    url
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut file: File) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if file.write_all(&bytes[..read]).and_then(|()| to.write_all(&bytes[..read])).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write); // The other side may have hung up.
}

#[test]
fn typescript_sdk_receives_cancellations_over_stdio() {
    let Some(command) = node() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let passing = r#"tee "$0/client" | "$@" | tee "$0/server""#;
    let path = shown(folder.path());
    let tapped: Vec<String> =
        ["sh", "-c", passing, &path].map(str::to_owned).into_iter().chain(command).collect();
    check_node_cancellation(stdio(&tapped, &["stdio"]), folder.path());
}

#[test]
fn typescript_sdk_receives_cancellations_over_http() {
    let Some(command) = node() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let server = Listening::start(&command, &["streamableHttp"]);
    let url = tapped(&server, folder.path());
    check_node_cancellation(ServerConfig::http("r", url.as_str()), folder.path());
}

#[test]
fn typescript_sdk_tools_are_called_over_stdio() {
    let Some(command) = node() else { return };
    check_node(stdio(&command, &["stdio"]));
}

#[test]
fn typescript_sdk_tools_are_called_over_http() {
    let Some(command) = node() else { return };
    let server = Listening::start(&command, &["streamableHttp"]);
    check_node(ServerConfig::http("r", server.url.as_str()));
}
