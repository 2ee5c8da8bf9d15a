//! What a reply may be, as its reader needs to know it.

use crate::grammar::{GrammarRequest, ResponseFormat, Thinking, ToolChoice};
use crate::tokens::MarkerTokens;

/// What a reply may be: the part of a [`GrammarRequest`] that its reading depends on.
///
/// A parser that is told it reads what the grammar of the request takes: calls only where there may be some, channels
/// only where reasoning is allowed, and an answer of a given form to the letter, with no marker in it. Whether such a
/// reply is calls or the answer is decided by the text that it begins with, after its reasoning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyForm {
    /// The tools that may be called.
    pub(crate) tools: Vec<String>,
    pub(crate) thinking: Thinking,
    pub(crate) given: Option<Given>,
}

/// An answer of a given form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// Whether it may begin with a blank. Then there is no layout between a channel and it.
    pub(crate) begins_blank: bool,
    /// The answers, where they are listed.
    choices: Vec<String>,
}

impl ReplyForm {
    /// The form of the replies that the grammar of this request takes.
    pub fn of(request: &GrammarRequest<'_>) -> Self {
        let tools = request.tools.iter().map(|tool| tool.name());
        let tools = match &request.choice {
            ToolChoice::None => Vec::new(),
            ToolChoice::Auto | ToolChoice::Required => tools.map(str::to_owned).collect(),
            ToolChoice::Named(name) => tools.filter(|tool| tool == name).map(str::to_owned).collect(),
        };
        let given = request.response_format.as_ref().map(Given::of);
        Self { tools, thinking: request.thinking, given }
    }
}

impl Given {
    pub(crate) fn of(format: &ResponseFormat) -> Self {
        let blank = |text: &String| text.starts_with(char::is_whitespace);
        let begins_blank = match format {
            ResponseFormat::JsonObject | ResponseFormat::JsonSchema(_) => false,
            ResponseFormat::Choice(texts) => texts.iter().any(blank),
            // What a pattern or a grammar begins with is not looked for.
            ResponseFormat::Regex(_) | ResponseFormat::Lark(_) => true,
        };
        let choices = match format {
            ResponseFormat::Choice(texts) => texts.clone(),
            _ => Vec::new(),
        };
        Self { begins_blank, choices }
    }

    /// The listed answer that begins with this marker, if ordinary text can spell it.
    pub(crate) fn choice_that_spells(&self, marker: &str, tokens: &MarkerTokens) -> Option<&str> {
        let begins = |text: &&String| !marker.is_empty() && text.starts_with(marker);
        self.choices.iter().find(begins).filter(|_| !tokens.protect(marker)).map(String::as_str)
    }
}
