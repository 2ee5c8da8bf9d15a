//! Clients that others wrote, which `tests/clients/install` installs, against the embedded model: each test
//! of theirs has to have the result that docs/clients.md lists.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::Running;
use lm_server::{ApiKeys, ServerConfig};
use lm_session::EngineSettings;

const KEY: &str = "secret";
const DOCS: &str = "docs/clients.md";

/// Clients by the file of their tests.
const CLIENTS: [(&str, &str); 4] = [
    ("test_openai.py", "openai (Python)"),
    ("test_openai_async.py", "openai (Python, async)"),
    ("test_openai.mjs", "openai (Node)"),
    ("test_langchain.py", "langchain-openai"),
];

/// Result of a test.
#[derive(PartialEq)]
struct Outcome {
    client: &'static str,
    flow: String,
    result: String,
}

#[test]
fn third_party_clients_have_documented_results() {
    let Some([python, modules]) = installed() else { return };
    let keys = ApiKeys::new([KEY]).expect("a key");
    let server = Running::embedded(EngineSettings::default(), ServerConfig { keys, ..Default::default() });
    let results = tempfile::NamedTempFile::new().expect("a file");
    let url = format!("http://{}/v1", server.addr);
    let run = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(scripts()).envs([("LM_URL", url.as_str()), ("LM_KEY", KEY)]);
        command
            .env("LM_RESULTS", results.path())
            .env("LM_MODULES", &modules)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.output().expect("it starts")
    };
    let pytest =
        run(&python, &["-m", "pytest", "test_openai.py", "test_openai_async.py", "test_langchain.py"]);
    let node = run("node".as_ref(), &["--test", "--test-reporter=tap", "test_openai.mjs"]);
    let mut outcomes = of_pytest(&fs::read_to_string(results.path()).expect("results"));
    outcomes.extend(of_node(&text(&node.stdout)));
    check(&outcomes, &[pytest, node]);
}

/// Compares the outcomes with the table of the documentation, and leaves the table that it should have.
fn check(outcomes: &[Outcome], outputs: &[Output]) {
    let table = table(outcomes);
    fs::write(root().join("target/clients/table.md"), &table).expect("is written");
    let shown =
        || outputs.iter().map(|output| text(&output.stdout) + &text(&output.stderr)).collect::<String>();
    assert!(!outcomes.iter().any(|outcome| outcome.result.starts_with("failed")), "{table}\n{}", shown());
    let documented = fs::read_to_string(root().join(DOCS)).expect("the documentation");
    let table = table.trim_end();
    assert!(
        documented.contains(table),
        "{DOCS} has another table than target/clients/table.md:\n{table}\n{}",
        shown()
    );
}

/// Python and the folder of Node's modules; `None`, and a line that says so, if they are not installed.
fn installed() -> Option<[PathBuf; 2]> {
    let folder = root().join("target/clients");
    let parts = ["venv/bin/python", "npm/node_modules/openai"].map(|part| folder.join(part));
    if !parts.iter().all(|part| part.exists()) {
        println!("skipped: no target/clients; crates/lm-server/tests/clients/install installs them");
        return None;
    }
    let [python, _] = parts;
    Some([python, folder.join("npm")])
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads lines of a file, a name, a result and a reason.
fn of_pytest(results: &str) -> Vec<Outcome> {
    let outcome = |line: &str| {
        let [file, name, result, reason] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line:?}")
        };
        let flow = name.trim_start_matches("test_").split('[').next().unwrap_or(name).replace('_', " ");
        let client = CLIENTS.iter().find(|(known, _)| *known == file).expect("a known file").1;
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        Outcome { client, flow, result: format!("{result}{reason}") }
    };
    results.lines().map(outcome).collect()
}

/// Reads the first level of TAP, the protocol of `node --test`.
fn of_node(tap: &str) -> Vec<Outcome> {
    let outcome = |line: &str| {
        let (result, name) = match line.strip_prefix("not ") {
            Some(rest) => ("failed", rest),
            None => ("passed", line),
        };
        let (_, flow) = name.strip_prefix("ok ")?.split_once(" - ")?;
        Some(Outcome { client: "openai (Node)", flow: flow.to_owned(), result: result.to_owned() })
    };
    tap.lines().filter_map(outcome).collect()
}

/// Table with a row for each client and flow; tests of one flow that differ in their parameters are counted.
fn table(outcomes: &[Outcome]) -> String {
    let mut table = "| client | flow | result |\n|---|---|---|\n".to_owned();
    for (_, client) in CLIENTS {
        let of_client = outcomes.iter().filter(|outcome| outcome.client == client).collect::<Vec<_>>();
        assert!(!of_client.is_empty(), "{client} has no result");
        for same in of_client.chunk_by(|a, b| a == b) {
            let Outcome { client, flow, result } = same[0];
            let count = if same.len() > 1 { format!(" ({})", same.len()) } else { String::new() };
            writeln!(table, "| {client} | {flow}{count} | {result} |").expect("a string takes it");
        }
    }
    table
}
