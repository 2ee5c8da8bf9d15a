//! One model family's dialect.

use std::collections::BTreeSet;

use lm_template::{Content, Message, Part, ToolSpec, Value};

use crate::channel::Channel;
use crate::dialect::Dialect;
use crate::error::{Error, Result};
use crate::grammar::{GrammarRequest, ReplyGrammar};
use crate::message_builder::MessageBuilder;
use crate::parser::{OutputParser, ParserOptions};

/// One model family's dialect: how messages and tools enter its template, and how its text is read.
pub trait ModelDataProcessor: Send + Sync {
    /// The family's name.
    fn name(&self) -> &'static str;

    /// The family's text as data; none for a processor that parses in a way of its own.
    fn dialect(&self) -> Option<&'static Dialect> {
        None
    }

    /// The channels of its replies beside the answer; the first is the one that thinking switches and budgets mean.
    fn channels(&self) -> Vec<Channel> {
        Vec::new()
    }

    /// The texts that mean something to its parser, but for names, keys and layout.
    fn markers(&self) -> BTreeSet<&'static str> {
        self.dialect().map(Dialect::markers).unwrap_or_default()
    }

    /// The declared tools as the template's `tools`; null when there are none.
    fn format_tools(&self, tools: &[ToolSpec]) -> Value {
        if tools.is_empty() { Value::Null } else { tools.iter().map(ToolSpec::to_function_json).collect() }
    }

    /// A message as an element of the template's `messages`.
    ///
    /// # Errors
    /// [`Error::UnsupportedPart`] for an image or a sound, when the family reads none.
    fn message_to_template_input(&self, message: &Message) -> Result<Value> {
        Ok(text_only(message, self.name())?.to_json())
    }

    /// Whether a prompt that ends with `tail` leaves the reasoning channel open.
    fn opens_reasoning(&self, tail: &str) -> bool {
        let _ = tail;
        false
    }

    /// The grammar of a reply; none when the request leaves everything open.
    ///
    /// # Errors
    /// [`Error::Schema`] for a schema without a grammar; [`Error::NoTools`], [`Error::UnknownTool`] and
    /// [`Error::NoCallSyntax`] when the request asks for a call that cannot be.
    fn grammar(&self, request: &GrammarRequest<'_>) -> Result<Option<ReplyGrammar>>;

    /// A parser for one reply.
    fn parser(&self, options: &ParserOptions) -> Box<dyn OutputParser>;

    /// Reads a whole reply: the streaming parser fed once.
    ///
    /// # Errors
    /// [`Error::MalformedToolCall`], unless the options ask for text.
    fn to_message(&self, text: &str, options: &ParserOptions) -> Result<Message> {
        let mut parser = self.parser(options);
        let mut builder = MessageBuilder::new(options);
        parser.push(text).into_iter().try_for_each(|event| builder.push(event))?;
        parser.finish().into_iter().try_for_each(|event| builder.push(event))?;
        Ok(builder.finish())
    }
}

/// A message for a model that reads text only. A list of text parts becomes the text itself: most templates of such
/// models know no lists.
pub(crate) fn text_only(message: &Message, processor: &'static str) -> Result<Message> {
    let parts = message.content.parts();
    if let Some(index) = parts.iter().position(|part| matches!(part, Part::Image(_) | Part::Audio(_))) {
        return Err(Error::UnsupportedPart { part: parts[index].kind().to_owned(), index, processor });
    }
    let mut message = message.clone();
    if matches!(message.content, Content::Parts(_))
        && message.content.parts().iter().all(|part| part.as_text().is_some())
    {
        message.content = Content::Text(message.content.text());
    }
    Ok(message)
}
