//! Servers that are programs: how they start, fail and end.
#![cfg(unix)]

use lm_mcp::{CommandConfig, Error, Mcp, McpLimits, ServerConfig, ServerTransport};
use std::path::Path;
use std::time::{Duration, Instant};

/// Connects to a shell script.
fn script(text: &str, start_timeout: Duration) -> Result<Mcp, Error> {
    let limits = McpLimits { start_timeout, ..McpLimits::default() };
    Mcp::builder().server(ServerConfig::command("s", "sh", ["-c", text])).limits(limits).connect()
}

const LONG: Duration = Duration::from_secs(20);

/// Waits until no process has this id.
fn wait_for_end(pid: &str) {
    let start = Instant::now();
    // A process that nobody has waited for yet is a zombie.
    let is_running = || {
        std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"))
            .is_ok_and(|stat| !stat.contains(") Z"))
    };
    while is_running() {
        assert!(start.elapsed() < LONG, "process {pid} runs on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn missing_program_is_named() {
    let error = Mcp::builder().server(ServerConfig::command("s", "no-such-program", ["x"])).connect();
    let error = error.expect_err("there is none");
    assert_eq!(error.to_string(), "MCP server `s`: `no-such-program` cannot be started");
    assert!(matches!(error, Error::Start { .. }));
}

#[test]
fn exited_program_error_has_its_last_output() {
    let error = script("echo 'no licence' >&2; exit 7", LONG).expect_err("it ends");
    let expected = "MCP server `s`: the program ended at the start (exit status: 7); the last line of its stderr: no licence";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, Error::Ended { .. }));
}

#[test]
fn program_gets_its_environment_and_working_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = CommandConfig {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), "echo \"$GREETING $(pwd)\" >&2; exit 1".to_owned()],
        env: [("GREETING".to_owned(), "hello".to_owned())].into(),
        cwd: Some(folder.path().to_owned()),
    };
    let server = ServerConfig::new("s", ServerTransport::Command(command));
    let error = Mcp::builder().server(server).connect().expect_err("it ends").to_string();
    let folder = folder.path().canonicalize().expect("it is there");
    assert!(error.ends_with(&format!("hello {}", folder.display())), "{error}");
}

#[test]
fn other_variables_are_not_inherited() {
    // `cargo test` sets it for this process.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let error = script("echo \"[$CARGO_MANIFEST_DIR] ${PATH:+path} ${HOME:+home}\" >&2; exit 1", LONG);
    let error = error.expect_err("it ends").to_string();
    assert!(error.ends_with(": [] path home"), "{error}");
}

#[test]
fn disabled_program_is_not_started() {
    let disabled = ServerConfig { disabled: true, ..ServerConfig::command("s", "no-such-program", [""; 0]) };
    let mcp = Mcp::builder().server(disabled).connect().expect("nothing to start");
    assert_eq!(mcp.servers(), []);
}

#[test]
fn process_tree_ends_with_the_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pids");
    // Neither of them reads its input, and both ignore the usual signals.
    let text = format!(
        "trap '' TERM HUP INT; (trap '' TERM HUP INT; while :; do sleep 1; done) & echo $$ $! > {}; while :; do sleep 1; done",
        file.display()
    );
    let error = script(&text, Duration::from_millis(300)).expect_err("it does not answer");
    assert!(matches!(error, Error::StartTimeout { .. }), "{error}");
    let pids = std::fs::read_to_string(&file).expect("it has started");
    for pid in pids.split_whitespace() {
        wait_for_end(pid);
    }
}
