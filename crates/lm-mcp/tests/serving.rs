//! Our server over HTTP, driven by the client of the Python SDK, and by requests that it must refuse.

use crate::common::{LONG, installed, served};
use lm_mcp::{Error, HttpListen, Listen, Mcp, McpBuilder, McpLimits, Server, ServerConfig, serve};
use lm_tools::{CallContext, CancelHandle, State, ToolCall, Toolset, tool};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Barrier;

fn our_server() -> (Server, String) {
    let server = serve(served::tools(), Listen::Http(HttpListen::default())).expect("listens");
    let url = server.url().expect("it listens");
    (server, url)
}

/// Drives our server with the Python client, in a version of the protocol.
fn check_our_server(mode: &[&str], version: &str) {
    let Some(venv) = installed("venv") else { return };
    let (_server, url) = our_server();
    served::check(&venv, &[mode, &["http", &url]].concat(), version);
}

#[test]
fn python_client_calls_tools_with_handshake() {
    check_our_server(&["--legacy"], "2025-11-25");
}

#[test]
fn python_client_calls_tools_without_handshake() {
    check_our_server(&[], "2026-07-28");
}

#[test]
fn server_rejects_foreign_hosts_and_origins() {
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

fn connecting(url: String) -> McpBuilder {
    let limits = McpLimits { start_timeout: LONG, call_timeout: Some(LONG), ..McpLimits::default() };
    Mcp::builder().server(ServerConfig::http("s", url)).limits(limits)
}

/// Waits until it is cancelled; reports at its start and at its end whether it is.
#[tool]
fn wait(context: &CallContext, reports: State<Sender<bool>>) -> bool {
    let start = Instant::now();
    let report = || reports.send(context.is_cancelled()).is_ok();
    report();
    while !context.is_cancelled() && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(5));
    }
    report()
}

#[test]
fn client_notification_cancels_its_call() {
    let (reports, received) = channel();
    let tools = Toolset::new().with_state(reports).with(wait::tool()).expect("one tool");
    let server = serve(tools, Listen::Http(HttpListen::default())).expect("listens");
    let mcp = connecting(server.url().expect("it listens")).connect().expect("connects");
    let cancel = CancelHandle::new();
    let _calls = mcp.tools().start(vec![ToolCall::new("s_wait", Default::default())], &cancel, None);
    assert_eq!(received.recv_timeout(LONG), Ok(false), "it begins");
    cancel.cancel();
    assert_eq!(received.recv_timeout(LONG), Ok(true), "it is notified");
}

/// Waits for the calls of all clients.
#[tool]
async fn meet(all: State<Barrier>, client: usize) -> usize {
    all.wait().await;
    client
}

/// Connects, meets the other clients in a call, and ends.
async fn meet_others(client: usize, url: String) -> String {
    let mcp = connecting(url).runtime(Handle::current()).connect_async().await.expect("connects");
    let call = ToolCall::from_json(json!({"name": "s_meet", "arguments": {"client": client}}));
    let mut calls = mcp.tools().start(vec![call.expect("a call")], &CancelHandle::new(), None);
    calls.recv().await.expect("one result").content.text()
}

#[test]
fn fifty_clients_call_concurrently() {
    const CLIENTS: usize = 50;
    let tools = Toolset::new().with_state(Barrier::new(CLIENTS)).with(meet::tool()).expect("one tool");
    let server = serve(tools, Listen::Http(HttpListen::default())).expect("listens");
    let url = server.url().expect("it listens");
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("starts");
    runtime.block_on(async {
        // The second time, the clients of the first one are gone.
        for _ in 0..2 {
            let clients: Vec<_> =
                (0..CLIENTS).map(|client| tokio::spawn(meet_others(client, url.clone()))).collect();
            for (client, result) in clients.into_iter().enumerate() {
                assert_eq!(result.await.expect("no panic"), client.to_string());
            }
        }
    });
}
