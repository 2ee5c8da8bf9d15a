//! Processor of a family: its dialect, and its template's message format.

use std::collections::BTreeSet;

use lm_template::{Content, Message, ToolSpec, Value};

use crate::channel::Channel;
use crate::dialect::{Dialect, MessageSyntax, Tags, UnmarkedCalls};
use crate::error::Result;
use crate::grammar::{ReplyGrammar, reply_grammar};
use crate::grammar_request::GrammarRequest;
use crate::json_text::json_text;
use crate::marker_guard::GuardedParser;
use crate::parser::{OutputParser, ParserOptions, ReadCalls};
use crate::parsers::{MessageParser, ReplyParser, StrippedParser, UnmarkedCallParser, open_channel};
use crate::preformatted::Syntax;
use crate::processor::{ModelDataProcessor, text_only};

/// Processor of a [`Dialect`]: parser and grammar are those of its data. All families are
/// such processors, and a program may have its own: see [`Processor`](crate::Processor).
#[derive(Debug, Clone, Copy)]
pub struct DialectProcessor {
    dialect: &'static Dialect,
    input: Input,
    messages: Option<&'static MessageSyntax>,
}

/// Form in which a template receives the tools and their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TemplateInput {
    /// Tools wrapped as functions and results as JSON text: the template prints them unchanged.
    #[default]
    Text,
    /// Tools and results unchanged: the template's expectations are unknown.
    Unchanged,
}

/// Template input of tools and their results.
#[derive(Debug, Clone, Copy)]
enum Input {
    Of(TemplateInput),
    /// Tools, arguments and results as finished text in the family's own syntax.
    Preformatted(Syntax),
}

impl DialectProcessor {
    /// Creates the processor of a dialect, with [`TemplateInput::Text`].
    pub const fn new(dialect: &'static Dialect) -> Self {
        Self { dialect, input: Input::Of(TemplateInput::Text), messages: None }
    }

    /// Sets the form in which the template receives the tools and their results.
    #[must_use]
    pub const fn with_input(self, input: TemplateInput) -> Self {
        Self { input: Input::Of(input), ..self }
    }

    /// Sets the syntax of replies that consist of messages with headers.
    pub(crate) const fn with_messages(self, messages: &'static MessageSyntax) -> Self {
        Self { messages: Some(messages), ..self }
    }

    pub(crate) const fn preformatted(dialect: &'static Dialect, syntax: Syntax) -> Self {
        Self { input: Input::Preformatted(syntax), ..Self::new(dialect) }
    }

    pub(crate) const fn unchanged(dialect: &'static Dialect) -> Self {
        Self::new(dialect).with_input(TemplateInput::Unchanged)
    }
}

impl ModelDataProcessor for DialectProcessor {
    fn name(&self) -> &'static str {
        self.dialect.name
    }

    fn dialect(&self) -> Option<&'static Dialect> {
        Some(self.dialect)
    }

    fn channels(&self) -> Vec<Channel> {
        self.dialect.channels.iter().map(Channel::from).collect()
    }

    fn markers(&self) -> BTreeSet<&'static str> {
        let mut markers = self.dialect.markers();
        markers.extend(self.messages.iter().flat_map(|messages| messages.markers()));
        markers
    }

    fn format_tools(&self, tools: &[ToolSpec]) -> Value {
        match self.input {
            _ if tools.is_empty() => Value::Null,
            Input::Of(TemplateInput::Text) => tools.iter().map(ToolSpec::to_function_json).collect(),
            Input::Preformatted(syntax) => tools.iter().map(|tool| syntax.tool(tool)).collect(),
            Input::Of(TemplateInput::Unchanged) => tools.iter().map(ToolSpec::to_json).collect(),
        }
    }

    fn message_to_template_input(&self, message: &Message) -> Result<Value> {
        let mut message = text_only(message, self.name())?;
        match (self.input, &message.content) {
            (Input::Of(TemplateInput::Text), Content::Json(result)) => {
                message.content = Content::Text(json_text(result))
            }
            (Input::Preformatted(syntax), _) => message = syntax.message(message),
            (Input::Of(_), _) => {}
        }
        Ok(message.to_json())
    }

    fn opens_reasoning(&self, tail: &str) -> bool {
        open_channel(&self.channels(), tail).is_some()
    }

    fn grammar(&self, request: &GrammarRequest<'_>) -> Result<Option<ReplyGrammar>> {
        reply_grammar(self.dialect, self.messages, request, &|options| self.parser(options))
    }

    fn parser(&self, options: &ParserOptions) -> Box<dyn OutputParser> {
        if self.reads_unmarked(options) {
            let text = ParserOptions { unmarked: Some(UnmarkedCalls::Text), ..options.clone() };
            return Box::new(UnmarkedCallParser::new(self.parser(&text), options.tools.clone()));
        }
        // For a given answer format, a grammar writes messages with the markers of the dialect only.
        let formatted = options.form.as_ref().is_some_and(|form| form.formatted.is_some());
        let stripped = if formatted { &[] } else { self.dialect.stripped };
        match self.messages.filter(|_| !formatted) {
            Some(messages) => guarded(MessageParser::new(self.dialect, messages, options), stripped, options),
            None => guarded(ReplyParser::new(self.dialect, options), stripped, options),
        }
    }
}

impl DialectProcessor {
    /// Returns true if a reply that is nothing but a call is one. Under the grammar of a required call or of
    /// an answer's format there is none without markers.
    fn reads_unmarked(&self, options: &ParserOptions) -> bool {
        let may_call = match &options.form {
            Some(form) => !form.tools.is_empty() && form.formatted.is_none(),
            None => options.calls != ReadCalls::Never,
        };
        let unmarked = options.unmarked.unwrap_or(self.dialect.unmarked);
        unmarked == UnmarkedCalls::Read && may_call && !options.tools.is_empty()
    }
}

fn guarded(
    parser: impl OutputParser + 'static,
    stripped: &'static [Tags],
    options: &ParserOptions,
) -> Box<dyn OutputParser> {
    Box::new(GuardedParser::new(StrippedParser::new(parser, stripped), options.tokens.clone()))
}
