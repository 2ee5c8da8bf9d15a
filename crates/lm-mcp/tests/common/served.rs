//! A toolset that is served, and the course of a client of the Python SDK that uses it.

use super::{script, shown, wait_for};
use lm_tools::{CallContext, Map, ToolAnnotations, Toolset, Value, tool};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Waits until it is cancelled, which it notes in a file, as the id of its process before.
#[tool]
async fn wait(context: &CallContext, file: String) -> String {
    std::fs::write(&file, format!("started in {}", std::process::id())).expect("a folder of ours");
    let context = context.clone();
    let (done, waiting) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        while !context.is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::write(&file, "cancelled").expect("a folder of ours");
        let _ = done.send(());
    });
    let _ = waiting.await;
    "cancelled".to_owned()
}

/// Counts to three.
#[tool]
fn count(context: &CallContext) -> u32 {
    (1..=3).for_each(|number| context.progress(format!("at {number}")));
    3
}

/// Fails for a reason.
#[tool]
fn fail(reason: String) -> Result<Value, String> {
    Err(reason)
}

/// A tool with hints and a schema of its result.
struct Doubled;

impl lm_tools::Tool for Doubled {
    fn spec(&self) -> lm_tools::ToolSpec {
        let parameters =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        lm_tools::ToolSpec::new("double", "Doubles a number.", parameters)
    }

    fn call(&self, arguments: Map<String, Value>, _: &CallContext) -> lm_tools::ToolOutput {
        Ok(json!({"doubled": 2 * arguments["n"].as_i64().unwrap_or_default()})).into()
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() }
    }

    fn output_schema(&self) -> Option<Value> {
        Some(
            json!({"type": "object", "properties": {"doubled": {"type": "integer"}}, "required": ["doubled"]}),
        )
    }
}

/// The tools that our server has.
pub fn tools() -> Toolset {
    let tools = lm_tools::toolset![lm_tools::demo(), wait, fail];
    tools.and_then(|tools| tools.with(Doubled)?.with(count::tool())).expect("names differ")
}

/// Starts the Python client on these commands.
pub fn start(venv: &Path, args: &[&str], commands: &[Value]) -> Child {
    let mut child = Command::new(venv.join("bin/python"))
        .arg(script("client.py"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("is piped");
    for command in commands {
        writeln!(input, "{command}").expect("it reads");
    }
    child
}

/// Waits for the client's end; returns its observations.
pub fn observed(client: Child) -> Vec<Value> {
    let output = client.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Drives our server with the Python client, in a version of the protocol.
pub fn check(venv: &Path, args: &[&str], version: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| shown(&folder.path().join(name));
    let client = start(
        venv,
        args,
        &[
            json!({"list": true}),
            json!({"call": "calculate", "arguments": {"expression": "6 * 7"}}),
            json!({"call": "get_weather", "arguments": {"location": "Paris"}}),
            json!({"call": "double", "arguments": {"n": 4}}),
            json!({"call": "fail", "arguments": {"reason": "no ink"}}),
            json!({"call": "calculate", "arguments": {"expression": 5}}),
            json!({"call": "absent"}),
            json!({"call": "wait", "arguments": {"file": file("late")}, "timeout": 1}),
            json!({"cancel": "wait", "arguments": {"file": file("cancelled")}, "after": 1}),
            json!({"call": "calculate", "arguments": {"expression": "1 + 1"}}),
            json!({"call": "count", "progress": true}),
        ],
    );
    let seen = observed(client);
    assert_eq!(seen[0]["version"], version);
    let tools = seen[0]["tools"].as_array().expect("a list");
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(
        names,
        ["get_weather", "get_stock_price", "current_time", "calculate", "wait", "fail", "double", "count"]
    );
    assert_eq!(tools[6]["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(tools[6]["outputSchema"]["required"], json!(["doubled"]));
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["location"]));
    let text = |index: usize| &seen[index]["result"]["content"][0]["text"];
    assert_eq!((text(1), &seen[1]["result"]["isError"]), (&json!("42"), &json!(false)));
    assert_eq!(seen[2]["result"]["structuredContent"]["temperature"], 72);
    assert_eq!(seen[3]["result"]["structuredContent"], json!({"doubled": 8}));
    assert_eq!((text(4), &seen[4]["result"]["isError"]), (&json!("no ink"), &json!(true)));
    assert_eq!(text(5), "argument `expression`: expected string, got 5");
    assert!(
        seen[6]["error"].as_str().is_some_and(|error| error.contains("there is no tool `absent`")),
        "{}",
        seen[6]
    );
    assert!(seen[7]["error"].as_str().is_some_and(|error| error.contains("timed out")), "{}", seen[7]);
    assert_eq!(seen[8], json!({"cancelled": true}));
    for name in ["late", "cancelled"] {
        let notes = || std::fs::read_to_string(file(name)).unwrap_or_default();
        wait_for("the call is cancelled", || notes() == "cancelled");
    }
    assert_eq!(text(9), "2");
    assert_eq!(seen[10]["progress"], json!([[1.0, "at 1"], [2.0, "at 2"], [3.0, "at 3"]]));
}
