//! Servers that send what no server should: their bytes are written by hand, over streams in memory.

use crate::common::raw::{call, client, end, impatient, response, runtime, text, tool};
use crate::common::wait_for;
use lm_mcp::Mcp;
use lm_tools::Value;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn names(mcp: &Mcp) -> Vec<String> {
    mcp.tools().names().map(str::to_owned).collect()
}

/// An odd declaration costs its tool, which a problem names.
#[test]
fn odd_declaration_costs_no_other_tool() {
    let object = json!({"type": "object"});
    let number = |bounds: Value| json!({"type": "object", "properties": {"n": bounds}, "required": ["n"]});
    for (odd, reason) in [
        (json!({"name": "odd"}), "`inputSchema` is missing"),
        (json!({"name": "odd", "inputSchema": null}), "`inputSchema` is missing"),
        (json!({"name": "odd", "inputSchema": [1]}), "`inputSchema` is a list"),
        (json!({"name": "odd", "inputSchema": object, "annotations": {"destructiveHint": 1}}), "invalid"),
        (json!({"name": "odd", "inputSchema": object, "description": {"en": "x"}}), "invalid"),
        (json!({"name": "odd", "inputSchema": object, "outputSchema": "none"}), "invalid"),
        (json!({"name": "odd", "inputSchema": number(json!({"enum": []}))}), ""),
        (
            json!({"name": "odd", "inputSchema": number(json!({"type": "integer", "minimum": 9, "maximum": 2}))}),
            "",
        ),
        (json!({"name": "odd", "inputSchema": number(json!({"type": "text"}))}), "not a valid JSON schema"),
        (json!({"name": 7, "inputSchema": object}), "invalid"),
        (json!("odd"), "`inputSchema` is missing"),
    ] {
        let runtime = runtime();
        let declared = odd.clone();
        let (builder, server) = client(&runtime, move |raw, request| {
            let tools = json!({"tools": [tool("t"), declared, tool("u")]});
            request["method"] == "tools/list" && raw.answer(request, &tools)
        });
        let mcp = builder.connect().unwrap_or_else(|error| panic!("{odd}: {error}"));
        assert_eq!(names(&mcp), ["s_t", "s_u"], "{odd}");
        let problems = mcp.problems();
        assert_eq!(problems.len(), 1, "{odd}: {problems:?}");
        if odd["name"] == "odd" {
            assert_eq!(problems[0].tool.as_deref(), Some("odd"), "{odd}");
        }
        assert!(problems[0].message.contains(reason), "{odd}: {problems:?}");
        assert_eq!(call(&mcp), "ok", "{odd}");
        end(mcp, server);
    }
}

fn notification(method: &str, params: &Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().into_bytes()
}

fn progress() -> Vec<u8> {
    notification(
        "notifications/progress",
        &json!({"progressToken": 0, "progress": 1, "message": "x".repeat(200)}),
    )
}

/// JSON of arrays in arrays.
fn deep(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

/// Lines that come before an answer and change nothing.
fn noise() -> Vec<Vec<u8>> {
    let of = |message: Value| message.to_string().into_bytes();
    let request = |method: &str, params: Value| {
        of(json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params}))
    };
    vec![
        b"\xff\xfe\x80".to_vec(),
        [&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xc3\x28"[..], b"\"}"].concat(),
        deep(10_000).into_bytes(),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}}", deep(10_000)).into_bytes(),
        notification("notifications/progress", &serde_json::from_str(&deep(100)).expect("JSON")),
        "{\"a\":".repeat(50_000).into_bytes(),
        b"".to_vec(),
        b"\r".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        b"1e999".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        response(&json!(77), &text("never asked")).into_bytes(),
        response(&json!("2"), &text("another type")).into_bytes(),
        response(&Value::Null, &text("no id")).into_bytes(),
        of(json!({"jsonrpc": "2.0", "id": u64::MAX, "error": {"code": -1, "message": "never asked"}})),
        of(json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "without an id"}})),
        of(json!({"jsonrpc": "1.0", "id": 2, "result": 5})),
        notification("notifications/unknown", &json!({})),
        notification("notifications/cancelled", &json!({"requestId": 77})),
        notification("notifications/progress", &json!({"progressToken": "strange", "progress": "much"})),
        request("unknown", json!({})),
        request("roots/list", json!({})),
        request("sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
        request(
            "elicitation/create",
            json!({"message": "your password?", "requestedSchema": {"type": "object", "properties": {}}}),
        ),
        request("tools/call", json!({"name": "t"})),
        [progress(), b"\n".to_vec()].concat().repeat(5_000),
    ]
}

#[test]
fn noise_before_a_response_is_ignored() {
    let runtime = runtime();
    let (mut lines, count) = (noise().into_iter(), noise().len());
    let (builder, server) = client(&runtime, move |raw, request| {
        if request["method"] != "tools/call" {
            return false;
        }
        let line = lines.next().expect("a call for each");
        raw.send_line(&line) && raw.answer(request, &text("ok"))
    });
    let mcp = builder.connect().expect("connects");
    for (number, line) in noise().into_iter().enumerate() {
        assert_eq!(
            call(&mcp),
            "ok",
            "{number} of {count}: {}",
            String::from_utf8_lossy(&line[..line.len().min(200)])
        );
    }
    assert!(mcp.servers()[0].is_connected);
    end(mcp, server);
}

#[test]
fn duplicate_response_does_not_answer_a_later_call() {
    let runtime = runtime();
    let (mut calls, mut last) = (0, Value::Null);
    let (builder, server) = client(&runtime, move |raw, request| {
        if request["method"] != "tools/call" {
            return false;
        }
        calls += 1;
        // Again the answer of the last call, and this one's twice.
        let again = response(&last, &text("again"));
        last = request["id"].clone();
        let answer = text(&format!("answer {calls}"));
        raw.send_line(again.as_bytes()) && raw.answer(request, &answer) && raw.answer(request, &text("twice"))
    });
    let mcp = builder.connect().expect("connects");
    for number in 1..=20 {
        assert_eq!(call(&mcp), format!("answer {number}"));
    }
    end(mcp, server);
}

#[test]
fn malformed_result_is_an_error_and_keeps_the_connection() {
    let results = [
        json!(5),
        json!(null),
        json!("text"),
        json!({"content": 5}),
        json!({"content": [{"type": "text", "text": "x"}], "resultType": "hologram"}),
        json!({"isError": "perhaps", "content": []}),
        json!({"tools": []}),
    ];
    let (runtime, mut answers) = (runtime(), results.clone().into_iter());
    let mut is_wrong = false;
    let (builder, server) = client(&runtime, move |raw, request| {
        is_wrong = request["method"] == "tools/call" && !is_wrong;
        is_wrong && raw.answer(request, &answers.next().expect("a call for each"))
    });
    let mcp = builder.connect().expect("connects");
    for result in results {
        let error = &call(&mcp)["error"];
        assert_eq!(error, "MCP server `s` sent something else than a result", "{result}");
        assert_eq!(call(&mcp), "ok", "after {result}");
    }
    end(mcp, server);
}

#[test]
fn endless_notifications_delay_neither_timeout_nor_close() {
    let runtime = runtime();
    let (builder, server) = client(&runtime, |raw, request| {
        request["method"] == "tools/call" && {
            let lines = [progress(), b"\n".to_vec()].concat().repeat(100);
            while raw.send(&lines) {}
            true
        }
    });
    let mcp = builder.limits(impatient()).connect().expect("connects");
    let error = call(&mcp)["error"].to_string();
    assert!(error.contains("no result after 1 s"), "{error}");
    end(mcp, server);
}

#[test]
fn server_not_reading_responses_is_disconnected() {
    let runtime = runtime();
    let (builder, server) = client(&runtime, |raw, request| {
        request["method"] == "tools/call" && {
            let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}).to_string() + "\n";
            while raw.send(ping.repeat(100).as_bytes()) {}
            true
        }
    });
    let mcp = builder.connect().expect("connects");
    let error = call(&mcp)["error"].to_string();
    assert!(error.contains("the connection to MCP server `s` is lost"), "{error}");
    assert!(!mcp.servers()[0].is_connected);
    end(mcp, server);
}

#[test]
fn result_of_100_megabytes_is_dropped_and_ends_the_call() {
    let runtime = runtime();
    let mut is_first = true;
    let (builder, server) = client(&runtime, move |raw, request| {
        if request["method"] != "tools/call" || !std::mem::take(&mut is_first) {
            return false;
        }
        let piece = vec![b'x'; 1 << 20];
        let start = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"",
            request["id"]
        );
        raw.send(start.as_bytes()) && (0..100).all(|_| raw.send(&piece)) && raw.send_line(b"\"}]}}")
    });
    let mcp = builder.connect().expect("connects");
    let error = call(&mcp)["error"].to_string();
    assert!(error.contains("its answer has more than 16777216 bytes, so the result is lost"), "{error}");
    assert_eq!(call(&mcp), "ok");
    end(mcp, server);
}

#[test]
fn endless_pages_and_100_000_tools_are_cut() {
    let runtime = runtime();
    let many: Vec<String> = (0..100_000).map(|number| tool(&format!("t{number}")).to_string()).collect();
    let pages = [
        r#"{"tools":[],"nextCursor":"again"}"#.to_owned(),
        format!(r#"{{"tools":[{}],"nextCursor":"again"}}"#, tool("t")),
        format!(r#"{{"tools":[{}],"nextCursor":"again"}}"#, many.join(",")),
    ];
    for (page, listed) in pages.into_iter().zip([0, 1, 256]) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let (builder, server) = client(&runtime, move |raw, request| {
            request["method"] == "tools/list" && {
                counted.fetch_add(1, Ordering::Relaxed);
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{page}}}"#, request["id"]);
                raw.send_line(answer.as_bytes())
            }
        });
        let mcp = builder.connect().expect("connects");
        assert_eq!(names(&mcp).len(), listed);
        let problems: Vec<String> = mcp.problems().iter().map(ToString::to_string).collect();
        let cut = "MCP server `s`: it has more than 256 tools: the others are left out".to_owned();
        assert!(problems.contains(&cut), "{problems:?}");
        assert!(asked.load(Ordering::Relaxed) <= 257);
        end(mcp, server);
    }
}

#[test]
fn change_storm_lists_tools_a_few_times() {
    let runtime = runtime();
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let (builder, server) = client(&runtime, move |raw, request| {
        if request["method"] == "tools/list" {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            return raw.answer(request, &json!({"tools": [tool("t"), tool(&format!("t{number}"))]}));
        }
        let changed = [notification("notifications/tools/list_changed", &json!({})), b"\n".to_vec()].concat();
        raw.send(&changed.repeat(2_000)) && raw.answer(request, &text("ok"))
    });
    let mcp = builder.connect().expect("connects");
    let before = (lists.load(Ordering::Relaxed), mcp.generation());
    assert_eq!(call(&mcp), "ok");
    wait_for("the tools are listed again", || mcp.generation() > before.1);
    assert_eq!(call(&mcp), "ok");
    let listed = lists.load(Ordering::Relaxed) - before.0;
    assert!(listed < 1000, "{listed} lists of 4,000 changes");
    end(mcp, server);
}
