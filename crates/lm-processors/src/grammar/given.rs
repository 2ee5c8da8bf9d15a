//! Answers of a given form, kept distinct from calls and channels.

use lm_template::{ToolSpec, Value};

use super::calls::opener;
use super::lark::{literal, sequence, text_regex};
use super::reply::ReplyWriter;
use super::values::{CallStart, Spelling, Values};
use crate::call_prefixes::reserved_prefixes;
use crate::dialect::{CallBody, Count, JsonObject};
use crate::error::{Error, Result};
use crate::grammar_request::Thinking;
use crate::reply_form::FormattedAnswer;
use crate::schema::{Reading, normalized};

impl ReplyWriter<'_, '_> {
    /// Prefixes of calls that ordinary text can spell.
    fn spelled_calls(&self, tools: &[&ToolSpec]) -> Vec<String> {
        let names = || tools.iter().map(|tool| tool.name());
        let calls = self.syntaxes(tools).iter().flat_map(|syntax| reserved_prefixes(syntax, names()));
        calls.filter(|text| !self.request.tokens.protect(text)).collect()
    }

    /// Refuses a listed answer that starts like a call.
    pub(super) fn check_choices(&self, answers: &FormattedAnswer, tools: &[&ToolSpec]) -> Result<()> {
        for begins in self.spelled_calls(tools) {
            if let Some(answer) = answers.choice_starting_with(&begins, &self.request.tokens) {
                let processor = self.dialect.name;
                return Err(Error::AnswerLikeCall { answer: answer.to_owned(), begins, processor });
            }
        }
        Ok(())
    }

    /// Refuses a pattern whose matches all start like calls.
    pub(super) fn check_pattern(&self, pattern: &str, tools: &[&ToolSpec]) -> Result<()> {
        let prefixes = prefixes(pattern);
        for begins in self.spelled_calls(tools) {
            let all = |prefixes: &[String]| prefixes.iter().all(|prefix| prefix.starts_with(&begins));
            if prefixes.as_deref().is_some_and(|prefixes| !prefixes.is_empty() && all(prefixes)) {
                let processor = self.dialect.name;
                return Err(Error::AnswerLikeCall { answer: pattern.to_owned(), begins, processor });
            }
        }
        Ok(())
    }

    /// Suffix for an answer's terminal expression that excludes answers starting like a call or a channel.
    pub(super) fn without_call_starts(&self, tools: &[&ToolSpec]) -> String {
        let channels = self.dialect.channels.iter().map(|channel| channel.tags.open);
        let channels = channels.filter(|open| {
            self.request.thinking != Thinking::Forbidden
                && !open.is_empty()
                && !self.request.tokens.protect(open)
        });
        let begins = channels.map(str::to_owned).chain(self.spelled_calls(tools));
        let begins: Vec<String> = begins.map(|text| text_regex(&text)).collect();
        if begins.is_empty() { String::new() } else { format!("& ~(({}) /(?s:.*)/)", begins.join(" | ")) }
    }

    pub(super) fn json_answer(&mut self, schema: &Value, tools: &[&ToolSpec]) -> Result<String> {
        let normalized = normalized(schema, Reading::Open)?;
        self.unenforced.extend(normalized.unenforced.iter().cloned());
        let schema = &normalized.schema;
        let call = self.json_call_start(tools);
        let mut values = Values::new(&mut self.lark, Spelling::ANSWER, self.request.layout, schema);
        let value = match &call {
            Some(call) => values.excluding_call(schema, call, "#"),
            None => values.value(schema, "#"),
        };
        let found = std::mem::take(&mut values.unenforced);
        // Without a value at all, the fault is the schema's.
        if value.is_none() && values.value(schema, "#").is_none() {
            return Err(Values::fault(&normalized, self.request.layout).into());
        }
        let like_call = call.filter(|_| values.may_begin_call || value.is_none());
        self.unenforced.extend(normalized.in_document(found));
        if let Some(call) = like_call {
            return Err(Error::AnswerLikeCall {
                answer: schema.to_string().chars().take(100).collect(),
                begins: format!("\"{}\"", call.key),
                processor: self.dialect.name,
            });
        }
        value.ok_or_else(|| Values::fault(&normalized, self.request.layout).into())
    }

    /// Start of calls that are JSON from the first character on, if the family writes them that way.
    fn json_call_start(&self, tools: &[&ToolSpec]) -> Option<CallStart> {
        let syntax = self.syntaxes(tools).first()?;
        if let Some(key) = json_key(opener(syntax)) {
            return Some(CallStart { in_list: false, key: key.to_owned(), names: None });
        }
        let CallBody::Json(json) = syntax.body else { return None };
        let key = match json.object {
            JsonObject::Keys { written, .. } => written.first().map_or("", |(_, key)| *key).to_owned(),
            JsonObject::NameIsKey => String::new(),
        };
        let names = Some(tools.iter().map(|tool| tool.name().to_owned()).collect());
        let bare = opener(syntax).is_empty();
        bare.then_some(CallStart { in_list: json.count != Count::One, key, names })
    }

    /// Marker of calls next to an answer of a given form. A JSON marker is split into lexemes like an answer.
    pub(super) fn marker_beside_answer(&mut self, opener: &str) -> String {
        match json_key(opener) {
            Some(key) => sequence([&*literal("{"), &literal(&Value::from(key).to_string()), &literal(":")]),
            None => self.lark.marker(opener),
        }
    }
}

/// Prefixes of a pattern's matches; `None` if they are too many.
fn prefixes(pattern: &str) -> Option<Vec<String>> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let prefixes = regex_syntax::hir::literal::Extractor::new().extract(&hir);
    let texts = prefixes.literals()?.iter().map(|literal| String::from_utf8_lossy(literal.as_bytes()));
    Some(texts.map(|text| text.into_owned()).collect())
}

/// The key in a marker of the form `{"key":`.
fn json_key(marker: &str) -> Option<&str> {
    marker.strip_prefix("{\"")?.strip_suffix("\":")
}
