//! Our server over standard input and output, driven by the client of the Python SDK. This program is the
//! server, too (`stdio serve`): it has no harness, which would write to the standard output.

mod common;

use common::{installed, served, shown, wait_for};
use lm_mcp::{Listen, serve};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

type Test = (&'static str, fn(&Path, &str));

const TESTS: [Test; 4] = [
    ("python_client_calls_tools_with_handshake", with_a_handshake),
    ("python_client_calls_tools_without_handshake", without_a_handshake),
    ("a_client_that_is_killed_in_a_call_ends_the_call_and_the_server", killed_client),
    ("a_server_that_is_killed_in_a_call_is_an_error_of_the_call", killed_server),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["serve"] {
        let server = serve(served::tools(), Listen::Stdio).expect("it has a client");
        return server.wait().expect("the client closes the connection");
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let program = shown(&std::env::current_exe().expect("a program"));
    for (name, test) in TESTS {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        if let Some(venv) = installed("venv") {
            test(&venv, &program);
            println!("test {name} ... ok");
        }
    }
}

fn with_a_handshake(venv: &Path, program: &str) {
    served::check(venv, &["--legacy", "stdio", program, "serve"], "2025-11-25");
}

fn without_a_handshake(venv: &Path, program: &str) {
    served::check(venv, &["stdio", program, "serve"], "2026-07-28");
}

/// A client in a call of our server.
struct InCall {
    client: Child,
    /// Process of the server.
    server: String,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl InCall {
    fn begin(venv: &Path, program: &str, mode: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("notes");
        let commands = [
            json!({"call": "wait", "arguments": {"file": shown(&file)}}),
            json!({"call": "calculate", "arguments": {"expression": "6 * 7"}}),
        ];
        let client = served::start(venv, &[mode, &["stdio", program, "serve"]].concat(), &commands);
        wait_for("the call begins", || notes(&file).starts_with("started in "));
        let server = notes(&file)["started in ".len()..].to_owned();
        Self { client, server, file, _folder: folder }
    }
}

fn notes(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

fn killed_client(venv: &Path, program: &str) {
    for mode in [&["--legacy"][..], &[]] {
        let mut call = InCall::begin(venv, program, mode);
        call.client.kill().and_then(|()| call.client.wait()).expect("it is ours");
        wait_for("the call is cancelled", || notes(&call.file) == "cancelled");
        let server = Path::new("/proc").join(&call.server);
        wait_for("the server ends", || !server.exists());
    }
}

fn killed_server(venv: &Path, program: &str) {
    for mode in [&["--legacy"][..], &[]] {
        let call = InCall::begin(venv, program, mode);
        let killed = Command::new("kill").args(["-KILL", &call.server]).status().expect("runs");
        assert!(killed.success());
        let seen = served::observed(call.client);
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|seen: &Value| seen["error"].is_string()), "{seen:?}");
    }
}
