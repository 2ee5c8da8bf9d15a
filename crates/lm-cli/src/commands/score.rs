//! `lm score`: counts the replies in recorded conversations that a model reproduces exactly.
//!
//! Every turn of the assistant is generated independently and greedily, with the recorded messages before it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, ensure};
use lm_conversation::{ConstrainCalls, Conversation, ConversationConfig};
use lm_session::{Engine, SamplerParams, SessionConfig};
use lm_template::{Message, Preface, Role, ToolCall, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{CallArgs, RunArgs, adapter};
use crate::{json_lines, model, suggestion};

/// Maximum number of tokens of a reply; the longest expected one is well below.
const MAX_OUTPUT_TOKENS: usize = 192;

const EXAMPLES: &str = "\
Examples:
  lm score models/pocket/eval/eval.jsonl models/pocket/eval/documented.jsonl
  lm score --quantize q4 --failures failures.jsonl models/pocket/eval/eval.jsonl";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Conversations, one a line: {"skills": [one for each turn of the assistant], "tools": [..], "messages":
    /// [..]}
    #[arg(required = true, value_name = "FILE")]
    conversations: Vec<PathBuf>,
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-0.6B [default: the embedded model]
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Write failed turns with the replies to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    failures: Option<PathBuf>,
    #[command(flatten)]
    calls: CallArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let files: Vec<_> =
        args.conversations.iter().map(|path| Ok((path, read(path)?))).collect::<Result<_>>()?;
    let mut failures = match &args.failures {
        Some(path) => Some(BufWriter::new(File::create(path).with_context(|| path.display().to_string())?)),
        None => None,
    };
    let engine = model::exact_engine(args.model.as_deref(), &args.run)?;
    for (path, recordings) in &files {
        let mut table = Table::default();
        for recording in recordings {
            for turn in recording.replay(&engine, args.calls.constrain_calls())? {
                table.count(&turn);
                if let (false, Some(file)) = (turn.passed, &mut failures) {
                    writeln!(file, "{}", turn.to_json())?;
                }
            }
        }
        println!("{}\n\n{table}", path.display());
    }
    if let Some(file) = &mut failures {
        file.flush()?;
    }
    Ok(())
}

/// One line of a file of conversations.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    skills: Vec<String>,
    tools: Vec<ToolSpec>,
    messages: Vec<Message>,
}

fn read(path: &Path) -> Result<Vec<Recording>> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    let recordings: Vec<_> = (1..)
        .zip(json_lines::objects(BufReader::new(file)))
        .map(|(number, line)| recording(number, line?.map_err(Error::msg)?.into()))
        .collect::<Result<_>>()
        .with_context(name)?;
    ensure!(recordings.iter().any(|recording| !recording.skills.is_empty()), "{}: nothing to score", name());
    Ok(recordings)
}

fn recording(number: usize, line: Value) -> Result<Recording> {
    let recording: Recording = serde_json::from_value(line)
        .map_err(|error| Error::msg(suggestion::of_json(&error)))
        .with_context(|| format!("line {number}"))?;
    let replies = recording.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let skills = recording.skills.len();
    ensure!(replies == skills, "line {number}: {skills} skills for {replies} turns of the assistant");
    Ok(recording)
}

impl Recording {
    /// Generates every reply of the assistant.
    fn replay(&self, engine: &Engine, constrain_calls: ConstrainCalls) -> Result<Vec<Turn<'_>>> {
        let config = ConversationConfig {
            preface: Preface { tools: self.tools.clone(), ..Preface::default() },
            session: SessionConfig {
                sampler: SamplerParams::default(),
                max_output_tokens: Some(MAX_OUTPUT_TOKENS),
                adapter: adapter(engine),
                ..SessionConfig::default()
            },
            constrain_calls,
            ..ConversationConfig::default()
        };
        let mut conversation = Conversation::new(engine, config)?;
        let mut turns = Vec::new();
        let mut answered = 0;
        for (index, expected) in self.messages.iter().enumerate() {
            if expected.role != Role::Assistant {
                continue;
            }
            conversation.set_history(self.messages[..answered].to_vec());
            let reply = match conversation.send(self.messages[answered..index].to_vec()) {
                Ok(reply) => Ok(reply.message),
                Err(lm_conversation::Error::Processor(
                    malformed @ lm_processors::Error::MalformedToolCall { .. },
                )) => Err(malformed),
                Err(error) => return Err(error.into()),
            };
            let passed = reply.as_ref().is_ok_and(|reply| passes(expected, reply));
            turns.push(Turn { skill: &self.skills[turns.len()], expected, reply, passed });
            answered = index + 1;
        }
        Ok(turns)
    }
}

/// One generated reply.
struct Turn<'a> {
    skill: &'a str,
    expected: &'a Message,
    /// The reply, or the error of its malformed call.
    reply: Result<Message, lm_processors::Error>,
    passed: bool,
}

impl Turn<'_> {
    fn to_json(&self) -> Value {
        let reply = match &self.reply {
            Ok(reply) => reply.to_json(),
            Err(lm_processors::Error::MalformedToolCall { text, reason }) => {
                json!({"text": text, "error": reason})
            }
            Err(error) => json!({"error": error.to_string()}),
        };
        json!({"skill": self.skill, "expected": self.expected.to_json(), "reply": reply})
    }
}

/// Returns true if a reply is the expected one: the same calls in any order; without calls, the expected text
/// anywhere in the reply, ignoring case.
fn passes(expected: &Message, reply: &Message) -> bool {
    if expected.tool_calls.is_empty() {
        let (wanted, said) = (expected.content.text().to_lowercase(), reply.content.text().to_lowercase());
        return reply.tool_calls.is_empty() && said.contains(&wanted);
    }
    let mut wanted: Vec<_> = expected.tool_calls.iter().map(comparable).collect();
    let found = reply.tool_calls.iter().map(comparable);
    for call in found {
        match wanted.iter().position(|other| *other == call) {
            Some(index) => drop(wanted.swap_remove(index)),
            None => return false,
        }
    }
    wanted.is_empty()
}

/// Name and arguments, with integral floats as integers; objects compare independent of the order of keys.
fn comparable(call: &ToolCall) -> (&str, Value) {
    (&call.name, whole_floats_as_integers(Value::Object(call.arguments.clone())))
}

fn whole_floats_as_integers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Beyond 2^53 not every integer is a float.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                (float as i64).into()
            }
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(whole_floats_as_integers).collect(),
        Value::Object(entries) => {
            entries.into_iter().map(|(key, value)| (key, whole_floats_as_integers(value))).collect()
        }
        other => other,
    }
}

/// Numbers of passed and of all turns, by skill.
#[derive(Default)]
struct Table(BTreeMap<String, (usize, usize)>);

impl Table {
    fn count(&mut self, turn: &Turn<'_>) {
        let (passed, asked) = self.0.entry(turn.skill.to_owned()).or_default();
        *passed += usize::from(turn.passed);
        *asked += 1;
    }
}

/// Formats a Markdown table with the total as last row.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |passed: usize, asked: usize| 100.0 * passed as f64 / asked.max(1) as f64;
        writeln!(f, "| skill | exact | |\n|---|---|---|")?;
        for (skill, &(passed, asked)) in &self.0 {
            writeln!(f, "| {skill} | {passed} of {asked} | {:.0} % |", percent(passed, asked))?;
        }
        let sum = |pick: fn(&(usize, usize)) -> usize| self.0.values().map(pick).sum::<usize>();
        let (passed, asked) = (sum(|row| row.0), sum(|row| row.1));
        writeln!(f, "| **all** | **{passed} of {asked}** | **{:.1} %** |", percent(passed, asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(calls: Value, content: &str) -> Message {
        let json = json!({"role": "assistant", "content": content, "tool_calls": calls});
        Message::from_json(json).expect("a message")
    }

    #[test]
    fn calls_match_in_any_call_and_key_order() {
        let a = json!({"name": "f", "arguments": {"x": 3, "y": [1.0, {"z": null}]}});
        let b = json!({"name": "f", "arguments": {"y": [1, {"z": null}], "x": 3.0}});
        let c = json!({"name": "g", "arguments": {}});
        let expected = message(json!([a, c]), "");
        let cases = [
            (json!([a, c]), true),
            (json!([c, b]), true),
            (json!([c]), false),
            (json!([a, a]), false),
            (json!([a, c, c]), false),
            (json!([]), false),
            (json!([c, {"name": "f", "arguments": {"x": "3", "y": [1, {"z": null}]}}]), false),
        ];
        for (calls, wanted) in cases {
            assert_eq!(passes(&expected, &message(calls.clone(), "text")), wanted, "{calls}");
        }
    }

    #[test]
    fn answer_contains_text_without_calls() {
        let expected = message(json!([]), "It is 12 °C.");
        for (reply, wanted) in
            [("It is 12 °C.", true), ("Well: it is 12 °c. Bye", true), ("It is 13 °C.", false), ("", false)]
        {
            assert_eq!(passes(&expected, &message(json!([]), reply)), wanted, "{reply}");
        }
        let call = json!([{"name": "f", "arguments": {}}]);
        assert!(!passes(&expected, &message(call, "It is 12 °C.")));
    }

    #[test]
    fn table_ends_with_the_total() {
        let expected = message(json!([]), "");
        let mut table = Table::default();
        for (skill, passed) in [("chat", true), ("answer", false), ("chat", false), ("chat", true)] {
            table.count(&Turn { skill, expected: &expected, reply: Ok(expected.clone()), passed });
        }
        let rows =
            "| answer | 0 of 1 | 0 % |\n| chat | 2 of 3 | 67 % |\n| **all** | **2 of 4** | **50.0 %** |\n";
        assert_eq!(table.to_string(), format!("| skill | exact | |\n|---|---|---|\n{rows}"));
    }
}
