//! Answers with a part that is no part, and answers that cannot be read.

use crate::common::raw::{Raw, call, client, end, response, runtime, text};
use crate::common::{LONG, wait_for};
use lm_mcp::McpLimits;
use lm_tools::Value;
use serde_json::json;
use std::sync::Arc;

#[test]
fn odd_part_costs_no_other_part() {
    let part = |text: &str| json!({"type": "text", "text": text});
    let odd = [
        (json!({"type": "hologram", "data": "x"}), "[content of type hologram is not supported]"),
        (json!({"type": "text"}), "[content of type text is malformed: missing field `text`]"),
        (
            json!({"type": "image", "data": 5, "mimeType": "image/png"}),
            "[content of type image is malformed: invalid type: integer `5`, expected a string]",
        ),
        (json!({"text": "x"}), "[content without a type is not supported]"),
        (json!(5), "[content without a type is not supported]"),
        (json!({"type": "text", "text": "shown", "annotations": {"priority": "high"}}), "shown"),
    ];
    let (runtime, mut odds) = (runtime(), odd.clone().into_iter());
    let (builder, server) = client(&runtime, move |raw, request| {
        request["method"] == "tools/call" && {
            let (odd, _) = odds.next().expect("a call for each");
            raw.answer(request, &json!({"content": [part("before"), odd, part("after")]}))
        }
    });
    let mcp = builder.connect().expect("connects");
    for (odd, shown) in odd {
        assert_eq!(call(&mcp), format!("before\n{shown}\nafter"), "{odd}");
    }
    end(mcp, server);
}

#[test]
fn error_and_structured_content_beside_an_odd_part_are_read() {
    let odd = json!({"type": "hologram"});
    let results = [
        json!({"content": [{"type": "text", "text": "no ink"}, odd], "isError": true}),
        json!({"content": [odd], "structuredContent": {"n": 1}}),
    ];
    let (runtime, mut results) = (runtime(), results.into_iter());
    let (builder, server) = client(&runtime, move |raw, request| {
        request["method"] == "tools/call" && raw.answer(request, &results.next().expect("a call for each"))
    });
    let mcp = builder.connect().expect("connects");
    assert_eq!(call(&mcp)["error"], "no ink\n[content of type hologram is not supported]");
    assert_eq!(call(&mcp), "{\"n\":1}\n[content of type hologram is not supported]");
    end(mcp, server);
}

/// Lines in place of the answer to a request with an id, and the error of its call.
fn unreadable(id: &Value) -> Vec<(Vec<u8>, &'static str)> {
    let long = "x".repeat(MAX_BYTES);
    let too_long = "its answer has more than 65536 bytes, so the result is lost";
    let invalid = "its answer is not valid JSON (";
    let lines = [
        (response(id, &text(&long)), too_long),
        (format!(r#"{{"result":{{"content":[],"a":"{long}"}},"jsonrpc":"2.0","id":{id}}}"#), too_long),
        (format!(r#"{{"result":"{long}"}}"#), too_long),
        (format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[}}}}"#), invalid),
        (
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}1{}}}"#, "[".repeat(500), "]".repeat(500)),
            invalid,
        ),
        (r#"{"jsonrpc":"2.0","result":{"content":"#.to_owned(), invalid),
        (format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"no ink"}}"#), "its answer is not a message ("),
        (format!(r#"{{"jsonrpc":"2.0","id":{id}}}"#), "its answer is not a message ("),
    ];
    lines.map(|(line, error)| (line.into_bytes(), error)).into()
}

const MAX_BYTES: usize = 1 << 16;

fn limits() -> McpLimits {
    McpLimits {
        start_timeout: LONG,
        call_timeout: None,
        max_message_bytes: MAX_BYTES,
        ..McpLimits::default()
    }
}

#[test]
fn unreadable_answer_ends_its_call_at_once() {
    let (runtime, mut calls) = (runtime(), 0);
    let (builder, server) = client(&runtime, move |raw, request| {
        if request["method"] != "tools/call" {
            return false;
        }
        calls += 1;
        calls % 2 == 1 && raw.send_line(&unreadable(&request["id"])[calls / 2].0)
    });
    let mcp = builder.limits(limits()).connect().expect("connects");
    for (line, expected) in unreadable(&json!(0)) {
        let shown = String::from_utf8_lossy(&line[..line.len().min(100)]).into_owned();
        let error = call(&mcp)["error"].to_string();
        assert!(error.contains("MCP server `s`: ") && error.contains(expected), "{shown}: {error}");
        assert_eq!(call(&mcp), "ok", "after {shown}");
    }
    assert!(mcp.servers()[0].is_connected);
    end(mcp, server);
}

#[test]
fn unreadable_answer_ends_no_other_call() {
    let (runtime, mut first) = (runtime(), None);
    let (builder, server) = client(&runtime, move |raw: &mut Raw, request: &Value| {
        if request["method"] != "tools/call" {
            return false;
        }
        let Some(first) = first.take() else {
            first = Some(request["id"].clone());
            return true;
        };
        raw.send_line(response(&first, &text(&"x".repeat(MAX_BYTES))).as_bytes())
            && raw.answer(request, &text("ok"))
    });
    let mcp = Arc::new(builder.limits(limits()).connect().expect("connects"));
    let calls = [0, 1].map(|_| {
        let mcp = mcp.clone();
        std::thread::spawn(move || call(&mcp))
    });
    let results = calls.map(|call| call.join().expect("no panic"));
    assert_eq!(results.iter().filter(|result| **result == "ok").count(), 1, "{results:?}");
    assert_eq!(results.iter().filter(|result| result["error"].is_string()).count(), 1, "{results:?}");
    wait_for("the threads drop it", || Arc::strong_count(&mcp) == 1);
    end(Arc::into_inner(mcp).expect("the last one"), server);
}

#[test]
fn text_that_is_not_unicode_is_mended() {
    let (runtime, mut calls) = (runtime(), 0);
    let (builder, server) = client(&runtime, move |raw, request| {
        if request["method"] != "tools/call" {
            return false;
        }
        calls += 1;
        let answer = response(&request["id"], &text("cut HERE"));
        let (before, after) = answer.split_once("HERE").expect("a mark");
        let odd: &[u8] = if calls == 1 { br"\ud83d" } else { b"\xf0\x9f" };
        raw.send_line(&[before.as_bytes(), odd, after.as_bytes()].concat())
    });
    let mcp = builder.connect().expect("connects");
    assert_eq!(call(&mcp), "cut \u{fffd}");
    assert_eq!(call(&mcp), "cut \u{fffd}");
    end(mcp, server);
}
