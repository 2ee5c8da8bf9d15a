//! Grammar of a whole reply: reasoning, text, calls, the end.

use std::collections::BTreeSet;

use lm_template::ToolSpec;

use super::ReplyGrammar;
use super::calls::{CallRules, NameCheck, NewParser, calls, opener, space, text_or_marker};
use super::lark::{Lark, literal, one_of, sequence};
use crate::dialect::{
    CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, MessageSyntax, NamedCall, Tags, Trim,
    UnmatchedEnd,
};
use crate::error::{Error, Result};
use crate::grammar_request::{GrammarRequest, ResponseFormat, Thinking, ToolChoice};
use crate::layout::Layout;
use crate::parsers::after_channel;
use crate::reply_form::FormattedAnswer;
use crate::schema::UnenforcedKeyword;

/// Builds the grammar of a reply in `dialect`; `None` if the request does not constrain it.
///
/// `parser` creates a parser of the dialect's replies, which is used to check names.
pub(crate) fn reply_grammar(
    dialect: &Dialect,
    messages: Option<&MessageSyntax>,
    request: &GrammarRequest<'_>,
    parser: &NewParser<'_>,
) -> Result<Option<ReplyGrammar>> {
    let tools = offered(dialect, request)?;
    if let (Some(syntax), false) = (dialect.calls.first(), tools.is_empty()) {
        NameCheck::new(dialect.name, syntax, request.tools, parser).check(&tools)?;
    }
    // Without tools, only a request that forbids calls excludes them.
    let calls_matter =
        !dialect.calls.is_empty() && (!request.tools.is_empty() || request.choice == ToolChoice::None);
    if !calls_matter && request.response_format.is_none() {
        return Ok(None);
    }
    let lark = Lark::new(request.tokens.clone());
    let mut writer = ReplyWriter { lark, dialect, messages, request, unenforced: BTreeSet::new() };
    let start = writer.start(&tools)?;
    Ok(Some(ReplyGrammar {
        grammar: writer.lark.finish(&start),
        unenforced: writer.unenforced.into_iter().collect(),
    }))
}

/// Tools that may be called.
fn offered<'a>(dialect: &Dialect, request: &GrammarRequest<'a>) -> Result<Vec<&'a ToolSpec>> {
    let tools: Vec<&ToolSpec> = match &request.choice {
        ToolChoice::None => vec![],
        ToolChoice::Auto | ToolChoice::Required => request.tools.iter().collect(),
        ToolChoice::Named(name) => {
            let found = request.tools.iter().find(|tool| tool.name() == name);
            vec![found.ok_or_else(|| Error::UnknownTool { name: name.clone() })?]
        }
    };
    let must_call = matches!(request.choice, ToolChoice::Required | ToolChoice::Named(_));
    if must_call && tools.is_empty() {
        return Err(Error::NoTools);
    }
    if must_call && dialect.calls.is_empty() {
        return Err(Error::NoCallSyntax { processor: dialect.name });
    }
    Ok(if dialect.calls.is_empty() { vec![] } else { tools })
}

pub(super) struct ReplyWriter<'a, 'b> {
    pub(super) lark: Lark,
    pub(super) dialect: &'a Dialect,
    messages: Option<&'a MessageSyntax>,
    pub(super) request: &'a GrammarRequest<'b>,
    pub(super) unenforced: BTreeSet<UnenforcedKeyword>,
}

impl ReplyWriter<'_, '_> {
    fn start(&mut self, tools: &[&ToolSpec]) -> Result<String> {
        let answer = self.answer(tools)?;
        let first = match (self.request.thinking, self.dialect.channels.first()) {
            (Thinking::Open, Some(channel)) => self.channel_rest(channel),
            _ => String::new(),
        };
        let spans = self.channel_spans(!first.is_empty());
        Ok(sequence([&*first, &spans, &answer]))
    }

    /// Builds the channels before the answer, each from its start to its end, with layout after it. The only
    /// channel of a dialect comes once: a model whose next word the answer forbids would open it again and
    /// again. `opened` is true if the first one is open.
    fn channel_spans(&mut self, opened: bool) -> String {
        if self.request.thinking == Thinking::Forbidden || self.dialect.channels.is_empty() {
            return String::new();
        }
        let mut options = Vec::new();
        let given = self.request.response_format.as_ref().map(FormattedAnswer::of);
        // A listed answer does not open a channel.
        let answers = |open: &str| {
            given
                .as_ref()
                .is_some_and(|given| given.choice_starting_with(open, &self.request.tokens).is_some())
        };
        let channels = self.dialect.channels.iter().filter(|channel| !answers(channel.tags.open));
        let channels: Vec<_> = channels.filter(|channel| !channel.tags.open.is_empty()).collect();
        for channel in channels {
            let start = self.lark.marker(channel.tags.open);
            let rest = self.channel_rest(channel);
            options.push(self.lark.rule(sequence([&*start, &rest])));
        }
        match options.as_slice() {
            [] => String::new(),
            [_] if opened => String::new(),
            [only] => format!("{only}?"),
            several => format!("{}*", one_of(several)),
        }
    }

    /// Builds the text of an open channel, its end, and the layout after it.
    fn channel_rest(&mut self, channel: &ChannelSyntax) -> String {
        let end = channel.tags.close;
        // The parser divides a reply of messages at their markers, in any context.
        let mut excluded = [vec![end], self.message_markers()].concat();
        if channel.calls_inside != CallsInside::Text {
            excluded.extend(after_channel(self.dialect));
        }
        let free = self.lark.text_without(&excluded);
        let text = self.lark.up_to(&free, "", end);
        let blank = self
            .request
            .response_format
            .as_ref()
            .is_some_and(|format| FormattedAnswer::of(format).may_start_with_whitespace);
        let after = match (self.request.layout, channel.trim_after) {
            (Layout::Exact, _) if blank => String::new(),
            (Layout::Exact, Trim::Nothing) => String::new(),
            (Layout::Exact, Trim::LineBreaks) => self.lark.terminal("/\\n{0,2}/"),
            _ => self.lark.terminal("/[ \\t\\r\\n]{0,4}/"),
        };
        self.lark.rule(sequence([&*text, &after]))
    }

    fn answer(&mut self, tools: &[&ToolSpec]) -> Result<String> {
        let required = matches!(self.request.choice, ToolChoice::Required | ToolChoice::Named(_));
        let mut options = Vec::new();
        if !required {
            options.push(self.text_answer(tools)?);
        }
        for syntax in self.syntaxes(tools) {
            let (number, layout, markers) = (self.request.calls, self.request.layout, self.message_markers());
            let rules = calls(self.dialect.name, &mut self.lark, syntax, tools, number, layout, &markers)?;
            self.unenforced.extend(rules.unenforced.iter().cloned());
            options.push(self.calls_answer(&rules, required));
        }
        Ok(one_of(&options))
    }

    /// Call syntaxes that are allowed: the family's own, or all that it reads.
    pub(super) fn syntaxes(&self, tools: &[&ToolSpec]) -> &'static [CallSyntax] {
        let known = self.dialect.calls;
        match self.request.layout {
            _ if tools.is_empty() => &[],
            Layout::Exact => &known[..1],
            Layout::Any => known,
        }
    }

    /// Markers that start and end messages.
    fn message_markers(&self) -> Vec<&'static str> {
        let mut markers: Vec<&str> = self
            .messages
            .map_or(vec![], |messages| [&[messages.start, messages.channel], messages.ends].concat());
        markers.retain(|marker| !marker.is_empty());
        markers
    }

    /// Builds calls with nothing after them, preceded by text of the answer if calls are not required.
    fn calls_answer(&mut self, calls: &CallRules, required: bool) -> String {
        let end = self.end();
        if calls.opener.is_empty() {
            return sequence([&*calls.rest, &end]);
        }
        let before = if self.request.response_format.is_some() {
            self.marker_beside_answer(calls.opener)
        } else if required {
            self.lark.marker(calls.opener)
        } else {
            let marker = self.lark.marker(calls.opener);
            let mut options = vec![self.lark.up_to(&self.free_text(), "", calls.opener)];
            if let Some(tagged) = self.tagged_text() {
                let space = self.lark.terminal("/[ \\t\\r\\n]{0,4}/");
                options.push(format!("{tagged} {space} {marker}"));
            }
            one_of(&options)
        };
        sequence([&*before, &calls.rest, &end])
    }

    /// Builds the end of a reply: optional texts that the parser drops.
    fn end(&mut self) -> String {
        let dropped = self.dialect.answer.dropped.iter();
        let dropped: Vec<String> = dropped.map(|marker| self.lark.marker(marker)).collect();
        let (space, times) = match self.request.layout {
            Layout::Exact => (String::new(), "?"),
            Layout::Any => (space(&mut self.lark, "", Layout::Any), "*"),
        };
        let dropped =
            if dropped.is_empty() { String::new() } else { format!("({}){times}", dropped.join(" | ")) };
        sequence([&*space, &dropped, &space])
    }

    /// Builds text between the answer's own markers, if the family has some.
    fn tagged_text(&mut self) -> Option<String> {
        let Tags { open, close, .. } = self.dialect.answer.tags;
        if open.is_empty() {
            return None;
        }
        let (text, open) = (self.free_text(), self.lark.marker(open));
        let rest =
            if close.is_empty() { self.lark.terminal(text) } else { self.lark.up_to(&text, "", close) };
        Some(self.lark.rule(format!("{open} {rest}")))
    }

    /// Builds text of the answer under its name, in families that name it like a tool.
    fn named_text(&mut self) -> Option<String> {
        let syntax = self.dialect.calls.first()?;
        let CallBody::Named(NamedCall { answer_name: Some(name), after_name, .. }) = syntax.body else {
            return None;
        };
        let (text, open) = (self.free_text(), self.lark.marker(opener(syntax)));
        let (after, text) =
            (text_or_marker(&mut self.lark, after_name, self.request.layout), self.lark.terminal(text));
        Some(self.lark.rule(sequence([&*open, &literal(name), &after, &text])))
    }

    /// Builds the answer as text: free, or in the response format.
    fn text_answer(&mut self, tools: &[&ToolSpec]) -> Result<String> {
        let body = match &self.request.response_format {
            None => {
                let (text, end) = (self.free_text(), self.end());
                let mut options = vec![self.lark.terminal(text)];
                options.extend(self.tagged_text());
                options.extend(self.named_text());
                return Ok(sequence([&*one_of(&options), &end]));
            }
            Some(ResponseFormat::JsonObject) => {
                return self.json_answer(&serde_json::json!({"type": "object"}), tools);
            }
            Some(ResponseFormat::JsonSchema(schema)) => return self.json_answer(schema, tools),
            Some(ResponseFormat::Regex(regex)) => {
                self.check_pattern(regex, tools)?;
                let answer = slashed(regex);
                let other = self.without_call_starts(tools);
                return Ok(self.lark.terminal(sequence([&*answer, &other])));
            }
            Some(format @ ResponseFormat::Choice(texts)) => {
                self.check_choices(&FormattedAnswer::of(format), tools)?;
                texts.iter().map(|text| literal(text)).collect::<Vec<_>>().join(" | ")
            }
            Some(ResponseFormat::Lark(rules)) => format!("%lark {{\n{rules}\n}}"),
        };
        Ok(self.lark.rule(body))
    }

    /// Terminal expression for text of the answer, in which no call and no channel starts.
    fn free_text(&self) -> String {
        let starts = self.dialect.channels.iter().map(|channel| channel.tags.open);
        let dropped_ends = |channel: &&ChannelSyntax| {
            matches!(channel.unmatched_end, UnmatchedEnd::Dropped | UnmatchedEnd::DroppedAtStart)
        };
        let ends = self.dialect.channels.iter().filter(dropped_ends).map(|channel| channel.tags.close);
        let of_messages = self.messages.into_iter();
        let of_messages = of_messages.flat_map(|messages| {
            [messages.start, messages.channel].into_iter().chain(messages.ends.iter().copied())
        });
        let Tags { open, close, .. } = self.dialect.answer.tags;
        let dropped = self.dialect.answer.dropped.iter().copied();
        let mut excluded: Vec<&str> = openers(self.dialect)
            .chain(starts)
            .chain(ends)
            .chain(dropped)
            .chain(of_messages)
            .chain([open, close])
            .collect();
        excluded.retain(|text| !text.is_empty());
        excluded.sort_unstable();
        excluded.dedup();
        let text = self.lark.text_without(&excluded);
        let bare = self.dialect.calls.first().is_some_and(|syntax| opener(syntax).is_empty());
        let bare = bare && self.request.choice != ToolChoice::None;
        if bare { format!("{text} & /([ \\t\\r\\n]*[^\\[\\{{ \\t\\r\\n](?s:.*))?/") } else { text }
    }
}

/// A regular expression between slashes.
fn slashed(regex: &str) -> String {
    let mut out = String::from("/");
    let mut escaped = false;
    for c in regex.chars() {
        match c {
            '/' if !escaped => out.push_str("\\/"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    out + "/"
}

/// Start markers of calls, in every syntax that the family reads.
fn openers(dialect: &Dialect) -> impl Iterator<Item = &str> {
    dialect.calls.iter().map(|syntax| opener(syntax)).filter(|opener| !opener.is_empty())
}
