//! Agents of 20 turns in the requests of their clients: each turn runs its new tokens only.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use crate::support::Running;
use lm_conversation::{ConversationConfig, PromptTemplate};
use lm_server::{ServedModel, ServerConfig};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{Engine, EngineSettings};

mod chat_completions;
mod claude_code;
mod codex;
mod langchain;
mod opencode;
#[path = "../../../testdata/shared.rs"]
mod shared;

use claude_code::ClaudeCode;
use codex::Codex;
use langchain::LangChain;
use opencode::OpenCode;
use serde_json::{Value, json};

const TURNS: usize = 20;
/// Turns of a question: calls, and the answer at last.
const QUESTION: usize = 7;
/// A page of the cache, of which only whole ones are shared, and the template's tokens around a reply: its
/// end, the next role, and a prefix such as an empty think block.
const SLACK: usize = 32 + 24;

/// A client that sends a conversation again in each turn.
trait Client {
    const NAME: &'static str;
    const PATH: &'static str;

    /// Creates a conversation without messages, with a model that `reasons` or does not.
    fn new(tools: &[Tool], reasons: bool) -> Self;

    /// Body of the next request.
    fn body(&self, turn: usize) -> Value;

    /// Takes a response, runs its calls with `result`, and returns the names of the called tools.
    fn answer(&mut self, response: &Value, result: &dyn Fn(&str) -> String) -> Vec<String>;

    /// Adds a message of the user.
    fn ask(&mut self, text: &str);

    /// Counts of a response.
    fn usage(response: &Value) -> Usage;
}

/// Tokens of a response.
#[derive(Clone, Copy, Debug)]
struct Usage {
    prompt: usize,
    cached: usize,
    output: usize,
}

impl Usage {
    /// Reads the counts at these paths.
    fn read(response: &Value, [prompt, cached, output]: [&str; 3]) -> Self {
        let count = |path: &str| {
            response.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {response}"))
        };
        let [prompt, cached, output] = [prompt, cached, output].map(|path| count(path) as usize);
        Self { prompt, cached, output }
    }

    fn run(self) -> usize {
        self.prompt - self.cached
    }
}

/// A declared tool.
struct Tool {
    name: String,
    description: String,
    parameters: Value,
}

/// Tools of a coding agent: `read` and further ones.
fn tools(count: usize) -> Vec<Tool> {
    let names = ["read", "write", "edit", "bash", "glob", "grep", "list", "fetch", "search", "plan"];
    let name = |index: usize| names.get(index).map_or_else(|| format!("tool_{index}"), ToString::to_string);
    let tool = |index: usize| Tool {
        name: name(index),
        description: format!(
            "Tool {index} of the agent. {}",
            "It takes a path and does its work. ".repeat(4)
        ),
        parameters: json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Absolute path."}, "limit": {"type": "integer"}},
            "required": ["path"],
        }),
    };
    (0..count).map(tool).collect()
}

/// Chat template, the file in which it is, and how a model of it writes.
struct Model {
    name: &'static str,
    template: Template,
    reasons: bool,
    /// Text that the template has between two calls, and between text and a call.
    between: [&'static str; 2],
    call: fn(path: &str) -> String,
}

enum Template {
    OfTheRepository(&'static str),
    /// Name in the reference data.
    Shared(&'static str),
}

const HERMES: fn(&str) -> String = |path| {
    format!(
        "<tool_call>\n{{\"name\": \"read\", \"arguments\": {{\"path\": \"{path}\", \"limit\": 20}}}}\n</tool_call>"
    )
};

const MODELS: [Model; 4] = [
    Model {
        name: "Hermes",
        template: Template::OfTheRepository(include_str!("../../../testdata/templates/hermes.jinja")),
        reasons: false,
        between: ["", ""],
        call: HERMES,
    },
    Model {
        name: "Qwen2.5",
        template: Template::Shared("Qwen-Qwen2.5-7B-Instruct"),
        reasons: false,
        between: ["\n", "\n"],
        call: HERMES,
    },
    Model {
        name: "Qwen3",
        template: Template::Shared("Qwen-Qwen3-0.6B"),
        reasons: true,
        between: ["\n", "\n"],
        call: HERMES,
    },
    Model {
        name: "Qwen3-Coder",
        template: Template::Shared("Qwen-Qwen3-Coder-30B-A3B-Instruct"),
        reasons: false,
        between: ["\n", "\n\n"],
        call: |path| {
            format!(
                "<tool_call>\n<function=read>\n<parameter=path>\n{path}\n</parameter>\n<parameter=limit>\n20\n</parameter>\n</function>\n</tool_call>"
            )
        },
    },
];

impl Model {
    fn template(&self) -> Option<PromptTemplate> {
        let text = match self.template {
            Template::OfTheRepository(text) => text.to_owned(),
            Template::Shared(name) => {
                let path = shared::path(PathBuf::from("goldens/templates").join(name.to_owned() + ".jinja"))?;
                fs::read_to_string(path).expect("a template")
            }
        };
        Some(PromptTemplate::new(&text).expect("it compiles"))
    }

    /// Reply of a turn: calls, text and a call, or the answer to a question.
    fn reply(&self, turn: usize) -> String {
        let think = format!("<think>\nStep {turn}: the file has to be read first.\n</think>\n\n");
        let think = if self.reasons { &think } else { "" };
        let path = format!("/src/part_{turn}.rs");
        let [calls, text] = self.between;
        let reply = match turn % QUESTION {
            6 => format!("Part {turn} is done: the function returns the length now."),
            0 => (self.call)(&path),
            1 => [(self.call)(&path), (self.call)("/README.md")].join(calls),
            _ => format!("I read part {turn}.{text}{}", (self.call)(&path)),
        };
        format!("{think}{reply}")
    }

    fn serve(&self, template: PromptTemplate) -> Running {
        let replies: Vec<String> = (0..TURNS).map(|turn| self.reply(turn)).collect();
        let model = FakeLm::scripted(&tokenizer(), replies).with_context_len(1 << 17);
        let engine = Engine::new(loaded(model), EngineSettings::default()).expect("it fits");
        let own = matches!(self.template, Template::OfTheRepository(_)).then_some("hermes");
        let processor = own.and_then(lm_processors::by_name).map(Into::into);
        let template = Some(template);
        let defaults = ConversationConfig { template, processor, ..ConversationConfig::from_engine(&engine) };
        Running::serve(ServedModel::new(engine, defaults), ServerConfig::default())
    }
}

/// Content of a file that a tool reads.
fn file(path: &str) -> String {
    format!("// {path}\n{}", "fn length(text: &str) -> usize { text.len() }\n".repeat(3))
}

/// Runs the turns; returns prompt tokens and run tokens of all.
fn replay<C: Client>(model: &Model) -> Option<(usize, usize)> {
    let server = model.serve(model.template()?);
    let mut client = C::new(&tools(15), model.reasons);
    client.ask("Make the functions return the length.");
    let (mut prompts, mut run, mut first_of_question) = (0, 0, 0);
    let mut before: Option<Usage> = None;
    for turn in 0..TURNS {
        let response = server.post(C::PATH, &client.body(turn));
        assert_eq!(response.status, 200, "{}", response.body);
        let response = response.json();
        let usage = C::usage(&response);
        prompts += usage.prompt;
        run += usage.run();
        let is_question = turn % QUESTION == 0;
        if let Some(Usage { prompt, output, .. }) = before {
            let new = usage.prompt.saturating_sub(prompt + output);
            // Templates leave out the thoughts before the last question, and some clients all of them.
            let rewritten = match (model.reasons, is_question) {
                (false, _) => 0,
                (true, false) => output,
                (true, true) => prompt + output - first_of_question,
            };
            let bound = new + rewritten + SLACK;
            let (client, model) = (C::NAME, model.name);
            assert!(usage.run() <= bound, "{client}, {model}, turn {turn}: {usage:?} after {before:?}");
        }
        if is_question {
            first_of_question = usage.prompt;
        }
        before = Some(usage);
        let called = client.answer(&response, &file);
        assert_eq!(
            called.is_empty(),
            turn % QUESTION == QUESTION - 1,
            "{}, turn {turn}: {response}",
            C::NAME
        );
        if called.is_empty() {
            client.ask(&format!("Now the next part, after turn {turn}."));
        }
    }
    Some((prompts, run))
}

#[test]
fn turns_of_agents_run_their_new_tokens_only() {
    let mut table = "| client | template | prompt tokens | run tokens |\n|---|---|---|---|\n".to_owned();
    for model in &MODELS {
        let counts = [
            (ClaudeCode::NAME, replay::<ClaudeCode>(model)),
            (Codex::NAME, replay::<Codex>(model)),
            (OpenCode::NAME, replay::<OpenCode>(model)),
            (LangChain::NAME, replay::<LangChain>(model)),
        ];
        for (client, counts) in counts {
            let Some((prompts, run)) = counts else { continue };
            assert!(run * 5 < prompts, "{client}, {}: {run} of {prompts}", model.name);
            writeln!(table, "| {client} | {} | {prompts} | {run} |", model.name).expect("a string takes it");
        }
    }
    println!("{table}");
}
