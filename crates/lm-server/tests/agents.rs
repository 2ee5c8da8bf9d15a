//! Coding agents that others wrote, which `tests/clients/install agents` installs: each edits a file through
//! the server. The engine's replies are given; the requests, the tools and the edits are the agents' own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Running;
use lm_conversation::{ConversationConfig, PromptTemplate};
use lm_server::{ServedModel, ServerConfig};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{Engine, EngineSettings};
use serde_json::{Value, json};

/// ChatML with tools in the Hermes format.
const TEMPLATE: &str = include_str!("../../../testdata/templates/hermes.jinja");

/// The agents' instructions and tools are 40 to 80 kB of text.
const CONTEXT: usize = 1 << 18;

/// Time after which an agent is ended.
const PATIENCE: Duration = Duration::from_secs(120);

const BEFORE: &str = "The colour of the sky is blue.\n";
const AFTER: &str = "The color of the sky is blue.\n";
const QUESTION: &str = "Replace colour by color in notes.txt.";

/// A call with text arguments, with the blanks of the dialect.
fn call(name: &str, arguments: &[(&str, &str)]) -> String {
    let argument = |(key, text): &(&str, &str)| format!("\"{key}\": {}", Value::from(*text));
    let arguments: Vec<String> = arguments.iter().map(argument).collect();
    format!(
        "<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{{}}}}}\n</tool_call>",
        arguments.join(", ")
    )
}

/// Serves a model that gives these replies, as `scripted`.
fn server(replies: Vec<String>) -> Running {
    let model = FakeLm::scripted(&tokenizer(), replies).with_context_len(CONTEXT);
    let engine = Engine::new(loaded(model), EngineSettings::default()).expect("an engine");
    let template = Some(PromptTemplate::new(TEMPLATE).expect("it compiles"));
    let processor = lm_processors::by_name("hermes").map(Into::into);
    let defaults = ConversationConfig { template, processor, ..ConversationConfig::from_engine(&engine) };
    Running::serve(ServedModel::new(engine, defaults).alias("coder"), ServerConfig::default())
}

/// Program of an agent, in one of the packages of its publisher (`.` if they have no scope); prints that the
/// test is skipped if it is not installed.
fn installed(scope: &str, program: &str) -> Option<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents/node_modules");
    let packages = fs::read_dir(modules.join(scope)).into_iter().flatten().flatten();
    let found = packages.map(|package| package.path().join(program)).find(|path| path.is_file());
    if found.is_none() {
        println!(
            "skipped: no {scope}/*/{program} in target/agents; crates/lm-server/tests/clients/install agents installs it"
        );
    }
    found.and_then(|path| path.canonicalize().ok())
}

/// Runs an agent in `folder`, with no home but this folder; returns its output.
fn run(command: &mut Command, folder: &Path) -> String {
    let log = folder.join("output.txt");
    let output = fs::File::create(&log).expect("a file");
    command.current_dir(folder).env("HOME", folder).stdin(Stdio::null());
    command.stdout(output.try_clone().expect("a file")).stderr(output);
    let mut child = command.spawn().expect("it starts");
    let end = Instant::now() + PATIENCE;
    while child.try_wait().expect("a process").is_none() {
        if Instant::now() > end {
            child.kill().expect("a process");
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.wait().expect("a process");
    fs::read_to_string(log).expect("its output")
}

/// A folder with a file to edit.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("notes.txt"), BEFORE).expect("a file");
    folder
}

fn check_edit(folder: &Path, output: &str) {
    let notes = fs::read_to_string(folder.join("notes.txt")).expect("the file");
    assert_eq!(notes, AFTER, "{output}");
    assert!(output.contains("It says color now."), "{output}");
}

#[test]
fn claude_code_edits_a_file() {
    let Some(program) = installed("@anthropic-ai", "claude") else { return };
    let folder = folder();
    let path = folder.path().join("notes.txt");
    let path = path.to_str().expect("a path of this test");
    let server = server(vec![
        call("Read", &[("file_path", path)]),
        call("Edit", &[("file_path", path), ("old_string", "colour"), ("new_string", "color")]),
        "It says color now.".to_owned(),
    ]);
    let mut command = Command::new(program);
    command.args(["-p", QUESTION, "--model", "coder", "--permission-mode", "acceptEdits"]);
    command.args(["--allowedTools", "Read,Edit"]).env_remove("ANTHROPIC_AUTH_TOKEN");
    command.env("ANTHROPIC_BASE_URL", format!("http://{}", server.addr)).env("ANTHROPIC_API_KEY", "any");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    command.env("CLAUDE_CONFIG_DIR", folder.path().join("config"));
    let output = run(&mut command, folder.path());
    check_edit(folder.path(), &output);
}

#[test]
fn codex_edits_a_file() {
    let Some(program) = installed("@openai", "bin/codex.js") else { return };
    let folder = folder();
    let server = server(vec![
        call("exec_command", &[("cmd", "sed -i s/colour/color/ notes.txt")]),
        "It says color now.".to_owned(),
    ]);
    let home = folder.path().join("codex");
    fs::create_dir(&home).expect("a folder");
    let config = format!(
        "model = \"coder\"\nmodel_provider = \"lm\"\n[model_providers.lm]\nname = \"lm\"\n\
         base_url = \"http://{}/v1\"\nwire_api = \"responses\"\n",
        server.addr
    );
    fs::write(home.join("config.toml"), config).expect("a file");
    let mut command = Command::new("node");
    command.arg(program).args(["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", QUESTION]);
    let output = run(command.env("CODEX_HOME", home), folder.path());
    check_edit(folder.path(), &output);
}

#[test]
fn opencode_edits_a_file() {
    let Some(program) = installed(".", "bin/opencode") else { return };
    let folder = folder();
    let path = folder.path().join("notes.txt");
    let path = path.to_str().expect("a path of this test");
    let server = server(vec![
        call("read", &[("filePath", path)]),
        call("edit", &[("filePath", path), ("oldString", "colour"), ("newString", "color")]),
        "It says color now.".to_owned(),
    ]);
    let config = json!({"model": "lm/coder", "provider": {"lm": {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": format!("http://{}/v1", server.addr)},
        "models": {"coder": {"limit": {"context": CONTEXT, "output": 4096}}},
    }}});
    fs::write(folder.path().join("opencode.json"), config.to_string()).expect("a file");
    let mut command = Command::new(program);
    // Without a title the model is asked for one.
    command.args(["run", "--title", "colours", QUESTION]);
    command.env("OPENCODE_DISABLE_AUTOUPDATE", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    command.env("PWD", folder.path());
    let output = run(&mut command, folder.path());
    check_edit(folder.path(), &output);
}

/// Aider has no tools: it reads edits in the text of replies. `cargo xtask clients aider` installs it.
#[test]
fn aider_edits_a_file() {
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients-more/aider/venv/bin/aider");
    if !program.is_file() {
        println!("skipped: Aider is not installed; cargo xtask clients aider installs it");
        return;
    }
    let folder = folder();
    let edit = format!("notes.txt\n```\n<<<<<<< SEARCH\n{BEFORE}=======\n{AFTER}>>>>>>> REPLACE\n```\n");
    let server = server(vec![format!("It says color now.\n\n{edit}")]);
    let mut command = Command::new(program);
    command.args(["--model", "openai/coder", "--edit-format", "diff", "--message", QUESTION]);
    command.args(["--no-git", "--no-pretty", "--yes-always", "--no-check-update", "--analytics-disable"]);
    command.args(["--no-show-model-warnings", "notes.txt"]).env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    command.env("OPENAI_API_BASE", format!("http://{}/v1", server.addr)).env("OPENAI_API_KEY", "any");
    let output = run(&mut command, folder.path());
    check_edit(folder.path(), &output);
}
