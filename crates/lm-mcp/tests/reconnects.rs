//! Servers at an address that end and come back.

use crate::common::LONG;
use crate::hostile_http;
use lm_mcp::{HttpListen, Listen, Mcp, McpLimits, Server, ServerConfig, serve};
use lm_tools::{ToolCall, demo};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Serves the demo tools at an address.
fn serve_at(addr: SocketAddr) -> Server {
    let start = Instant::now();
    loop {
        // The address is free again a moment after the end of its last server.
        match serve(demo(), Listen::Http(HttpListen { addr, ..HttpListen::default() })) {
            Ok(server) => return server,
            Err(error) => assert!(start.elapsed() < LONG, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr()).expect("a free port")
}

fn connect(server: &Server) -> Mcp {
    let server = ServerConfig::http("s", server.url().expect("it listens"));
    Mcp::builder().server(server).connect().expect("connects")
}

fn call(mcp: &Mcp) -> String {
    let call = json!({"name": "s_calculate", "arguments": {"expression": "6 * 7"}});
    mcp.tools().call(&ToolCall::from_json(call).expect("a call")).content.text()
}

/// Time in which a client sees the end of its connections.
const MOMENT: Duration = Duration::from_millis(200);

#[test]
fn server_that_forgot_the_session_is_connected_again() {
    let addr = free_address();
    let mut server = serve_at(addr);
    let mcp = connect(&server);
    // More often than a program would be started again.
    for _ in 0..5 {
        assert_eq!(call(&mcp), "42");
        drop(server);
        std::thread::sleep(MOMENT);
        server = serve_at(addr);
    }
    assert_eq!(call(&mcp), "42");
    assert!(mcp.servers()[0].is_connected);
}

#[test]
fn refused_call_is_sent_after_a_new_connection() {
    let addr = free_address();
    let server = serve_at(addr);
    let mcp = connect(&server);
    drop(server);
    std::thread::sleep(MOMENT);
    let refused = call(&mcp);
    assert!(refused.contains("refused: is the server running?; the call was not sent"), "{refused}");
    assert!(!mcp.servers()[0].is_connected);
    // The next attempt waits for half a second.
    let calling = std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(&mcp));
        let server = serve_at(addr);
        (calling.join().expect("no panic"), server)
    });
    assert_eq!(calling.0, "42");
    assert!(mcp.servers()[0].is_connected);
    assert_eq!(call(&mcp), "42");
}

#[test]
fn new_connections_are_limited() {
    let server = serve_at(free_address());
    let mcp = connect(&server);
    drop(server);
    std::thread::sleep(MOMENT);
    for _ in 0..3 {
        let refused = call(&mcp);
        assert!(refused.contains("refused: is the server running?"), "{refused}");
    }
    let refused = call(&mcp);
    let limit = "the connection to MCP server `s` was lost and made again, or tried, 3 times within 60 s";
    assert!(refused.contains(limit), "{refused}");
}

#[test]
fn call_that_may_have_arrived_is_not_sent_again() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let url = hostile_http::serve(|_, _| {
        CALLS.fetch_add(1, Ordering::SeqCst);
        Ok(()) // It hangs up without an answer.
    });
    let limits = McpLimits { start_timeout: LONG, call_timeout: Some(LONG), ..McpLimits::default() };
    let mcp = Mcp::builder().server(ServerConfig::http("s", url)).limits(limits).connect().expect("connects");
    let error = hostile_http::call(&mcp)["error"].to_string();
    assert!(error.contains("the connection to MCP server `s` is lost"), "{error}");
    assert_eq!(CALLS.load(Ordering::SeqCst), 1);
    assert_eq!(hostile_http::call(&mcp), "ok");
}
