//! Runner of a JSON Lines command of `lm`.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Answers of the command to this input, in order. They are read while the input is written, so that neither side blocks the
/// other.
pub fn answers(command: &str, args: &[&str], input: &str) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lm"))
        .arg(command)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("is piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()).expect("the program reads"));
        child.wait_with_output().expect("the program ends")
    });
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).expect("answers are text");
    answers.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
}
