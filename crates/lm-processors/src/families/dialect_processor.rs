//! The processor of every family: a dialect, and how messages enter the family's template.

use lm_template::{Content, Message, ToolSpec, Value};

use crate::dialect::Dialect;
use crate::error::Result;
use crate::grammar::{GrammarRequest, ReplyGrammar, reply_grammar};
use crate::json_text::json_text;
use crate::parser::{OutputParser, ParserOptions};
use crate::parsers::ReplyParser;
use crate::processor::{ModelDataProcessor, text_only};

/// A family that is told by its dialect.
pub(super) struct DialectProcessor {
    pub(super) dialect: &'static Dialect,
    pub(super) input: Input,
}

/// What a family's templates expect of tools and their results.
pub(super) enum Input {
    /// Tools wrapped as functions, results as JSON text: the templates print what they get.
    Text,
    /// Tools and results as they were given: what the template wants is not known.
    AsGiven,
}

impl ModelDataProcessor for DialectProcessor {
    fn name(&self) -> &'static str {
        self.dialect.name
    }

    fn format_tools(&self, tools: &[ToolSpec]) -> Value {
        match self.input {
            _ if tools.is_empty() => Value::Null,
            Input::Text => tools.iter().map(ToolSpec::to_function_json).collect(),
            Input::AsGiven => tools.iter().map(ToolSpec::to_json).collect(),
        }
    }

    fn message_to_template_input(&self, message: &Message) -> Result<Value> {
        let mut message = text_only(message, self.name())?;
        if let (Input::Text, Content::Json(result)) = (&self.input, &message.content) {
            message.content = Content::Text(json_text(result));
        }
        Ok(message.to_json())
    }

    fn opens_reasoning(&self, tail: &str) -> bool {
        self.dialect.channels.iter().any(|syntax| {
            let open = tail.rfind(&*syntax.channel.start);
            open.is_some_and(|open| tail.rfind(&*syntax.channel.end).is_none_or(|close| close < open))
        })
    }

    fn grammar(&self, request: &GrammarRequest<'_>) -> Result<Option<ReplyGrammar>> {
        reply_grammar(self.dialect, request)
    }

    fn parser(&self, options: &ParserOptions) -> Box<dyn OutputParser> {
        Box::new(ReplyParser::new(self.dialect, self.dialect.channels.to_vec(), options))
    }
}
