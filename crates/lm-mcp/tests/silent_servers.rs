//! Servers that are reached and then say nothing: connecting to them and listing their tools end at the time
//! limit, with an error that names the server.

use lm_mcp::{Error, Mcp, McpLimits, ServerConfig};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(2);
/// Time that no attempt needs.
const LONG: Duration = Duration::from_secs(20);

/// Checks that the connections to servers fail at their time limit, all at once.
fn check_all(servers: Vec<(&str, ServerConfig)>) {
    std::thread::scope(|scope| {
        servers.into_iter().for_each(|(name, server)| drop(scope.spawn(move || check(name, server))));
    });
}

fn check(name: &str, server: ServerConfig) {
    let start = Instant::now();
    let limits = McpLimits { start_timeout: LIMIT, ..McpLimits::default() };
    let error = Mcp::builder().server(server).limits(limits).connect().expect_err(name);
    let took = start.elapsed();
    assert!(
        matches!(&error, Error::StartTimeout { server, timeout: LIMIT, .. } if server == "quiet"),
        "{name}: {error:?}"
    );
    assert_eq!(error.to_string(), "MCP server `quiet`: not ready after 2 s", "{name}");
    assert!(took >= LIMIT && took < LONG, "{name}: {took:?}");
}

#[cfg(unix)]
#[test]
fn programs_that_say_nothing_are_given_up() {
    let of = |text: &str| ServerConfig::command("quiet", "sh", ["-c", text]);
    let handshake = r#"while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case "$line" in
        *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"q","version":"1"}}}\n' "$id";;
        *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id";;
        esac
    done"#;
    check_all(vec![
        ("it reads all and says nothing", of("cat > /dev/null")),
        ("it reads nothing", of("sleep 60")),
        ("it writes no line end", of("printf '{\"jsonrpc\": '; cat > /dev/null")),
        ("it writes other lines", of("while :; do echo ready; sleep 0.1; done")),
        ("it does not list its tools", of(handshake)),
    ]);
}

/// Handles a request of a connection, whose body it gets; false ends the connection.
type Answer = fn(&mut TcpStream, &Value) -> bool;

/// Serves on this machine; each connection has a thread.
fn serve(answer: Answer) -> ServerConfig {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.expect("a connection");
                while read(&stream).is_some_and(|request| answer(&mut stream, &request)) {}
            });
        }
    });
    ServerConfig::http("quiet", url)
}

fn read(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap_or_default())
}

/// Waits until the client gives up.
fn hold(stream: &mut TcpStream) -> bool {
    let _ = stream.read(&mut [0; 64]);
    false
}

/// Answers the start of a connection; false for other requests.
fn handshake(stream: &mut TcpStream, request: &Value) -> bool {
    let id = &request["id"];
    let body = match request["method"].as_str() {
        Some("initialize") => json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "q", "version": "1"}}}),
        Some("server/discover") => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
        }
        Some(method) if method.starts_with("notifications/") => {
            return stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").is_ok();
        }
        _ => return false,
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
    let body = body.to_string();
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).is_ok()
}

#[test]
fn addresses_that_say_nothing_are_given_up() {
    check_all(vec![
        ("it reads and says nothing", serve(|stream, _| hold(stream))),
        (
            "its headers do not end",
            serve(|stream, _| stream.write_all(b"HTTP/1.1 200 OK\r\nA: b\r\n").is_ok() && hold(stream)),
        ),
        (
            "its body does not come",
            serve(|stream, _| {
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n";
                stream.write_all(head).is_ok() && hold(stream)
            }),
        ),
        (
            "its stream has comments only",
            serve(|stream, _| {
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                let mut sent = stream.write_all(head);
                while sent.is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                    sent = stream.write_all(b": still there\n\n");
                }
                false
            }),
        ),
        ("it does not list its tools", serve(|stream, request| handshake(stream, request) || hold(stream))),
    ]);
}
