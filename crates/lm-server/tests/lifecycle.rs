//! Requests in time: disconnected clients, queues, panics, shutdown.

use crate::support;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Request, Response, Running, slow_engine};
use lm_model::testing::HookedLm;
use lm_server::{ServerConfig, ServerLimits};
use lm_session::testing::{FakeLm, loaded, scripted_engine, tokenizer};
use lm_session::{Engine, EngineSettings, Speculation};
use serde_json::json;

const PASS: Duration = Duration::from_millis(20);

fn slow(settings: EngineSettings, limits: ServerLimits) -> (Running, support::Passes) {
    let (engine, passes) = slow_engine(PASS, settings);
    (Running::start(engine, ServerConfig { limits, ..ServerConfig::default() }), passes)
}

/// A server whose engine waits for a message before each pass, which runs 8 tokens of a prompt or gives one,
/// until the sender is dropped. Passes are counted as they begin to wait.
fn stepped(limits: ServerLimits) -> (Running, support::Passes, Sender<()>) {
    let (open, opened) = channel::<()>();
    let opened = Mutex::new(opened);
    let passes = support::Passes::default();
    let counted = passes.clone();
    let model = FakeLm::scripted(&tokenizer(), [["word "; 400].concat()]);
    let model = HookedLm::new(Arc::new(model)).before_pass(move |_| {
        counted.add();
        let _ = opened.lock().expect("no panic").recv();
        Ok(())
    });
    let settings =
        EngineSettings { speculation: Speculation::OFF, prefill_chunk: 8, ..EngineSettings::default() };
    let engine = Engine::new(loaded(model), settings).expect("it fits");
    (Running::start(engine, ServerConfig { limits, ..ServerConfig::default() }), passes, open)
}

/// Requests of every API with a prompt of some hundred tokens.
fn long_prompts(stream: bool) -> [Request; 4] {
    let text = "word ".repeat(300);
    let messages =
        json!({"messages": [{"role": "user", "content": text}], "max_tokens": 9, "stream": stream});
    let responses = json!({"input": text, "max_output_tokens": 9, "stream": stream});
    let bodies = [
        ("/v1/chat/completions", &messages),
        ("/v1/messages", &messages),
        ("/v1/responses", &responses),
        ("/api/chat", &messages),
    ];
    bodies.map(|(path, body)| Request::new("POST", path).body(body))
}

/// Waits until the server says that it is not ready. A connection that is accepted as the shutdown begins is
/// closed without an answer.
fn wait_until_not_ready(server: &Running) {
    let is_refused = || server.open(&Request::new("GET", "/ready")).rest().starts_with("HTTP/1.1 503");
    support::wait_until(is_refused, "the shutdown begins");
}

#[test]
fn disconnect_ends_the_request() {
    let (server, passes) = slow(EngineSettings::default(), ServerLimits::default());
    for stream in [true, false] {
        let mut client = server.open(&Request::chat(json!({"stream": stream})));
        if stream {
            client.event("data: ");
        } else {
            passes.wait_for(passes.count() + 3);
        }
        drop(client);
        let left = passes.count();
        passes.wait_for_silence();
        assert!(
            passes.count() < left + 100,
            "of 400 tokens, {} were made after it had left",
            passes.count() - left
        );
    }
}

#[test]
fn disconnect_during_prefill_ends_the_request_within_a_step() {
    for stream in [true, false] {
        for request in long_prompts(stream) {
            let (server, passes, open) = stepped(ServerLimits::default());
            let client = server.open(&request);
            (0..2).for_each(|_| open.send(()).expect("the engine runs"));
            passes.wait_for(3);
            drop(client);
            let left = "lm_failed_replies_total{model_name=\"fake\",status=\"499\"} 1";
            support::wait_until(|| server.get("/metrics").body.contains(left), "the server notices it");
            drop(open);
            passes.wait_for_silence();
            assert_eq!(passes.count(), 3, "no step begins after it has left: {request:?}");
        }
    }
}

#[test]
fn disconnect_keeps_other_requests() {
    let (server, _) = slow(EngineSettings::default(), ServerLimits::default());
    let mut leaves = server.open(&Request::chat(json!({"stream": true})));
    let mut stays = server.open(&Request::chat(json!({"stream": true, "max_tokens": 60})));
    leaves.event("data: ");
    stays.event("data: ");
    drop(leaves);
    let rest = stays.rest();
    assert!(rest.contains("\"finish_reason\":\"length\"") && rest.contains("data: [DONE]"), "{rest}");
}

#[test]
fn disconnect_ends_embeddings() {
    let (server, passes) = slow(EngineSettings::default(), ServerLimits::default());
    for path in ["/v1/embeddings", "/api/embed"] {
        let texts: Vec<_> = (0..1_500).map(|number| format!("text {number}")).collect();
        let before = passes.count();
        let client = server.open(&Request::new("POST", path).body(&json!({"input": texts})));
        passes.wait_for(before + 2);
        drop(client);
        passes.wait_for_silence();
        assert!(passes.count() < before + 60, "{path}: {} passes", passes.count() - before);
    }
}

#[test]
fn full_queue_sets_retry_after() {
    let settings =
        EngineSettings { max_running_requests: 1, max_waiting_requests: 1, ..EngineSettings::default() };
    let (server, _) = slow(settings, ServerLimits::default());
    let mut first = server.open(&Request::chat(json!({"stream": true})));
    first.event("data: ");
    let others = [(); 3].map(|()| server.open(&Request::chat(json!({"stream": true}))));
    let mut heads = others.map(|mut client| (client.head(), client));
    heads.sort_by_key(|((status, _), _)| *status);
    let statuses = heads.each_ref().map(|((status, _), _)| *status);
    assert_eq!(statuses, [200, 429, 429], "one waits");
    let ((status, headers), mut client) = heads.into_iter().next_back().expect("three");
    let refused = Response { status, headers, body: client.rest() };
    assert_eq!(refused.error(), (429, "rate_limit_error".to_owned(), None));
    let seconds: Option<u64> = refused.header("retry-after").and_then(|seconds| seconds.parse().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 1), "{refused:?}");
    drop(first);
}

#[test]
fn overlong_request_ends() {
    let limits = ServerLimits { request_time: Duration::from_millis(300), ..ServerLimits::default() };
    let (server, passes) = slow(EngineSettings::default(), limits);
    assert_eq!(server.send(&Request::chat(json!({}))).status, 504);
    let text = server.post("/v1/completions", &json!({"prompt": "Hello", "max_tokens": 300}));
    assert_eq!(text.status, 504, "{}", text.body);
    let streamed = server.send(&Request::chat(json!({"stream": true})));
    let events = streamed.events();
    let [.., error, done] = &events[..] else { panic!("{events:?}") };
    assert!(error.starts_with("{\"error\":") && done == "[DONE]", "{events:?}");
    passes.wait_for_silence();
}

#[test]
fn slow_senders_time_out() {
    let limits = ServerLimits {
        body_time: Duration::from_millis(200),
        header_time: Duration::from_millis(300),
        ..ServerLimits::default()
    };
    let server = Running::scripted(["Hello!"], ServerConfig { limits, ..ServerConfig::default() });
    let mut headers = server.connect();
    headers.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc");
    assert_eq!(headers.rest(), "", "the connection is closed");
    let mut body = server.connect();
    body.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
    assert_eq!(body.head().0, 408);
    let mut idle = server.connect();
    assert_eq!(idle.rest(), "", "an idle connection is closed");
}

#[test]
fn non_reading_client_times_out() {
    let limits =
        ServerLimits { write_time: Duration::from_millis(300), connections: 1, ..ServerLimits::default() };
    let server = Running::scripted(["Hello!"], ServerConfig { limits, ..ServerConfig::default() });
    // A response larger than what the system keeps for a connection.
    let body = json!({"messages": [{"role": "user", "content": "a".repeat(14 << 20)}]}).to_string();
    let _reads_nothing = server.open(&Request::new("POST", "/apply-template").text_body(&body));
    // Its place is the only one.
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn excess_connections_wait() {
    let limits = ServerLimits { connections: 1, ..ServerLimits::default() };
    let server = Running::scripted(["Hello!"], ServerConfig { limits, ..ServerConfig::default() });
    let holds = server.connect();
    std::thread::sleep(Duration::from_millis(200));
    let mut waits = server.open(&Request::new("GET", "/health"));
    std::thread::sleep(Duration::from_millis(200));
    drop(holds);
    assert_eq!(waits.head().0, 200);
}

#[test]
fn engine_panic_fails_only_the_request() {
    let model = FakeLm::scripted(&tokenizer(), ["Hello!"]);
    let model = HookedLm::new(Arc::new(model)).before_pass(|_| panic!("a secret"));
    let engine = Engine::new(loaded(model), EngineSettings::default()).expect("it fits");
    let server = Running::start(engine, ServerConfig::default());
    let response = server.send(&Request::chat(json!({})));
    assert_eq!(response.status, 500, "{response:?}");
    assert!(!response.body.contains("a secret"), "{}", response.body);
    assert_eq!((server.get("/ready").status, server.get("/health").status), (200, 200));
}

#[test]
fn stopped_engine_is_neither_healthy_nor_ready() {
    let engine = scripted_engine(["Hello!"]);
    let server = Running::start(engine.clone(), ServerConfig::default());
    engine.shutdown();
    for path in ["/health", "/ready"] {
        assert_eq!(server.get(path).status, 503, "{path}");
    }
    let refused = server.send(&Request::chat(json!({})));
    assert_eq!(refused.error().0, 503, "{refused:?}");
}

#[test]
fn shutdown_lets_streams_finish() {
    let limits = ServerLimits { shutdown_time: Duration::from_secs(3_600), ..ServerLimits::default() };
    let (server, _, open) = stepped(limits);
    let mut stream = server.open(&Request::chat(json!({"stream": true, "max_tokens": 60})));
    (0..20).for_each(|_| open.send(()).expect("the engine runs"));
    stream.event("data: ");
    assert_eq!(server.get("/ready").status, 200);
    server.shutdown.begin();
    wait_until_not_ready(&server);
    assert_eq!((server.get("/ready").status, server.get("/health").status), (503, 200));
    for refused in [server.send(&Request::chat(json!({}))), server.get("/v1/models")] {
        assert_eq!(
            (refused.error(), refused.header("retry-after")),
            ((503, "unavailable_error".to_owned(), None), Some("1"))
        );
    }
    // The stream has not ended before: 40 tokens are missing.
    drop(open);
    let rest = stream.rest();
    assert!(rest.contains("\"finish_reason\":\"length\"") && rest.contains("data: [DONE]"), "{rest}");
    let addr = server.addr;
    server.wait();
    assert!(std::net::TcpStream::connect(addr).is_err(), "it no longer listens");
}

#[test]
fn shutdown_does_not_wait_for_incomplete_requests() {
    // Longer than a test may take.
    let long = Duration::from_secs(3_600);
    let limits =
        ServerLimits { shutdown_time: long, header_time: long, body_time: long, ..ServerLimits::default() };
    let server = Running::scripted(["Hello!"], ServerConfig { limits, ..ServerConfig::default() });
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n";
    let [mut silent, mut half_head, mut half_body, mut idle] = [(); 4].map(|()| server.connect());
    half_head.write(head.as_bytes());
    // The answer to the head says that the server reads the body.
    half_body.write(format!("{head}Content-Length: 100\r\nExpect: 100-continue\r\n\r\n").as_bytes());
    assert_eq!(half_body.head().0, 100);
    half_body.write(b"{");
    idle.write(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(idle.head().0, 200);
    idle.write(head.as_bytes());
    server.shutdown.begin();
    assert_eq!(half_body.head().0, 503);
    for client in [&mut silent, &mut half_head] {
        assert_eq!(client.rest(), "", "it is closed without an answer");
    }
    server.wait();
}

#[test]
fn half_closed_connection_counts_as_disconnect() {
    let (server, passes) = slow(EngineSettings::default(), ServerLimits::default());
    let mut client = server.open(&Request::chat(json!({})));
    passes.wait_for(3);
    client.close_half();
    assert_eq!(client.rest(), "");
    let left = passes.count();
    passes.wait_for_silence();
    assert!(passes.count() < left + 100, "{} passes after it had left", passes.count() - left);
}

#[test]
fn shutdown_cancels_overlong_streams() {
    let limits = ServerLimits { shutdown_time: Duration::from_millis(200), ..ServerLimits::default() };
    let (server, passes) = slow(EngineSettings::default(), limits);
    let text = json!({"prompt": "Hello", "max_tokens": 2_000, "stream": true});
    let requests =
        [Request::chat(json!({"stream": true})), Request::new("POST", "/v1/completions").body(&text)];
    let mut streams = requests.each_ref().map(|request| server.open(request));
    streams.iter_mut().for_each(|stream| drop(stream.event("data: ")));
    server.shutdown.begin();
    for mut stream in streams {
        let rest = stream.rest();
        assert!(rest.contains("data: {\"error\":") && rest.contains("data: [DONE]"), "{rest}");
    }
    server.wait();
    passes.wait_for_silence();
}

#[test]
fn stream_gets_keep_alives_while_its_prompt_is_run() {
    let limits = ServerLimits { keep_alive: Duration::from_millis(50), ..ServerLimits::default() };
    let [chat, messages, responses, _] = long_prompts(true);
    for (request, ping, data, end) in [
        (chat, ": ping", "", "data: [DONE]"),
        (messages, "event: ping", r#"data: {"type":"ping"}"#, "event: message_stop"),
        (responses, ": ping", "", "event: response.incomplete"),
    ] {
        let (server, passes, open) = stepped(limits.clone());
        let mut client = server.open(&request);
        let mut pings = |number: usize| {
            for _ in 0..number {
                assert_eq!((client.event(ping), client.line()), (ping.to_owned(), data.to_owned()));
            }
        };
        passes.wait_for(1);
        pings(1);
        open.send(()).expect("the engine runs");
        passes.wait_for(2);
        pings(9); // More than there were before, and the one that follows `message_start`.
        drop(open);
        assert!(client.rest().contains(end), "{request:?}");
    }
}
