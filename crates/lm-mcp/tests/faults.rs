//! Connections to servers of our own that fail, lie or change, over streams in memory.

use lm_mcp::{Error, Mcp, McpBuilder, McpLimits};
use lm_tools::{CancelHandle, ToolCall, Value};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Time that no test needs: a hang ends there.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(100);

/// A server whose tools can be changed, and which notes the cancelled calls.
#[derive(Clone, Default)]
struct Fake {
    pages: Arc<Mutex<Vec<Vec<Tool>>>>,
    /// Each page says that there is another one.
    is_endless: bool,
    peer: Arc<Mutex<Option<Peer<RoleServer>>>>,
    /// The last page was asked for.
    listed: Arc<Notify>,
    started: Arc<Notify>,
    cancelled: Arc<Notify>,
}

impl Fake {
    fn with(tools: Vec<Tool>) -> Self {
        Self::of_pages(vec![tools])
    }

    fn of_pages(pages: Vec<Vec<Tool>>) -> Self {
        Self { pages: Arc::new(Mutex::new(pages)), ..Self::default() }
    }
}

impl ServerHandler for Fake {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
            .with_instructions("Be kind.")
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        *self.peer.lock().expect("no panic") = Some(context.peer);
        let pages = self.pages.lock().expect("no panic");
        let cursor = request.and_then(|request| request.cursor);
        let page: usize = cursor.map_or(0, |cursor| cursor.parse().expect("our cursor"));
        let has_next = self.is_endless || page + 1 < pages.len();
        if !has_next {
            self.listed.notify_one();
        }
        Ok(ListToolsResult {
            tools: pages.get(page).cloned().unwrap_or_default(),
            next_cursor: has_next.then(|| (page + 1).to_string()),
            ..ListToolsResult::default()
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "wait" => {
                self.started.notify_one();
                context.ct.cancelled().await;
                self.cancelled.notify_one();
                Err(ErrorData::internal_error("cancelled", None))
            }
            "refuse" => Err(ErrorData::invalid_params("not today", None)),
            "fail" => Ok(CallToolResponse::Complete(CallToolResult::error(vec![ContentBlock::text(
                "out of paper",
            )]))),
            "long" => {
                let text = ContentBlock::text("x".repeat(1 << 20));
                Ok(CallToolResponse::Complete(CallToolResult::success(vec![text])))
            }
            name => {
                let text = format!("{name} {}", json!(request.arguments));
                Ok(CallToolResponse::Complete(CallToolResult::success(vec![ContentBlock::text(text)])))
            }
        }
    }
}

fn tool(name: &str) -> Tool {
    with_schema(name, json!({"type": "object"}))
}

fn with_schema(name: &str, schema: Value) -> Tool {
    let schema: JsonObject = serde_json::from_value(schema).expect("an object");
    Tool::new(name.to_owned(), "A tool.", schema)
}

/// A runtime for the servers of a test.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("starts")
}

/// Runs a server at the other end of a stream.
fn stream_to(server: Fake, runtime: &Runtime) -> DuplexStream {
    let (here, there) = tokio::io::duplex(1 << 16);
    runtime.spawn(async move { server.serve(there).await.expect("the handshake works").waiting().await });
    here
}

fn limits() -> McpLimits {
    McpLimits { start_timeout: LONG, call_timeout: Some(LONG), ..McpLimits::default() }
}

fn connecting(server: &Fake, runtime: &Runtime) -> McpBuilder {
    Mcp::builder().stream("s", stream_to(server.clone(), runtime)).limits(limits())
}

fn names(mcp: &Mcp) -> Vec<String> {
    mcp.tools().specs().iter().map(|spec| spec.name().to_owned()).collect()
}

fn call(mcp: &Mcp, name: &str) -> Value {
    mcp.tools().call(&ToolCall::new(name, Default::default())).to_json()["content"].clone()
}

fn error(mcp: &Mcp, name: &str) -> String {
    let result = call(mcp, name);
    result["error"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// Waits for a condition.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn tools_of_all_pages_are_listed_and_called() {
    let runtime = runtime();
    let server = Fake::of_pages(vec![vec![tool("a.b")], vec![], vec![tool("c")]]);
    let mcp = connecting(&server, &runtime).connect().expect("connects");
    assert_eq!(names(&mcp), ["s_a_b", "s_c"]);
    assert_eq!(call(&mcp, "s_a_b"), "a.b {}");
    let described = &mcp.servers()[0];
    assert_eq!((described.name.as_str(), described.is_connected), ("s", true));
    assert_eq!(described.instructions.as_deref(), Some("Be kind."));
    assert_eq!(described.tools, ["s_a_b", "s_c"]);
    assert_eq!(mcp.problems(), []);
}

#[test]
fn endless_list_is_cut() {
    let runtime = runtime();
    let pages = (0..5).map(|_| vec![]).chain([vec![tool("a"), tool("b"), tool("c")]]).collect();
    let server = Fake { is_endless: true, ..Fake::of_pages(pages) };
    let limits = McpLimits { max_tools: 2, ..limits() };
    let mcp = connecting(&server, &runtime).limits(limits).connect().expect("connects");
    assert_eq!(names(&mcp), [""; 0]);
    assert_eq!(
        mcp.problems()[0].to_string(),
        "MCP server `s`: it has more than 2 tools: the others are left out"
    );
    let server = Fake { is_endless: true, ..Fake::with(vec![tool("a"), tool("b"), tool("c")]) };
    let mcp = connecting(&server, &runtime).limits(limits).connect().expect("connects");
    assert_eq!(names(&mcp), ["s_a", "s_b"]);
}

#[test]
fn tools_at_the_limit_are_accepted() {
    let runtime = runtime();
    let limits = McpLimits { max_tools: 2, ..limits() };
    for pages in [vec![vec![tool("a"), tool("b")]], vec![vec![tool("a")], vec![tool("b")]]] {
        let mcp = connecting(&Fake::of_pages(pages), &runtime).limits(limits).connect().expect("connects");
        assert_eq!((names(&mcp), mcp.problems()), (vec!["s_a".to_owned(), "s_b".to_owned()], vec![]));
    }
}

#[test]
fn tools_with_unusable_schemas_are_reported() {
    let runtime = runtime();
    let deep = (0..40).fold(json!({}), |schema, _| json!({"not": schema}));
    let server = Fake::with(vec![
        with_schema("typo", json!({"type": "object", "properties": {"a": {"type": "text"}}})),
        with_schema("remote", json!({"type": "object", "$ref": "https://example.com/a.json"})),
        with_schema("list", json!({"type": "array"})),
        with_schema("deep", deep),
        with_schema("large", json!({"type": "object", "description": "x".repeat(1 << 17)})),
        with_schema("untyped", json!({"properties": {"a": {"type": "string"}}})),
    ]);
    let mcp = connecting(&server, &runtime).connect().expect("connects");
    assert_eq!(names(&mcp), ["s_untyped"]);
    let problems: Vec<String> = mcp.problems().iter().map(ToString::to_string).collect();
    let about =
        |name: &str| problems.iter().find(|text| text.starts_with(&format!("tool `{name}`"))).expect(name);
    assert!(about("typo").contains("at `/properties/a/type`"), "{problems:?}");
    assert!(about("remote").contains("not a valid JSON schema"), "{problems:?}");
    assert!(
        about("list").ends_with("cannot be used: its arguments are of the type \"array\", not an object")
    );
    assert!(about("deep").ends_with("its schema has more than 32 levels"));
    assert!(about("large").ends_with("more than 65536"), "{problems:?}");
    assert_eq!(problems.len(), 5);
}

#[test]
fn duplicate_tool_of_a_server_is_omitted() {
    let runtime = runtime();
    let long = |end: &str| tool(&("x".repeat(200) + end));
    let server = Fake::with(vec![tool("a.b"), tool("a_b"), tool("c"), long("1"), long("2"), tool("c")]);
    let mcp = connecting(&server, &runtime).connect().expect("connects");
    assert_eq!(names(&mcp), ["s_a_b", "s_c", &format!("s_{}", "x".repeat(62))]);
    assert_eq!(call(&mcp, "s_a_b"), "a.b {}");
    let problems: Vec<String> = mcp.problems().iter().map(ToString::to_string).collect();
    let cut = "x".repeat(128);
    let problem = |tool: &str, other: &str, name: &str| {
        format!(
            "tool `{tool}` of MCP server `s` cannot be used: another tool of the server, `{other}`, is called `{name}`, too"
        )
    };
    let expected = [
        problem("a_b", "a.b", "s_a_b"),
        problem(&cut, &cut, &format!("s_{}", "x".repeat(62))),
        problem("c", "c", "s_c"),
    ];
    assert_eq!(problems, expected);
}

#[test]
fn unusable_tool_reserves_no_name() {
    let runtime = runtime();
    let typo = with_schema("a.b", json!({"type": "object", "properties": {"a": {"type": "text"}}}));
    let mcp = connecting(&Fake::with(vec![typo, tool("a_b")]), &runtime).connect().expect("connects");
    assert_eq!(names(&mcp), ["s_a_b"]);
    assert_eq!(call(&mcp, "s_a_b"), "a_b {}");
}

#[test]
fn tool_name_conflict_of_servers_is_an_error() {
    let runtime = runtime();
    let (one, other) = (Fake::with(vec![tool("b")]), Fake::with(vec![tool("a_b")]));
    let both = Mcp::builder()
        .stream("s_a", stream_to(one.clone(), &runtime))
        .stream("s", stream_to(other, &runtime));
    let error = both.connect().expect_err("a conflict");
    let expected = "tool `a_b` of MCP server `s` and tool `b` of MCP server `s_a` are both called `s_a_b`; rename the server";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, Error::DuplicateTool { name, .. } if name == "s_a_b"));
    let twice =
        Mcp::builder().stream("s", stream_to(one.clone(), &runtime)).stream("s", stream_to(one, &runtime));
    assert!(matches!(twice.connect(), Err(Error::DuplicateServer { name }) if name == "s"));
}

#[test]
fn tool_and_protocol_failures_reach_the_model() {
    let runtime = runtime();
    let server = Fake::with(vec![tool("refuse"), tool("fail"), tool("long")]);
    let mcp = connecting(&server, &runtime).connect().expect("connects");
    assert_eq!(error(&mcp, "s_refuse"), "MCP server `s`: not today (error -32602)");
    assert_eq!(error(&mcp, "s_fail"), "out of paper");
    let long = call(&mcp, "s_long");
    assert!(
        long.as_str()
            .is_some_and(|text| text.len() < 70_000 && text.ends_with("[cut: 65536 of 1048576 bytes]"))
    );
}

#[test]
fn cancelled_call_is_cancelled_at_the_server() {
    let runtime = runtime();
    let server = Fake::with(vec![tool("wait")]);
    let mcp = connecting(&server, &runtime).connect().expect("connects");
    let cancel = CancelHandle::new();
    let mut calls = mcp.tools().start(vec![ToolCall::new("s_wait", Default::default())], &cancel, None);
    runtime.block_on(server.started.notified());
    cancel.cancel();
    let result = calls.next().expect("one result").to_json();
    assert_eq!(
        result["content"]["error"],
        "the call of MCP server `s` was cancelled; it may have taken effect"
    );
    runtime.block_on(async {
        tokio::time::timeout(LONG, server.cancelled.notified()).await.expect("it is notified")
    });
}

#[test]
fn late_call_is_cancelled_at_the_server() {
    let runtime = runtime();
    let server = Fake::with(vec![tool("wait")]);
    let limits = McpLimits { call_timeout: Some(SHORT), ..limits() };
    let mcp = connecting(&server, &runtime).limits(limits).connect().expect("connects");
    let message = error(&mcp, "s_wait");
    assert!(message.ends_with("it may still take effect"), "{message}");
    runtime.block_on(async {
        tokio::time::timeout(LONG, server.cancelled.notified()).await.expect("it is notified")
    });
}

#[test]
fn lost_connection_fails_running_and_later_calls() {
    let servers = runtime();
    let server = Fake::with(vec![tool("wait")]);
    let mcp = connecting(&server, &servers).connect().expect("connects");
    let tools = mcp.tools();
    let running =
        std::thread::spawn(move || tools.call(&ToolCall::new("s_wait", Default::default())).content.text());
    servers.block_on(server.started.notified());
    servers.shutdown_timeout(LONG);
    let text = running.join().expect("no panic");
    assert!(text.contains("the connection to MCP server `s` is lost"), "{text}");
    assert!(error(&mcp, "s_wait").contains("the connection to MCP server `s` is lost"));
    wait_for("the end is seen", || !mcp.servers()[0].is_connected);
}

/// Replaces the tools of a server, and notifies its client.
fn change(server: &Fake, runtime: &Runtime, tools: Vec<Tool>) {
    *server.pages.lock().expect("no panic") = vec![tools];
    let peer = server.peer.lock().expect("no panic").clone().expect("a client");
    runtime.block_on(peer.notify_tool_list_changed()).expect("is sent");
}

#[test]
fn problem_persists_when_another_server_changes() {
    let runtime = runtime();
    let (server, other) = (Fake::with(vec![tool("a")]), Fake::with(vec![tool("d")]));
    let both = connecting(&server, &runtime).stream("s_a", stream_to(other.clone(), &runtime));
    let mcp = both.connect().expect("connects");
    change(&server, &runtime, vec![tool("a_d")]);
    wait_for("the problem is reported", || !mcp.problems().is_empty());
    let (before, problems) = (mcp.generation(), mcp.problems());
    change(&other, &runtime, vec![tool("d"), tool("e")]);
    wait_for("the tools change", || mcp.generation() > before);
    assert_eq!(names(&mcp), ["s_a", "s_a_d", "s_a_e"]);
    assert_eq!(mcp.problems(), problems, "the tools of the first server are the old ones");
}

#[test]
fn changed_tools_appear_in_later_sets() {
    let runtime = runtime();
    let server = Fake::with(vec![tool("a")]);
    let other = stream_to(Fake::with(vec![tool("d")]), &runtime);
    let mcp = connecting(&server, &runtime).stream("s_a", other).connect().expect("connects");
    let (before, old) = (mcp.generation(), mcp.tools());
    let change = |tools| change(&server, &runtime, tools);
    change(vec![tool("b"), tool("c")]);
    wait_for("the tools change", || mcp.generation() > before);
    assert_eq!(names(&mcp), ["s_b", "s_c", "s_a_d"]);
    assert_eq!(old.specs().len(), 2);
    // Tools in conflict with those of another server are not taken over.
    change(vec![tool("a_d")]);
    wait_for("the problem is reported", || !mcp.problems().is_empty());
    assert_eq!(names(&mcp), ["s_b", "s_c", "s_a_d"]);
    change(vec![tool("e")]);
    wait_for("the tools change", || names(&mcp) == ["s_e", "s_a_d"]);
    assert_eq!(mcp.problems(), []);
}

#[test]
fn changed_schemas_do_not_delay_other_servers() {
    let runtime = runtime();
    let server = Fake::with(vec![tool("a")]);
    let other = stream_to(Fake::with(vec![tool("d")]), &runtime);
    let mcp = connecting(&server, &runtime).stream("other", other).connect().expect("connects");
    runtime.block_on(server.listed.notified());
    let before = mcp.generation();
    let property = |number: usize| {
        (format!("p{number}"), json!({"type": "string", "pattern": "^[a-z]{1,9}$", "minLength": 1}))
    };
    let properties: Value = (0..700).map(property).collect::<lm_tools::Map<_, _>>().into();
    let large = |number: usize| {
        vec![with_schema(&format!("t{number}"), json!({"type": "object", "properties": properties}))]
    };
    *server.pages.lock().expect("no panic") = (0..60).map(large).collect();
    let peer = server.peer.lock().expect("no panic").clone().expect("a client");
    runtime.block_on(peer.notify_tool_list_changed()).expect("is sent");
    runtime.block_on(server.listed.notified());
    // The schemas are compiled now, for seconds.
    for _ in 0..30 {
        assert_eq!(call(&mcp, "other_d"), "d {}");
    }
    assert_eq!(mcp.generation(), before, "the calls ended before the change");
}

#[test]
fn unresponsive_server_times_out() {
    let (here, _there) = tokio::io::duplex(1 << 16);
    let limits = McpLimits { start_timeout: SHORT, ..limits() };
    let error = Mcp::builder().stream("s", here).limits(limits).connect().expect_err("no answer");
    assert_eq!(error.to_string(), "MCP server `s`: not ready after 0.1 s");
}

#[test]
fn nonsense_response_is_an_error() {
    let runtime = runtime();
    for nonsense in ["{\"jsonrpc\": \"2.0\", \"id\": 0, \"result\": 5}\n", "\u{0}\u{1}{{{\n"] {
        let (here, mut there) = tokio::io::duplex(1 << 16);
        runtime.spawn(async move {
            let _ = there.read(&mut [0; 1000]).await;
            let _ = there.write_all(nonsense.as_bytes()).await; // And it hangs up.
        });
        let error = Mcp::builder().stream("s", here).limits(limits()).connect().expect_err("nonsense");
        assert!(matches!(error, Error::Connect { .. }), "{error}");
    }
}

#[test]
fn overlong_message_ends_its_call() {
    let runtime = runtime();
    let server = Fake::with(vec![tool("long"), tool("other")]);
    let limits = McpLimits { max_message_bytes: 1 << 16, ..limits() };
    let mcp = connecting(&server, &runtime).limits(limits).connect().expect("connects");
    assert!(error(&mcp, "s_long").contains("more than 65536 bytes"));
    assert_eq!(call(&mcp, "s_other"), "other {}");
}

#[test]
fn connections_run_on_the_caller_runtime() {
    let runtime = runtime();
    let server = Fake::with(vec![tool("a")]);
    let mcp = connecting(&server, &runtime).runtime(runtime.handle().clone());
    runtime.block_on(async move {
        let mcp = mcp.connect_async().await.expect("connects");
        let mut calls =
            mcp.tools().start(vec![ToolCall::new("s_a", Default::default())], &CancelHandle::new(), None);
        assert_eq!(calls.recv().await.expect("one result").content.text(), "a {}");
        drop(mcp);
    });
    // Without a runtime of the caller it is not dropped on this one either.
    let mcp = connecting(&server, &runtime);
    runtime.block_on(async move { drop(mcp.connect_async().await.expect("connects")) });
}

#[test]
fn call_after_close_is_an_error() {
    let runtime = runtime();
    let mcp = connecting(&Fake::with(vec![tool("a")]), &runtime).connect().expect("connects");
    let tools = mcp.tools();
    drop(mcp);
    let result = tools.call(&ToolCall::new("s_a", Default::default())).to_json();
    assert!(result["content"]["error"].is_string(), "{result}");
}
