//! Name of a call whose arguments are markup.

use super::{MAX_LAYOUT_BYTES, ParameterBody, State, Step, name_ends};
use crate::declared_names::Declared;
use crate::dialect::{ParameterCall, Tags};
use crate::marker_guard::unguarded;
use crate::parsers::call_sink::CallSink;
use crate::parsers::fault::Fault;
use crate::parsers::recovery::Departure;
use crate::parsers::tag::{Tag, end_of_name, match_tag, trim_blanks, unquoted};
use crate::parsers::tools::{MAX_NAME_BYTES, is_name};
use crate::values::{Readings, Schema};

impl ParameterBody {
    /// Consumes the name's marker, and an unrelated word before it.
    pub(super) fn name_open(&mut self, text: &str) -> Result<Step, Fault> {
        let rest = trim_blanks(&text[self.at..]);
        self.at = text.len() - rest.len();
        let (before, open) = (self.syntax.before_name, self.syntax.name.open.trim_start());
        self.state = State::NameOpen;
        if !before.is_empty() && rest.starts_with(before) {
            self.at += before.len();
            return Ok(Step::Continue);
        }
        match match_tag(rest, open) {
            Tag::Match { len, quote } => {
                self.at += len;
                self.state = State::Name(quote);
                return Ok(Step::Continue);
            }
            Tag::Partial => return Ok(Step::NeedText),
            Tag::NoMatch if before.starts_with(rest) => return Ok(Step::NeedText),
            Tag::NoMatch => {}
        }
        let word = &rest[..rest.find('<').unwrap_or(rest.len())];
        if !open.starts_with('<') || word.len() > MAX_LAYOUT_BYTES || !is_name(word.trim_end()) {
            return Err(Fault::malformed(format!("`{open}` is missing")));
        }
        if word.len() == rest.len() {
            return Ok(Step::NeedText);
        }
        self.at += word.len();
        Ok(Step::Continue)
    }

    pub(super) fn name(
        &mut self,
        text: &str,
        quote: Option<char>,
        calls: &mut CallSink<'_>,
    ) -> Result<Step, Fault> {
        let rest = text[self.at..].trim_start();
        self.at = text.len() - rest.len();
        match self.tools.match_name(rest, &name_ends(self.syntax, self.call_syntax.call.close)) {
            Declared::Found(found) => {
                let found = found.to_owned();
                let close = self.syntax.name.close;
                self.at += found.len() + if rest[found.len()..].starts_with(close) { close.len() } else { 0 };
                return self.begin_call(&found, calls);
            }
            Declared::Open => {
                self.state = State::Name(quote);
                return Ok(Step::NeedText);
            }
            Declared::Absent => {}
        }
        let ended = match self.syntax.name {
            Tags { open: "", .. } => self.end_of_bare_name(rest),
            Tags { close, .. } => end_of_name(rest, quote, close, MAX_NAME_BYTES),
        };
        let Some((end, behind)) = ended else {
            if rest.len() > MAX_NAME_BYTES {
                return Err(Fault::malformed("its name has no end"));
            }
            self.state = State::Name(quote);
            return Ok(Step::NeedText);
        };
        let found = self.bare_name(rest[..end].trim_end());
        if !is_name(found) {
            return Err(Fault::malformed(format!("`{found}` is no name")));
        }
        self.at += behind;
        self.begin_call(found, calls)
    }

    /// A name without the quotes of an attribute, and without the slash of an empty element of a declared
    /// tool.
    fn bare_name<'t>(&self, found: &'t str) -> &'t str {
        if !self.tolerance.accepts(Departure::QuotedName) {
            return found;
        }
        let name = unquoted(found);
        let element = name.strip_suffix('/').map(str::trim_end);
        let is_declared = |element: &&str| !self.tools.declares(name) && self.tools.declares(element);
        element.filter(is_declared).unwrap_or(name)
    }

    fn begin_call(&mut self, name: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        self.name = unguarded(name).into_owned();
        let is_declared = self.tools.is_empty() || self.tools.declares(self.tools.declared_name(&self.name));
        let has_marker = !self.syntax.name.open.is_empty() || !self.call_syntax.section.open.is_empty();
        self.is_doubtful = !has_marker && !is_declared && self.tolerance.accepts(Departure::TextForCall);
        if !self.is_doubtful {
            calls.begin(Some(&self.name), None)?;
        }
        self.declared_keys = self.schema().map(Schema::declared_names).unwrap_or_default();
        self.json = Readings::of(self.schema());
        self.state = if self.syntax.number.is_some() { State::Number } else { State::Parameter };
        Ok(Step::Continue)
    }

    /// End of a name without an opening marker, and the position after it.
    fn end_of_bare_name(&self, rest: &str) -> Option<(usize, usize)> {
        let ParameterCall { name, .. } = *self.syntax;
        let ends = name_ends(self.syntax, self.call_syntax.call.close);
        let window = &rest[..rest.floor_char_boundary(MAX_NAME_BYTES)];
        let marked = ends.iter().filter_map(|end| Some((window.find(end)?, *end))).min();
        let blank = window.find(char::is_whitespace);
        match marked {
            Some((end, close)) if blank.is_none_or(|blank| end < blank) => {
                Some((end, end + if close == name.close { close.len() } else { 0 }))
            }
            _ => blank.map(|blank| (blank, blank)),
        }
    }
}
