//! The processor of every family whose dialect is a table of tags.

use lm_template::{Content, Message, Value};

use crate::error::Result;
use crate::json_text::json_text;
use crate::parser::{OutputParser, ParserOptions};
use crate::parsers::{TagDialect, TaggedOutput};
use crate::processor::{ModelDataProcessor, text_only};

/// A family that is told by its name and its tags.
pub(super) struct Tagged {
    pub(super) name: &'static str,
    pub(super) dialect: &'static TagDialect,
}

impl ModelDataProcessor for Tagged {
    fn name(&self) -> &'static str {
        self.name
    }

    /// A tool's result is JSON text: the templates of these families print what they get.
    fn message_to_template_input(&self, message: &Message) -> Result<Value> {
        let mut message = text_only(message, self.name)?;
        if let Content::Json(result) = &message.content {
            message.content = Content::Text(json_text(result));
        }
        Ok(message.to_json())
    }

    fn opens_reasoning(&self, tail: &str) -> bool {
        self.dialect.opens_reasoning(tail)
    }

    fn parser(&self, options: &ParserOptions) -> Box<dyn OutputParser> {
        Box::new(TaggedOutput::new(self.dialect, options))
    }
}
