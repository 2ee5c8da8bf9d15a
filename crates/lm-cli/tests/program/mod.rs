//! Runs of the `lm` program: arguments and standard input in, output and exit code out. No terminal, no
//! network.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Outcome of a run.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Starts the program with pipes.
pub fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lm"))
        .args(args)
        .env_remove("LM_LOG")
        .env_remove("COLUMNS")
        .env_remove("LM_STORE")
        // The conversations of who runs the tests are not theirs.
        .env("XDG_DATA_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Runs the program.
pub fn lm(args: &[&str], input: &str) -> Run {
    let mut child = start(args);
    let mut stdin = child.stdin.take().expect("is piped");
    // A program that fails may not read its input.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("output is text");
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs a command that must succeed and print only the memory choices on standard error.
pub fn ok(args: &[&str], input: &str) -> String {
    let run = lm(args, input);
    let said = run.err.lines().find(|line| !line.starts_with("memory: "));
    assert_eq!((run.code, said), (Some(0), None), "{args:?}: {}", run.out);
    run.out
}

/// Runs a command that must fail with one `error: …` line; returns it without the hint.
pub fn error(args: &[&str], input: &str) -> String {
    let run = lm(args, input);
    assert_eq!(run.code, Some(1), "{args:?}: {}", run.err);
    let mut lines = run.err.lines().filter(|line| !line.starts_with("memory: "));
    let first = lines.next().and_then(|line| line.strip_prefix("error: ")).expect("an error line");
    assert!(lines.all(|line| line.starts_with("hint: ")), "{}", run.err);
    first.to_owned()
}

/// Runs a command that must be refused as invalid usage, with this text on standard error.
pub fn refused(args: &[&str], expected: &str) {
    let run = lm(args, "");
    assert_eq!(
        (run.code, run.err.contains(expected)),
        (Some(2), true),
        "{args:?}: no {expected} in {}",
        run.err
    );
}

/// Parses JSON.
pub fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("a line of JSON")
}

/// Writes the embedded model's files to a temporary folder.
pub fn pocket_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in lm_pocket::FILES {
        std::fs::write(folder.path().join(name), bytes).expect("the file can be written");
    }
    folder
}

/// Path as text.
pub fn shown(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

/// Writes a text to a temporary file.
pub fn text_file(text: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text).expect("the file can be written");
    file
}
