//! Allowed form of a reply, for its parser.

use crate::grammar_request::{GrammarRequest, ResponseFormat, Thinking, ToolChoice};
use crate::tokens::MarkerTokens;

/// Allowed form of a reply: the part of a [`GrammarRequest`] that its parser depends on.
///
/// A parser with it accepts what the grammar of the request accepts: calls only if allowed, channels only if
/// reasoning is allowed, and an answer of a given format verbatim, without markers. The text after the
/// reasoning decides by its prefix whether such a reply is calls or the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyForm {
    /// Tools that may be called.
    pub(crate) tools: Vec<String>,
    pub(crate) thinking: Thinking,
    pub(crate) formatted: Option<FormattedAnswer>,
}

/// An answer of a given format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormattedAnswer {
    /// True if it may start with whitespace. Then there is no layout between a channel and it.
    pub(crate) may_start_with_whitespace: bool,
    /// The allowed answers, if listed.
    choices: Vec<String>,
}

impl ReplyForm {
    /// Derives the form of the replies that the grammar of this request accepts.
    pub fn of(request: &GrammarRequest<'_>) -> Self {
        let tools = request.tools.iter().map(|tool| tool.name());
        let tools = match &request.choice {
            ToolChoice::None => Vec::new(),
            ToolChoice::Auto | ToolChoice::Required => tools.map(str::to_owned).collect(),
            ToolChoice::Named(name) => tools.filter(|tool| tool == name).map(str::to_owned).collect(),
        };
        let formatted = request.response_format.as_ref().map(FormattedAnswer::of);
        Self { tools, thinking: request.thinking, formatted }
    }
}

impl FormattedAnswer {
    pub(crate) fn of(format: &ResponseFormat) -> Self {
        let blank = |text: &String| text.starts_with(char::is_whitespace);
        let may_start_with_whitespace = match format {
            ResponseFormat::JsonObject | ResponseFormat::JsonSchema(_) => false,
            ResponseFormat::Choice(texts) => texts.iter().any(blank),
            // The prefixes of a pattern or grammar are not analysed.
            ResponseFormat::Regex(_) | ResponseFormat::Lark(_) => true,
        };
        let choices = match format {
            ResponseFormat::Choice(texts) => texts.clone(),
            _ => Vec::new(),
        };
        Self { may_start_with_whitespace, choices }
    }

    /// Returns the listed answer that starts with this marker, if ordinary text can spell it.
    pub(crate) fn choice_starting_with(&self, marker: &str, tokens: &MarkerTokens) -> Option<&str> {
        let begins = |text: &&String| !marker.is_empty() && text.starts_with(marker);
        self.choices.iter().find(begins).filter(|_| !tokens.protect(marker)).map(String::as_str)
    }
}
