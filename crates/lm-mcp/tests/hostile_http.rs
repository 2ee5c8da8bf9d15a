//! Servers that answer HTTP requests with what no server should send.

use lm_mcp::{Mcp, McpLimits, ServerConfig};
use lm_tools::{ToolCall, Value};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time that no test needs: a hang ends there.
const LONG: Duration = Duration::from_secs(60);
/// Time after which a call without an answer ends.
const SOON: Duration = Duration::from_secs(1);

/// Answer to a call, with the id of its request.
pub type Answer = fn(&mut TcpStream, &Value) -> std::io::Result<()>;

/// Reads a request; its body is `None` if it has none.
fn read(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn head(stream: &mut TcpStream, status: &str, headers: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n")
}

fn json_answer(stream: &mut TcpStream, id: &Value, result: Value) -> std::io::Result<()> {
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    head(stream, "200 OK", &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()))?;
    stream.write_all(body.as_bytes())
}

fn events(stream: &mut TcpStream) -> std::io::Result<()> {
    head(stream, "200 OK", "Content-Type: text/event-stream\r\n")
}

/// Sends bytes until the client hangs up.
fn endless(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    loop {
        stream.write_all(bytes)?;
    }
}

/// Serves the tool `t`, whose first call has the given answer; that of later ones is `ok`. Answers to its own
/// requests are read, but the client does not learn it.
pub fn serve(answer: Answer) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let is_first = Arc::new(AtomicBool::new(true));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let is_first = is_first.clone();
            std::thread::spawn(move || {
                let request = read(&stream).unwrap_or_default();
                let id = &request["id"];
                match request["method"].as_str().unwrap_or_default() {
                    "" if id.is_null() => {
                        head(&mut stream, "405 Method Not Allowed", "Content-Length: 0\r\n")
                    }
                    "" => stream.read(&mut [0]).map(drop),
                    "initialize" => json_answer(
                        &mut stream,
                        id,
                        json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "raw", "version": "1"}}),
                    ),
                    "tools/list" => {
                        let tool = json!({"name": "t", "inputSchema": {"type": "object"}});
                        json_answer(&mut stream, id, json!({"tools": [tool]}))
                    }
                    "tools/call" if is_first.swap(false, Ordering::SeqCst) => answer(&mut stream, id),
                    "tools/call" => {
                        json_answer(&mut stream, id, json!({"content": [{"type": "text", "text": "ok"}]}))
                    }
                    _ => head(&mut stream, "202 Accepted", "Content-Length: 0\r\n"),
                }
            });
        }
    });
    url
}

pub fn call(mcp: &Mcp) -> Value {
    mcp.tools().call(&ToolCall::new("s_t", Default::default())).to_json()["content"].clone()
}

const ANSWERS: [(&str, Answer); 13] = [
    ("a result of 100 megabytes", |stream, _| {
        let length = 100 << 20;
        head(stream, "200 OK", &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"))?;
        (0..100).try_for_each(|_| stream.write_all(&[b'x'; 1 << 20]))
    }),
    ("a result without end", |stream, _| {
        head(stream, "200 OK", "Content-Type: application/json\r\n")?;
        stream.write_all(b"{\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": \"")?;
        endless(stream, &[b'x'; 1 << 16])
    }),
    ("a result that never comes", |stream, _| {
        head(stream, "200 OK", "Content-Type: application/json\r\nContent-Length: 100\r\n")?;
        stream.read(&mut [0]).map(drop)
    }),
    ("an event without end", |stream, _| {
        events(stream)?;
        stream.write_all(b"data: ")?;
        endless(stream, &[b'x'; 1 << 16])
    }),
    ("lines of an event without end", |stream, _| {
        events(stream)?;
        endless(stream, &b"data: x\n".repeat(1000))
    }),
    ("comments without end", |stream, _| {
        events(stream)?;
        endless(stream, &b": still there\n\n".repeat(1000))
    }),
    ("notifications without end", |stream, _| {
        events(stream)?;
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": 0, "progress": 1, "message": "x".repeat(200)}});
        endless(stream, format!("data: {progress}\n\n").repeat(100).as_bytes())
    }),
    ("an event that is not JSON", |stream, _| {
        events(stream)?;
        stream.write_all(b"data: {\"a\":\xff\n\n")
    }),
    ("an answer of another call", |stream, _| json_answer(stream, &json!(77), json!({"content": []}))),
    ("a page", |stream, _| {
        head(stream, "200 OK", "Content-Type: text/html\r\nContent-Length: 4\r\n")?;
        stream.write_all(b"<p/>")
    }),
    ("an error of the server", |stream, _| {
        head(stream, "500 Internal Server Error", "Content-Length: 0\r\n")
    }),
    ("a redirect to itself", |stream, _| {
        head(stream, "307 Temporary Redirect", "Location: http://localhost:9/mcp\r\nContent-Length: 0\r\n")
    }),
    ("bytes that are not HTTP", |stream, _| stream.write_all(b"\0\xff\r\n\r\n")),
];

#[test]
fn no_response_delays_the_call_or_the_next() {
    for (name, answer) in ANSWERS {
        let limits = McpLimits { start_timeout: LONG, call_timeout: Some(SOON), ..McpLimits::default() };
        let server = ServerConfig::http("s", serve(answer));
        let mcp = Mcp::builder().server(server).limits(limits).connect().expect("connects");
        let result = call(&mcp);
        assert!(result["error"].is_string(), "{name}: {result}");
        let start = Instant::now();
        loop {
            let next = call(&mcp);
            if next == "ok" {
                break;
            }
            assert!(start.elapsed() < LONG, "after {name}: {next}");
        }
    }
}

#[test]
fn server_not_reading_responses_is_disconnected() {
    let limits = McpLimits { start_timeout: LONG, call_timeout: Some(LONG), ..McpLimits::default() };
    let server = ServerConfig::http("s", serve(requests_without_end));
    let mcp = Mcp::builder().server(server).limits(limits).connect().expect("connects");
    let error = call(&mcp)["error"].to_string();
    assert!(error.contains("the connection to MCP server `s` is lost"), "{error}");
    assert!(!mcp.servers()[0].is_connected);
    assert_eq!(call(&mcp), "ok", "over a new connection");
}

fn requests_without_end(stream: &mut TcpStream, _: &Value) -> std::io::Result<()> {
    events(stream)?;
    let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"});
    endless(stream, format!("data: {ping}\n\n").repeat(100).as_bytes())
}
