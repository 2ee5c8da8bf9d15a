//! Benchmark of speculative decoding: `cargo bench -p lm-conversation --bench speculation [MODEL]`.
//!
//! Greedy replies of the embedded model, or of the model in a folder, to the recorded conversations of its
//! evaluation (tool calls and answers) and to requests to change a piece of code: tokens per second without
//! drafts, with as many as pay (the default), and with drafts wherever there is a match. The replies are the
//! same; the fastest of three runs counts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lm_conversation::{Conversation, ConversationConfig, Message, Preface, Role, SessionConfig, ToolSpec};
use lm_session::{Engine, EngineSettings, LoadOptions, ModelFolder, Speculation};
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const RUNS: usize = 3;
/// Recorded conversations that are replayed.
const CONVERSATIONS: usize = 60;
const MAX_OUTPUT_TOKENS: usize = 160;

const CODE: &str = "fn total(prices: &[f64]) -> f64 {\n    let mut total = 0.0;\n    for price in prices {\n        total += price;\n    }\n    total\n}\n";
const EDITS: [&str; 5] = [
    "Repeat this code and rename total to sum:",
    "Repeat this code with f32 in place of f64:",
    "Add a comment to this code and show all of it:",
    "Fix this code and show all of it:",
    "Write this code twice:",
];

/// Sums over replies.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    tokens: usize,
    drafted: usize,
    accepted: usize,
    decode: Duration,
}

impl Totals {
    fn rate(&self) -> f64 {
        self.tokens as f64 / self.decode.as_secs_f64()
    }
}

fn main() -> Result<()> {
    let folder = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let always = Speculation { break_even: Some(0.0), ..Speculation::default() };
    let settings = [("without", Speculation::OFF), ("default", Speculation::default()), ("always", always)];
    println!("prompts     drafts     tokens  drafted accepted  tokens/s");
    for (prompts, requests) in [("tool calls", recorded()?), ("code edits", edits())] {
        for (drafts, speculation) in settings {
            let engine = engine(folder.as_deref(), speculation)?;
            let runs = (0..RUNS).map(|_| replay(&engine, &requests)).collect::<Result<Vec<_>>>()?;
            let fastest = runs.into_iter().max_by(|a, b| a.rate().total_cmp(&b.rate())).unwrap_or_default();
            let Totals { tokens, drafted, accepted, .. } = fastest;
            println!("{prompts:11} {drafts:9} {tokens:7} {drafted:8} {accepted:8} {:9.1}", fastest.rate());
        }
    }
    Ok(())
}

fn engine(folder: Option<&Path>, speculation: Speculation) -> Result<Engine> {
    let folder = match folder {
        Some(folder) => ModelFolder::open(folder)?,
        None => ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES),
    };
    let settings = EngineSettings { speculation, ..EngineSettings::default() };
    Ok(Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {})?)
}

/// The tools, the messages before each reply, and the messages that it replies to.
type Request = (Vec<ToolSpec>, Vec<Message>, Vec<Message>);

fn recorded() -> Result<Vec<Request>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/pocket/eval/eval.jsonl");
    let mut requests = Vec::new();
    for line in std::fs::read_to_string(path)?.lines().take(CONVERSATIONS) {
        let line: Value = serde_json::from_str(line)?;
        let messages: Vec<Message> = serde_json::from_value(line["messages"].clone())?;
        let tools: Vec<ToolSpec> = serde_json::from_value(line["tools"].clone())?;
        let mut answered = 0;
        for index in (0..messages.len()).filter(|&index| messages[index].role == Role::Assistant) {
            requests.push((tools.clone(), messages[..answered].to_vec(), messages[answered..index].to_vec()));
            answered = index + 1;
        }
    }
    Ok(requests)
}

fn edits() -> Vec<Request> {
    let message = |edit: &&str| vec![Message::user(format!("{edit}\n\n{CODE}"))];
    EDITS.iter().map(|edit| (Vec::new(), Vec::new(), message(edit))).collect()
}

fn replay(engine: &Engine, requests: &[Request]) -> Result<Totals> {
    let mut totals = Totals::default();
    for (tools, history, messages) in requests {
        let config = ConversationConfig {
            preface: Preface { tools: tools.clone(), ..Preface::default() },
            session: SessionConfig { max_output_tokens: Some(MAX_OUTPUT_TOKENS), ..SessionConfig::default() },
            ..ConversationConfig::default()
        };
        let mut conversation = Conversation::new(engine, config)?;
        conversation.set_history(history.clone());
        let Ok(reply) = conversation.send(messages.clone()) else { continue };
        totals.tokens += reply.finish.timing.decoded_tokens;
        totals.decode += reply.finish.timing.decode;
        totals.drafted += reply.finish.usage.drafted_tokens;
        totals.accepted += reply.finish.usage.accepted_tokens;
    }
    Ok(totals)
}
