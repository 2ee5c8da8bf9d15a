//! Grammar and parser of a family on the same texts.

use lm_processors::{
    Error, GrammarRequest, Message, ModelDataProcessor, ParserOptions, Recovery, ReplyForm, SchemaFault,
    Thinking, ToolCall, ToolChoice, ToolSpec, Value,
};
use serde_json::Map;

use super::common::{Compiler, Verdict, verdict};
use super::random::{Random, arguments, tool};
use super::walk::{Pieces, walk};
use super::writer::reply;

/// Maximum length of a random text in bytes.
const MAX_BYTES: usize = 4_000;

/// Outcome of one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The texts were read back.
    ReadBack,
    /// The syntax cannot express a name or a value.
    Unwritable,
    /// The random text did not end.
    Endless,
}

/// A family with some tools, and the grammar of a reply that calls them.
pub struct Case {
    processor: &'static dyn ModelDataProcessor,
    tools: Vec<ToolSpec>,
    /// Number of tools that may be called: all, or only the first.
    callable: u64,
    form: ReplyForm,
    matcher: llguidance::Matcher,
    lark: String,
    unenforced: bool,
}

impl Case {
    /// Creates random tools for a family; `None` if it has no calls or cannot express their names.
    pub fn new(
        compiler: &Compiler,
        processor: &'static dyn ModelDataProcessor,
        random: &mut Random<'_>,
    ) -> Option<Self> {
        processor.dialect().filter(|dialect| !dialect.calls.is_empty())?;
        let name = processor.name();
        let tools: Vec<ToolSpec> = (0..random.below(2) + 1).map(|at| tool(random, at)).collect();
        let named = random.chance(3);
        let choice = if named { ToolChoice::Named(tools[0].name().into()) } else { ToolChoice::Required };
        let request = GrammarRequest {
            tools: &tools,
            choice,
            thinking: Thinking::Forbidden,
            ..GrammarRequest::default()
        };
        let written = match processor.grammar(&request) {
            Ok(written) => written.expect("a call is required"),
            Err(Error::Schema(error)) if matches!(error.fault, SchemaFault::Name { .. }) => return None,
            Err(error) => panic!("{name}: {error}: {}", declarations(&tools)),
        };
        let lark = written.grammar.lark.clone();
        let matcher = compiler
            .compile_grammar(&written.grammar)
            .unwrap_or_else(|error| panic!("{name}: {error}: {}\n{lark}", declarations(&tools)));
        let form = ReplyForm::of(&request);
        let callable = if named { 1 } else { tools.len() as u64 };
        let unenforced = written.unenforced.iter().any(|it| !["enum", "const"].contains(&&*it.keyword));
        Some(Self { processor, tools, callable, form, matcher, lark, unenforced })
    }

    fn name(&self) -> &'static str {
        self.processor.name()
    }

    /// Random calls that match the tools are accepted and read back.
    pub fn written_calls(&self, random: &mut Random<'_>) -> Outcome {
        let calls: Vec<ToolCall> = (0..random.below(2) + 1)
            .map(|_| {
                let tool = &self.tools[random.below(self.callable) as usize];
                ToolCall::new(tool.name(), arguments(random, tool.parameters(), tool.parameters()))
            })
            .collect();
        if !calls.iter().all(|call| self.fits(call)) {
            return Outcome::Unwritable;
        }
        let Some(text) = self.write(&calls) else { return Outcome::Unwritable };
        self.assert_taken(&text);
        let read = self.read(&text);
        // Without types in the syntax, a text that looks like another type is that type if both match.
        let again = || self.write(&read).map(|text| self.read(&text));
        let same = self.same(&read, &calls)
            || read.iter().all(|call| self.fits(call))
                && again().is_some_and(|again| self.same(&again, &read));
        assert!(same, "{}: {text}\nread {read:?}\nfor {calls:?}\n{}", self.name(), declarations(&self.tools));
        Outcome::ReadBack
    }

    /// A random text of the grammar is read as calls that match the tools, and these are read back after
    /// writing them again.
    pub fn random_text(&self, random: &mut Random<'_>) -> Outcome {
        let pieces = Pieces::of(self.processor.dialect().expect("a dialect"));
        let Some(text) = walk(&self.matcher, &pieces, random, MAX_BYTES) else { return Outcome::Endless };
        let read = self.read(&text);
        assert!(!read.is_empty(), "{}: no call in {text}", self.name());
        for call in &read {
            assert!(
                self.unenforced || self.fits(call),
                "{}: {text}\nread {call:?}\n{}\n{}",
                self.name(),
                declarations(&self.tools),
                self.lark
            );
        }
        let Some(again) = self.write(&read) else { return Outcome::Unwritable };
        let second = self.read(&again);
        assert!(
            self.same(&second, &read),
            "{}: {text}\nagain {again}\nread {second:?}\nfor {read:?}\n{}",
            self.name(),
            declarations(&self.tools)
        );
        Outcome::ReadBack
    }

    fn write(&self, calls: &[ToolCall]) -> Option<String> {
        reply(self.processor.dialect()?, calls, &self.tools)
    }

    fn assert_taken(&self, text: &str) {
        let verdict = verdict(&self.matcher, text);
        let rest = match verdict {
            Verdict::Rejected { at } => String::from_utf8_lossy(&text.as_bytes()[at..]).into_owned(),
            _ => String::new(),
        };
        let name = self.name();
        assert_eq!(
            verdict,
            Verdict::Accepted,
            "{name}: {text}\nstopped before: {rest}\n{}\n{}",
            declarations(&self.tools),
            self.lark
        );
        let more = format!("{text} and more");
        assert_ne!(super::common::verdict(&self.matcher, &more), Verdict::Accepted, "{name}: {more}");
    }

    /// The calls of a text, which has nothing else; the same whether or not the parser knows the choice.
    fn read(&self, text: &str) -> Vec<ToolCall> {
        let options = ParserOptions {
            tools: self.tools.clone().into(),
            recovery: Recovery::Off,
            ..ParserOptions::default()
        };
        let free = self.message(text, &options);
        let form = Some(self.form.clone());
        let constrained = self.message(text, &ParserOptions { form, ..options });
        assert_eq!(constrained, free, "{}: {text}\n{}", self.name(), declarations(&self.tools));
        assert_eq!(constrained.content.text(), "", "{}: {text}\n{}", self.name(), declarations(&self.tools));
        constrained.tool_calls
    }

    fn message(&self, text: &str, options: &ParserOptions) -> Message {
        let message = self.processor.to_message(text, options);
        message
            .unwrap_or_else(|error| panic!("{}: {error}: {text}\n{}", self.name(), declarations(&self.tools)))
    }

    fn fits(&self, call: &ToolCall) -> bool {
        let tool = self.tools.iter().find(|tool| tool.name() == call.name);
        let arguments = Value::Object(call.arguments.clone());
        tool.is_some_and(|tool| {
            // Formats are as the grammar defines them: a February has 29 days.
            jsonschema::is_valid(tool.parameters(), &arguments)
        })
    }

    fn same(&self, these: &[ToolCall], those: &[ToolCall]) -> bool {
        let plain = |calls: &[ToolCall]| -> Vec<(String, Map<String, Value>)> {
            calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
        };
        plain(these) == plain(those)
    }
}

fn declarations(tools: &[ToolSpec]) -> String {
    tools.iter().map(|tool| format!("{}: {}\n", tool.name(), tool.parameters())).collect()
}
