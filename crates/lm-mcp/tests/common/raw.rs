//! Servers whose bytes are written by hand, over streams in memory.

use super::LONG;
use lm_mcp::{Mcp, McpBuilder, McpLimits};
use lm_tools::{ToolCall, Value};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::runtime::{Handle, Runtime};

/// Time after which a call without an answer ends.
pub const SOON: Duration = Duration::from_secs(1);

/// The server's end of a connection.
pub struct Raw {
    stream: BufReader<DuplexStream>,
    runtime: Handle,
}

impl Raw {
    /// A stream for a client, and the server's end of it.
    pub fn pair(runtime: &Runtime) -> (DuplexStream, Self) {
        let (here, there) = tokio::io::duplex(1 << 16);
        (here, Self { stream: BufReader::new(there), runtime: runtime.handle().clone() })
    }

    /// Reads a message; `None` at the end of the connection.
    pub fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.runtime.block_on(self.stream.read_line(&mut line));
        let is_whole = read.is_ok() && line.ends_with('\n');
        is_whole.then(|| serde_json::from_str(&line).expect("a client sends JSON"))
    }

    /// Sends bytes; false at the end of the connection.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.runtime.block_on(self.stream.write_all(bytes)).is_ok()
    }

    /// Sends a line; false at the end of the connection.
    pub fn send_line(&mut self, line: &[u8]) -> bool {
        self.send(&[line, b"\n"].concat())
    }

    pub fn answer(&mut self, request: &Value, result: &Value) -> bool {
        self.send_line(response(&request["id"], result).as_bytes())
    }
}

pub fn response(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

pub fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// A client of a server that leaves lists and calls to `answer`, if it returns true; otherwise it has the
/// tool `t`, whose result is `ok`.
pub fn client(
    runtime: &Runtime,
    mut answer: impl FnMut(&mut Raw, &Value) -> bool + Send + 'static,
) -> (McpBuilder, JoinHandle<()>) {
    let (here, mut raw) = Raw::pair(runtime);
    let server = std::thread::spawn(move || {
        while let Some(request) = raw.read() {
            let method = request["method"].as_str().unwrap_or_default();
            let is_open = match method {
                "initialize" => raw.answer(
                    &request,
                    &json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                        "serverInfo": {"name": "raw", "version": "1"}}),
                ),
                "tools/list" | "tools/call" if answer(&mut raw, &request) => true,
                "tools/list" => raw.answer(&request, &json!({"tools": [tool("t")]})),
                "tools/call" => raw.answer(&request, &text("ok")),
                "server/discover" => {
                    let error = json!({"code": -32601, "message": "unknown"});
                    raw.send_line(
                        json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string().as_bytes(),
                    )
                }
                _ => true,
            };
            if !is_open {
                return;
            }
        }
    });
    let limits = McpLimits { start_timeout: LONG, call_timeout: Some(LONG), ..McpLimits::default() };
    (Mcp::builder().stream("s", here).limits(limits), server)
}

pub fn impatient() -> McpLimits {
    McpLimits { start_timeout: LONG, call_timeout: Some(SOON), ..McpLimits::default() }
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("starts")
}

pub fn call(mcp: &Mcp) -> Value {
    mcp.tools().call(&ToolCall::new("s_t", Default::default())).to_json()["content"].clone()
}

/// Ends the connection, and with it the server.
pub fn end(mcp: Mcp, server: JoinHandle<()>) {
    drop(mcp);
    server.join().expect("no panic");
}

/// Requests that a server got.
pub type Seen = Arc<Mutex<Vec<Value>>>;

/// A client of a server that leaves every request to `answer`; it notes the requests.
pub fn noting(mut answer: impl FnMut(&mut Raw, &Value) + Send + 'static) -> (McpBuilder, Seen, Runtime) {
    let runtime = runtime();
    let (here, mut raw) = Raw::pair(&runtime);
    let seen = Seen::default();
    let notes = seen.clone();
    std::thread::spawn(move || {
        while let Some(request) = raw.read() {
            notes.lock().expect("no panic").push(request.clone());
            answer(&mut raw, &request);
        }
    });
    let limits = McpLimits { start_timeout: LONG, call_timeout: Some(LONG), ..McpLimits::default() };
    (Mcp::builder().stream("s", here).limits(limits), seen, runtime)
}

pub fn methods(seen: &Seen) -> Vec<String> {
    let seen = seen.lock().expect("no panic");
    seen.iter().map(|request| request["method"].as_str().expect("a method").to_owned()).collect()
}

/// Answer to the question for the revision without a handshake.
pub fn discovered() -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "raw", "version": "1"}}, "ttlMs": 0, "cacheScope": "private"})
}

pub fn handshake() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}})
}

pub fn listed() -> Value {
    json!({"resultType": "complete", "tools": [tool("t")], "ttlMs": 0, "cacheScope": "private"})
}
