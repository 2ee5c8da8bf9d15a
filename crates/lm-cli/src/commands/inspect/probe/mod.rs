//! `lm inspect --probe-tools`: the treatment of calls with which a model answers a dozen questions best.

mod questions;

use std::path::Path;

use anyhow::{Context, Result};
use clap::Parser;
use lm_conversation::{Conversation, ConversationConfig, Engine, ToolsNote, TurnOptions, UnmarkedCalls};
use lm_processors::ParserOptions;
use lm_template::{Message, Preface};

use self::questions::{Question, Questions};
use crate::args::{RunArgs, usage};
use crate::call_settings::{CallSettings, Reading};
use crate::model;
use crate::progress::counting_bar;

/// Right answers by which another treatment has to exceed the default: one of a dozen may be chance.
const MARGIN: usize = 2;

/// Maximum number of tokens of a reply.
const MAX_OUTPUT_TOKENS: usize = 200;

/// Options of a run without any on the command line.
#[derive(Parser)]
struct Defaults {
    #[command(flatten)]
    run: RunArgs,
}

/// Treatment of calls, and its right answers.
#[derive(Debug)]
struct Trial {
    name: String,
    settings: CallSettings,
    /// Questions answered with the right call.
    called: usize,
    /// Questions that no tool fits, answered without a call.
    left: usize,
}

/// Measures the treatments, prints them, and writes the best one beside the model.
///
/// # Errors
/// When the model cannot be loaded or fails, has no syntax of calls, or the file cannot be written.
pub fn run(path: Option<&Path>) -> Result<()> {
    let stored =
        path.ok_or_else(|| usage("--probe-tools: name a model; the embedded one needs no choice"))?;
    let file = CallSettings::path(stored)?;
    CallSettings::check_writable(&file)?;
    let engine = model::engine(path, &Defaults::parse_from(["lm"]).run)?;
    let questions = Questions::read();
    let trials = trials(&engine, &questions)?;
    let best = best(&trials);
    println!(
        "calls of tools: {} questions for a tool, {} for none, greedy",
        questions.calls(),
        questions.none()
    );
    for (at, trial) in trials.iter().enumerate() {
        let default = if at == 0 { ", the default" } else { "" };
        let chosen = if at == best { "  <- kept" } else { "" };
        let (called, left) = (trial.called, trial.left);
        println!(
            "  {:<62} {called} of {} called, {left} of {} answered{chosen}",
            format!("{}{default}", trial.name),
            questions.calls(),
            questions.none()
        );
    }
    trials[best].settings.write(&file)?;
    println!(
        "the treatment that is kept has the most right answers, and at least {MARGIN} more than the default.\n\
         It is in {}, which lm chat, generate, serve and batch read;\n\
         --tools-note and --unmarked-calls override it, and without the file the default applies again.",
        file.display()
    );
    Ok(())
}

/// The trial with the most right answers, the earliest of several; the first one, which is the default,
/// unless another has [`MARGIN`] more and no fewer calls.
fn best(trials: &[Trial]) -> usize {
    let right = |trial: &Trial| trial.called + trial.left;
    let Some(default) = trials.first() else { return 0 };
    let gains = |trial: &Trial| right(trial) >= right(default) + MARGIN && trial.called >= default.called;
    let better = (0..trials.len()).rev().filter(|&at| gains(&trials[at]));
    better.max_by_key(|&at| right(&trials[at])).unwrap_or(0)
}

fn trials(engine: &Engine, questions: &Questions) -> Result<Vec<Trial>> {
    let conversation = conversation(engine, questions, &ToolsNote::Off)?;
    let dialect = conversation.processor().dialect();
    let dialect = dialect.filter(|dialect| !dialect.calls.is_empty());
    let dialect = dialect.with_context(|| format!("{} has no syntax of calls", engine.name()))?;
    let note = (!dialect.calls_note.is_empty()).then_some(ToolsNote::Dialect);
    let mut trials = Vec::new();
    for note in [ToolsNote::Off].into_iter().chain(note) {
        let replies = replies(engine, questions, &note)?;
        for reading in readings(dialect.unmarked) {
            let settings = CallSettings::new(&note, reading);
            let mut trial = Trial { name: settings.to_string(), settings, called: 0, left: 0 };
            for (question, reply) in questions.list.iter().zip(&replies) {
                let right = question.is_right(&reply.read(&conversation, questions, reading));
                trial.called += usize::from(right && question.call.is_some());
                trial.left += usize::from(right && question.call.is_none());
            }
            trials.push(trial);
        }
    }
    Ok(trials)
}

/// Both readings of replies without markers, the dialect's own first.
fn readings(own: UnmarkedCalls) -> [Reading; 2] {
    match own {
        UnmarkedCalls::Read => [Reading::Call, Reading::Text],
        UnmarkedCalls::Text => [Reading::Text, Reading::Call],
    }
}

/// A reply that is read without unmarked calls.
struct Reply(Message);

impl Reply {
    /// The reply as a message.
    fn read(&self, conversation: &Conversation, questions: &Questions, reading: Reading) -> Message {
        let Self(message) = self;
        if !message.tool_calls.is_empty() || reading == Reading::Text {
            return message.clone();
        }
        let options = ParserOptions {
            tools: questions.tools.clone().into(),
            unmarked: Some(UnmarkedCalls::Read),
            ..ParserOptions::default()
        };
        let text = message.content.text();
        conversation.processor().to_message(&text, &options).unwrap_or_else(|_| message.clone())
    }
}

/// Asks all questions, each in a conversation of its own.
fn replies(engine: &Engine, questions: &Questions, note: &ToolsNote) -> Result<Vec<Reply>> {
    let bar = counting_bar("asking", "questions", questions.list.len());
    let mut replies = Vec::new();
    for Question { ask, .. } in &questions.list {
        let mut conversation = conversation(engine, questions, note)?;
        let options = TurnOptions { max_output_tokens: Some(MAX_OUTPUT_TOKENS), ..TurnOptions::default() };
        let reply = conversation.send_with(ask.as_str(), options)?;
        replies.push(Reply(reply.message));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(replies)
}

fn conversation(engine: &Engine, questions: &Questions, note: &ToolsNote) -> Result<Conversation> {
    let config = ConversationConfig {
        preface: Preface { tools: questions.tools.clone(), ..Preface::default() },
        unmarked_calls: Some(UnmarkedCalls::Text),
        tools_note: note.clone(),
        ..ConversationConfig::default()
    };
    Ok(Conversation::new(engine, config)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_reading_is_the_dialects() {
        assert_eq!(readings(UnmarkedCalls::Text)[0], Reading::Text);
        assert_eq!(readings(UnmarkedCalls::Read)[0], Reading::Call);
    }

    #[test]
    fn default_is_kept_unless_another_is_clearly_better() {
        let trials = |rights: &[(usize, usize)]| -> Vec<Trial> {
            let trial = |&(called, left): &(usize, usize)| Trial {
                name: String::new(),
                settings: CallSettings::default(),
                called,
                left,
            };
            rights.iter().map(trial).collect()
        };
        for (rights, expected) in [
            (&[(8, 3), (0, 4), (8, 4), (8, 4)][..], 0),
            (&[(8, 2), (0, 4), (8, 4), (8, 4)], 2),
            (&[(8, 0), (7, 4)], 0),
            (&[(2, 4), (0, 4), (6, 3), (7, 3)], 3),
            (&[(8, 4)], 0),
        ] {
            assert_eq!(best(&trials(rights)), expected, "{rights:?}");
        }
    }
}
