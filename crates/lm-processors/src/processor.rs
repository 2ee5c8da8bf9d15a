//! Interface to the dialect of a model family.

use std::collections::BTreeSet;

use lm_template::{Content, Message, Part, ToolSpec, Value};

use crate::channel::Channel;
use crate::dialect::Dialect;
use crate::error::{Error, Result};
use crate::grammar::ReplyGrammar;
use crate::grammar_request::GrammarRequest;
use crate::message_builder::MessageBuilder;
use crate::parser::{OutputParser, ParserOptions};

/// Processor of a model family: conversion of messages and tools for its template, and parsing of its text.
pub trait ModelDataProcessor: Send + Sync {
    /// Name of the family.
    fn name(&self) -> &'static str;

    /// Syntax of the family as data; `None` for a processor with its own parser.
    fn dialect(&self) -> Option<&'static Dialect> {
        None
    }

    /// Channels of its replies besides the answer; thinking switches and budgets apply to the first.
    fn channels(&self) -> Vec<Channel> {
        Vec::new()
    }

    /// Texts with a meaning for its parser, except names, keys and layout.
    fn markers(&self) -> BTreeSet<&'static str> {
        self.dialect().map(Dialect::markers).unwrap_or_default()
    }

    /// Converts the declared tools for the template's `tools`; null if there are none.
    fn format_tools(&self, tools: &[ToolSpec]) -> Value {
        if tools.is_empty() { Value::Null } else { tools.iter().map(ToolSpec::to_function_json).collect() }
    }

    /// Converts a message to an element of the template's `messages`.
    ///
    /// # Errors
    /// [`Error::UnsupportedPart`] for an image or audio part that the family does not read.
    fn message_to_template_input(&self, message: &Message) -> Result<Value> {
        Ok(text_only(message, self.name())?.to_json())
    }

    /// Returns true if a prompt that ends with `tail` leaves the reasoning channel open.
    fn opens_reasoning(&self, tail: &str) -> bool {
        let _ = tail;
        false
    }

    /// Builds the grammar of a reply; `None` if the request does not constrain it.
    ///
    /// # Errors
    /// [`Error::Schema`] for a schema without a grammar; [`Error::NoTools`], [`Error::UnknownTool`] and
    /// [`Error::NoCallSyntax`] if the request requires an impossible call.
    fn grammar(&self, request: &GrammarRequest<'_>) -> Result<Option<ReplyGrammar>>;

    /// Creates a parser for one reply.
    fn parser(&self, options: &ParserOptions) -> Box<dyn OutputParser>;

    /// Parses a whole reply by feeding the streaming parser once.
    ///
    /// # Errors
    /// [`Error::MalformedToolCall`], unless the options turn it into text.
    fn to_message(&self, text: &str, options: &ParserOptions) -> Result<Message> {
        let mut parser = self.parser(options);
        let mut builder = MessageBuilder::new(options);
        parser.push(text).into_iter().try_for_each(|event| builder.push(event))?;
        parser.finish().into_iter().try_for_each(|event| builder.push(event))?;
        Ok(builder.finish())
    }
}

/// Converts a message for a text-only model. A list of text parts becomes plain text: most templates of such
/// models do not support lists.
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
