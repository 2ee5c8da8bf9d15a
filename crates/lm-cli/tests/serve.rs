//! `lm serve` as a program: its address, its answers and its end.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Store of the servers: the conversations of who runs the tests are not theirs.
const STORE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/serve.db");

/// A server. It ends with the test: one that fails would otherwise wait for it.
pub struct Program(Child);

impl Program {
    /// Waits for the end; returns the exit code.
    fn code(mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An error: it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on a free port; returns its address and the rest of its standard error.
fn serve(args: &[&str]) -> (Program, String, BufReader<ChildStderr>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lm"));
    started(command.args(["serve", "--port", "0"]).args(args).env_remove("LM_API_KEY").env("LM_STORE", STORE))
}

/// Starts the server of a command, which is not to warn; returns its address and the rest of its standard
/// error.
pub fn started(command: &mut Command) -> (Program, String, BufReader<ChildStderr>) {
    let mut program = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut errors = BufReader::new(program.stderr.take().expect("standard error"));
    let program = Program(program);
    let mut line = "memory: ".to_owned();
    while line.starts_with("memory: ") {
        line.clear();
        errors.read_line(&mut line).expect("a line");
    }
    let addr = line.split("http://").nth(1).and_then(|rest| rest.split(';').next());
    let addr = addr.unwrap_or_else(|| panic!("{line:?} has an address")).to_owned();
    (program, addr, errors)
}

pub fn post(addr: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
        .expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response
}

pub fn get(addr: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response
}

fn signal(program: &Program, name: &str) {
    let pid = program.0.id().to_string();
    assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill runs").success());
}

fn lm(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_lm"));
    program.args(args).env_remove("LM_API_KEY").env("LM_STORE", STORE).output().expect("it runs")
}

#[test]
fn embedded_model_calls_a_tool_over_http() {
    let (program, addr, _errors) = serve(&["--model", "pocket", "--alias", "gpt-4o-mini"]);
    let body = r#"{"model": "gpt-4o-mini", "temperature": 0, "messages": [{"role": "user", "content": "How is the weather in Paris?"}],
        "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Gets the weather of a place.",
            "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}}}],
        "tool_choice": "required"}"#;
    let response = post(&addr, "/v1/chat/completions", "", body);
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(
        response.contains(r#""name":"get_weather","arguments":"{\"location\":\"Paris\"}""#),
        "{response}"
    );
    assert!(response.contains(r#""finish_reason":"tool_calls""#), "{response}");
    signal(&program, "TERM");
    assert_eq!(program.code(), Some(0));
}

#[test]
fn ctrl_c_stops_the_server_and_keys_are_read_from_a_file() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "first\n\nsecond\n").expect("is written");
    let (program, addr, mut errors) = serve(&["--api-key-file", file.path().to_str().expect("UTF-8")]);
    let body = r#"{"content": "Hello"}"#;
    assert!(post(&addr, "/tokenize", "", body).starts_with("HTTP/1.1 401 "));
    assert!(post(&addr, "/tokenize", "Authorization: Bearer second\r\n", body).starts_with("HTTP/1.1 200 "));
    signal(&program, "INT");
    assert_eq!(program.code(), Some(0));
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("UTF-8");
    assert!(!rest.contains("second"), "{rest}");
}

#[test]
fn options_set_allowed_hosts_and_origins() {
    let options = ["--allow-host", "llm.example.com", "--allow-origin", "https://chat.example.com"];
    let (program, addr, _errors) = serve(&options);
    let status = |host: &str, origin: &str| {
        let mut stream = TcpStream::connect(&addr).expect("it listens");
        write!(
            stream,
            "GET /v1/models HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: close\r\n\r\n"
        )
        .expect("it reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("it answers");
        response.split(' ').nth(1).expect("a status").to_owned()
    };
    assert_eq!(status("llm.example.com", "https://chat.example.com"), "200");
    assert_eq!(status("chat.example.com", "https://chat.example.com"), "403");
    assert_eq!(status("localhost", "https://llm.example.com"), "403");
    signal(&program, "TERM");
    assert_eq!(program.code(), Some(0));
}

#[test]
fn open_address_needs_a_key_before_loading() {
    let refused = lm(&["serve", "no/such-model", "--listen", "0.0.0.0:0"]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors.contains("--api-key") && errors.contains("--insecure"), "{errors}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("an address").to_string();
    let refused = lm(&["serve", "--listen", &addr]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(errors.contains(&format!("cannot listen on {addr}")), "{errors}");
    assert_eq!(errors.matches("in use").count(), 1, "{errors}");
    assert!(errors.contains("hint: another program listens there; --listen"), "{errors}");
}

#[test]
fn adapter_answers_texts_and_embeddings() {
    let testdata = |name: &str| format!("{}/../../testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    let (model, adapter) = (testdata("models/llama-tiny"), testdata("adapters/llama-tiny-all"));
    let numbers = |options: &[&str]| {
        let (program, addr, _errors) = serve(&[&[model.as_str()], options].concat());
        let text = r#"{"prompt": "Hello", "max_tokens": 2, "temperature": 0, "logprobs": 0}"#;
        let numbers = [
            ("/v1/completions", text, "/choices/0/logprobs/token_logprobs"),
            ("/v1/embeddings", r#"{"input": "Hello"}"#, "/data/0/embedding"),
        ]
        .map(|(path, body, place)| {
            let response = post(&addr, path, "", body);
            let body = response.split("\r\n\r\n").nth(1).expect("a body");
            let answer: Value = serde_json::from_str(body).expect("JSON");
            answer.pointer(place).unwrap_or_else(|| panic!("{path}: {response}")).clone()
        });
        signal(&program, "TERM");
        assert_eq!(program.code(), Some(0));
        numbers
    };
    let (without, with) = (numbers(&[]), numbers(&["--lora", &adapter]));
    for (without, with) in without.iter().zip(&with) {
        assert_ne!(without, with);
    }
}

#[test]
fn several_models_are_loaded_on_demand_and_unloaded_when_idle() {
    let path = |name: &str| format!("{}/../../testdata/models/{name}", env!("CARGO_MANIFEST_DIR"));
    let (llama, qwen) = (path("llama-tiny"), path("qwen3-tiny"));
    let options = ["--memory", "300MB", "--keep-alive", "1", "--alias", "default"];
    let (program, addr, _errors) = serve(&[&[llama.as_str(), &qwen][..], &options].concat());
    let tokens = |model: &str| {
        let response =
            post(&addr, "/tokenize", "", &format!(r#"{{"model": "{model}", "content": "Hello"}}"#));
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    };
    ["llama-tiny", "qwen3-tiny", "default"].into_iter().for_each(tokens);
    let body = r#"{"model": "qwen3-tiny", "input": "Hello"}"#;
    let first = post(&addr, "/v1/embeddings", "", body);
    let is_unloaded = || get(&addr, "/api/ps").contains(r#"{"models":[]}"#);
    assert!(
        (0..6_000).any(|_| is_unloaded() || {
            std::thread::sleep(Duration::from_millis(20));
            false
        }),
        "both stay"
    );
    let again = post(&addr, "/v1/embeddings", "", body);
    assert!(first.contains("\"embedding\":["), "{first}");
    assert_eq!(first.split("\r\n\r\n").nth(1), again.split("\r\n\r\n").nth(1), "after it was unloaded");
    signal(&program, "TERM");
    assert_eq!(program.code(), Some(0));
    for (arguments, expected) in [
        (&["serve", "--keep-alive", "5"][..], "--keep-alive: the embedded model"),
        (&["serve", &llama, &qwen, "--record", "file"], "--record: expected one model"),
        (&["serve", &llama, &llama], "llama-tiny"),
        (&["serve", &llama, "no/such-model"], "no/such-model"),
    ] {
        let refused = lm(arguments);
        let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && errors.contains(expected), "{errors}");
    }
}
