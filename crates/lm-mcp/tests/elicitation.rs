//! Questions of servers to the user during calls, and calls that become tasks.

use crate::common::raw::{self, Raw, Seen, discovered, handshake, listed, methods, noting};
use crate::common::{LONG, wait_for};
use lm_mcp::{Elicitation, ElicitationAnswer, ElicitationMode, McpBuilder, McpLimits};
use lm_tools::{CancelHandle, ToolCall, Value};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A client of a server without a handshake, which leaves other requests to `answer`.
fn modern(mut answer: impl FnMut(&mut Raw, &Value) + Send + 'static) -> (McpBuilder, Seen, Runtime) {
    let (builder, seen, runtime) = noting(move |raw, request| match request["method"].as_str() {
        Some("server/discover") => {
            let mut found = discovered();
            found["capabilities"] = json!({"tools": {}});
            raw.answer(request, &found);
        }
        Some("tools/list") => drop(raw.answer(request, &listed())),
        _ => answer(raw, request),
    });
    (builder, seen, runtime)
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

fn question() -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": schema()}})
}

fn asks(requests: Value) -> Value {
    json!({"resultType": "input_required", "inputRequests": requests, "requestState": "state-1"})
}

/// A handler that notes the questions, and answers them alike.
fn answering(answer: ElicitationAnswer, builder: McpBuilder) -> (McpBuilder, Arc<Mutex<Vec<Elicitation>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = asked.clone();
    let builder = builder.elicitation(move |question| {
        notes.lock().expect("no panic").push(question);
        std::future::ready(answer.clone())
    });
    (builder, asked)
}

/// Asks in the first request of a call; the answers are the result.
fn asking_once(raw: &mut Raw, request: &Value) {
    let answers = &request["params"]["inputResponses"];
    match answers.is_null() {
        true => raw.answer(request, &asks(json!({"who": question()}))),
        false => raw.answer(request, &raw::text(&answers.to_string())),
    };
}

fn accepted() -> ElicitationAnswer {
    ElicitationAnswer::Accept([("name".to_owned(), json!("Ada"))].into_iter().collect())
}

#[test]
fn answers_go_with_the_next_request() {
    for (answer, expected) in [
        (accepted(), json!({"who": {"action": "accept", "content": {"name": "Ada"}}})),
        (ElicitationAnswer::Decline, json!({"who": {"action": "decline"}})),
        (ElicitationAnswer::Cancel, json!({"who": {"action": "cancel"}})),
    ] {
        let (builder, seen, _runtime) = modern(asking_once);
        let (builder, asked) = answering(answer, builder);
        let mcp = builder.connect().expect("connects");
        let result = raw::call(&mcp);
        assert_eq!(serde_json::from_str::<Value>(result.as_str().expect("text")).expect("JSON"), expected);
        let asked = asked.lock().expect("no panic");
        assert_eq!((asked[0].server.as_str(), asked[0].message.as_str(), asked.len()), ("s", "Who?", 1));
        assert_eq!(asked[0].mode, ElicitationMode::Form { schema: schema() });
        let seen = seen.lock().expect("no panic");
        let calls: Vec<_> = seen.iter().filter(|request| request["method"] == "tools/call").collect();
        assert_eq!((calls.len(), &calls[1]["params"]["requestState"]), (2, &json!("state-1")));
        let declared = &calls[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared["elicitation"], json!({"form": {}, "url": {}}));
    }
}

#[test]
fn questions_that_nobody_answers_fail_the_call() {
    let expected = "MCP server `s` asks for more than the arguments, which this program does not support";
    let (builder, seen, _runtime) = modern(asking_once);
    let mcp = builder.connect().expect("connects");
    assert_eq!(raw::call(&mcp)["error"], expected);
    let last = seen.lock().expect("no panic").last().cloned().expect("a request");
    let declared = &last["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert!(declared["elicitation"].is_null(), "{declared}");

    let (builder, _, _runtime) = modern(|raw, request| {
        let sampling =
            json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}});
        raw.answer(request, &asks(json!({"text": sampling})));
    });
    let (builder, _) = answering(accepted(), builder);
    assert_eq!(raw::call(&builder.connect().expect("connects"))["error"], expected);
}

#[test]
fn questions_without_end_fail_the_call() {
    let (builder, seen, _runtime) = modern(|raw, request| {
        raw.answer(request, &asks(json!({"who": question()})));
    });
    let (builder, asked) = answering(accepted(), builder);
    let error = raw::call(&builder.connect().expect("connects"))["error"].to_string();
    assert!(error.contains("10") && error.contains("rounds"), "{error}");
    assert_eq!(asked.lock().expect("no panic").len(), 10);
    assert_eq!(methods(&seen).iter().filter(|method| *method == "tools/call").count(), 10);
}

#[test]
fn pages_are_addresses_of_the_web() {
    let page = |url: &str| {
        json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Log in.", "url": url,
            "elicitationId": "1"}})
    };
    for (url, is_asked) in [("https://example.com/login", true), ("file:///etc/passwd", false)] {
        let requests = json!({"page": page(url)});
        let (builder, _, _runtime) = modern(move |raw, request| {
            let answers = &request["params"]["inputResponses"];
            match answers.is_null() {
                true => raw.answer(request, &asks(requests.clone())),
                false => raw.answer(request, &raw::text(answers["page"]["action"].as_str().expect("text"))),
            };
        });
        let (builder, asked) = answering(ElicitationAnswer::Accept(Default::default()), builder);
        let result = raw::call(&builder.connect().expect("connects"));
        assert_eq!(result, if is_asked { "accept" } else { "decline" });
        let expected = ElicitationMode::Url { url: url.to_owned() };
        assert_eq!(asked.lock().expect("no panic").iter().any(|asked| asked.mode == expected), is_asked);
    }
}

#[test]
fn servers_with_a_handshake_ask_with_a_request() {
    let mut call = Value::Null;
    let (builder, _, _runtime) = noting(move |raw, request| match request["method"].as_str() {
        Some("server/discover") => {
            let error = json!({"code": -32601, "message": "unknown"});
            raw.send_line(
                json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string().as_bytes(),
            );
        }
        Some("initialize") => {
            assert_eq!(request["params"]["capabilities"]["elicitation"], json!({"form": {}, "url": {}}));
            raw.answer(request, &handshake());
        }
        Some("tools/list") => drop(raw.answer(request, &json!({"tools": [raw::tool("t")]}))),
        Some("tools/call") => {
            call = request.clone();
            let mut question = question();
            (question["jsonrpc"], question["id"]) = (json!("2.0"), json!("q"));
            raw.send_line(question.to_string().as_bytes());
        }
        _ if request["id"] == "q" => {
            raw.answer(&call, &raw::text(&request["result"].to_string()));
        }
        _ => {}
    });
    let (builder, _) = answering(accepted(), builder);
    let result = raw::call(&builder.connect().expect("connects"));
    assert_eq!(result, r#"{"action":"accept","content":{"name":"Ada"}}"#);
}

#[test]
fn questions_outside_of_calls_are_declined() {
    let (builder, seen, _runtime) = noting(|raw, request| match request["method"].as_str() {
        Some("server/discover") => {
            let error = json!({"code": -32601, "message": "unknown"});
            raw.send_line(
                json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string().as_bytes(),
            );
        }
        Some("initialize") => drop(raw.answer(request, &handshake())),
        Some("tools/list") => {
            raw.answer(request, &json!({"tools": [raw::tool("t")]}));
            let mut question = question();
            (question["jsonrpc"], question["id"]) = (json!("2.0"), json!("q"));
            raw.send_line(question.to_string().as_bytes());
        }
        _ => {}
    });
    let (builder, asked) = answering(accepted(), builder);
    let _mcp = builder.connect().expect("connects");
    let answer = || seen.lock().expect("no panic").iter().find(|message| message["id"] == "q").cloned();
    wait_for("the question is answered", || answer().is_some());
    assert_eq!(answer().expect("an answer")["result"], json!({"action": "decline"}));
    assert!(asked.lock().expect("no panic").is_empty());
}

#[test]
fn time_of_a_question_does_not_count() {
    let (builder, _, _runtime) = modern(asking_once);
    let limit = Duration::from_millis(500);
    let limits = McpLimits { start_timeout: LONG, call_timeout: Some(limit), ..McpLimits::default() };
    let builder = builder.limits(limits).elicitation(move |_| async move {
        tokio::time::sleep(3 * limit).await;
        accepted()
    });
    let result = raw::call(&builder.connect().expect("connects"));
    assert!(result.as_str().is_some_and(|result| result.contains("Ada")), "{result}");
}

/// The state of a task.
fn task(status: &str, more: Value) -> Value {
    let mut task = json!({"taskId": "task-1", "status": status, "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "pollIntervalMs": 50});
    for (key, value) in more.as_object().into_iter().flatten() {
        task[key] = value.clone();
    }
    task
}

/// A server whose calls are tasks, with these states one after the other.
fn with_task(mut states: Vec<Value>) -> (McpBuilder, Seen, Runtime) {
    modern(move |raw, request| {
        match request["method"].as_str() {
            Some("tools/call") => raw.answer(request, &task("working", json!({"resultType": "task"}))),
            Some("tasks/get") => {
                let state = if states.len() > 1 { states.remove(0) } else { states[0].clone() };
                raw.answer(request, &state)
            }
            Some("tasks/update" | "tasks/cancel") => raw.answer(request, &json!({"resultType": "complete"})),
            _ => true,
        };
    })
}

#[test]
fn results_of_tasks_are_polled() {
    let done = task("completed", json!({"result": raw::text("done")}));
    let needs = task("input_required", json!({"inputRequests": {"who": question()}}));
    let working = task("working", json!({}));
    let (builder, seen, _runtime) = with_task(vec![working.clone(), needs.clone(), needs, working, done]);
    let (builder, asked) = answering(accepted(), builder);
    assert_eq!(raw::call(&builder.connect().expect("connects")), "done");
    assert_eq!(asked.lock().expect("no panic").len(), 1, "a question is asked once");
    let seen = seen.lock().expect("no panic");
    let updates: Vec<_> = seen.iter().filter(|request| request["method"] == "tasks/update").collect();
    let expected = json!({"who": {"action": "accept", "content": {"name": "Ada"}}});
    assert_eq!((updates.len(), &updates[0]["params"]["inputResponses"]), (1, &expected));
    let call = seen.iter().find(|request| request["method"] == "tools/call").expect("a call");
    let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared["extensions"]["io.modelcontextprotocol/tasks"], json!({}));
}

#[test]
fn questions_of_tasks_are_bounded() {
    for (count, is_asked) in [(64, true), (65, false)] {
        let questions: Value = (0..count).map(|number| (number.to_string(), question())).collect();
        let needs = task("input_required", json!({"inputRequests": questions}));
        let done = task("completed", json!({"result": raw::text("done")}));
        let (builder, _, _runtime) = with_task(vec![needs, done]);
        let (builder, asked) = answering(accepted(), builder);
        let result = raw::call(&builder.connect().expect("connects"));
        assert_eq!(result == "done", is_asked, "{count}: {result}");
        assert_eq!(asked.lock().expect("no panic").len(), if is_asked { count } else { 0 });
    }
}

#[test]
fn failed_tasks_fail_the_call() {
    for (state, expected) in [
        (
            task("failed", json!({"error": {"code": -32000, "message": "no ink"}})),
            "MCP server `s`: no ink (error -32000)",
        ),
        (
            task("cancelled", json!({"statusMessage": "by the server"})),
            "MCP server `s`: task cancelled for reason by the server",
        ),
    ] {
        let (builder, seen, _runtime) = with_task(vec![state]);
        assert_eq!(raw::call(&builder.connect().expect("connects"))["error"], expected);
        assert!(!methods(&seen).contains(&"tasks/cancel".to_owned()));
    }
}

#[test]
fn late_and_cancelled_tasks_are_cancelled_at_the_server() {
    let working = task("working", json!({}));
    let is_cancelled = |seen: &Seen| methods(seen).contains(&"tasks/cancel".to_owned());
    let (builder, seen, _runtime) = with_task(vec![working.clone()]);
    let limits = McpLimits { call_timeout: Some(Duration::from_millis(300)), ..McpLimits::default() };
    let mcp = builder.limits(limits).connect().expect("connects");
    let error = raw::call(&mcp)["error"].to_string();
    assert!(error.contains("no result after 0.3 s"), "{error}");
    wait_for("the late task is cancelled", || is_cancelled(&seen));

    let (builder, seen, _runtime) = with_task(vec![working]);
    let mcp = builder.connect().expect("connects");
    let cancel = CancelHandle::new();
    let mut calls = mcp.tools().start(vec![ToolCall::new("s_t", Default::default())], &cancel, None);
    wait_for("the task is asked for", || methods(&seen).contains(&"tasks/get".to_owned()));
    cancel.cancel();
    while calls.next().is_some() {}
    wait_for("the cancelled task is cancelled", || is_cancelled(&seen));
}
