//! Runner of a JSON Lines command of `lm`.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// Answers of the command to this input, in order. The command must succeed.
pub fn answers(command: &str, args: &[&str], input: &str) -> Vec<Value> {
    let output = output(command, args, input.as_bytes());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    parsed(&output)
}

/// Answers of the command to this input, with errors, as the exit code and `summary` on standard error
/// report.
pub fn failing(command: &str, args: &[&str], input: &[u8], summary: &str) -> Vec<Value> {
    let output = output(command, args, input);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(summary), "{stderr}");
    parsed(&output)
}

/// The running command, with pipes for input and output.
pub fn spawn(command: &str, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lm"))
        .arg(command)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Output of the command for this input. It is read while the input is written, so that neither side blocks
/// the other.
pub fn output(command: &str, args: &[&str], input: &[u8]) -> Output {
    let mut child = spawn(command, args);
    let mut stdin = child.stdin.take().expect("is piped");
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).expect("the program reads"));
        child.wait_with_output().expect("the program ends")
    })
}

/// Answers of an output, in order.
pub fn parsed(output: &Output) -> Vec<Value> {
    let answers = std::str::from_utf8(&output.stdout).expect("answers are text");
    answers.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
}
