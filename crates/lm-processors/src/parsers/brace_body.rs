//! Calls with arguments in braces: `call:f{a:1}`.

use super::argument_text::ArgumentText;
use super::body_reader::{BodyReader, Progress, check_length};
use super::call_sink::CallSink;
use super::fault::Fault;
use super::recovery::{Departure, Tolerance};
use super::tools::{MAX_NAME_BYTES, Tools, is_name};
use crate::declared_names::Declared;
use crate::dialect::BraceCall;
use crate::marker_guard::unguarded;
use crate::values::BraceArguments;

/// Text that ends a call's name.
pub(super) const NAME_END: &str = "{";

/// Texts that end it where defects are repaired: arguments in round brackets, too, as in Python.
const REPAIRED_NAME_ENDS: &[&str] = &[NAME_END, "("];

/// Reader of [`CallBody::Braces`](crate::dialect::CallBody::Braces). A call without braces has no arguments.
#[derive(Debug)]
pub(crate) struct BraceBody {
    syntax: BraceCall,
    close: &'static str,
    /// Alternative starts of the arguments.
    name_ends: &'static [&'static str],
    tools: Tools,
    state: State,
    braces: BraceArguments,
    arguments: ArgumentText,
}

#[derive(Debug)]
enum State {
    /// Before the end of the name.
    Name,
    /// In the arguments of this tool, which start at this byte.
    Arguments { name: String, start: usize },
}

impl BraceBody {
    pub(crate) fn new(syntax: BraceCall, close: &'static str, tools: Tools, tolerance: Tolerance) -> Self {
        let (repaired_before, name_ends) = match tolerance.accepts(Departure::InvalidBraces) {
            true => (close, REPAIRED_NAME_ENDS),
            false => ("", &[NAME_END][..]),
        };
        let braces = BraceArguments::new(syntax.quote, repaired_before);
        let arguments = ArgumentText::default();
        Self { syntax, close, name_ends, tools, state: State::Name, braces, arguments }
    }

    /// Finds the name and its end, once they are certain. The prefix before it may be missing or reduced to
    /// its colon.
    fn find_name(&self, text: &str) -> Result<Option<(String, usize)>, Fault> {
        let prefix = self.syntax.before_name;
        let rest = text.trim_start();
        if text.len() - rest.len() > MAX_NAME_BYTES {
            return Err(Fault::malformed("it has no name"));
        }
        let rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
        if prefix.starts_with(rest) && rest != prefix && text.len() <= MAX_NAME_BYTES {
            return Ok(None);
        }
        let (name, prefixed) = match rest.strip_prefix(prefix) {
            Some(name) => (name, true),
            None => (rest, false),
        };
        let start = text.len() - name.len();
        let ends = [self.name_ends, &[self.close]].concat();
        match self.tools.match_name(name, &ends) {
            Declared::Found(found) => return Ok(Some((found.to_owned(), start + found.len()))),
            Declared::Open => return Ok(None),
            Declared::Absent => {}
        }
        let window = &name[..name.floor_char_boundary(MAX_NAME_BYTES)];
        let ends = ends.iter().filter(|end| !end.is_empty());
        let Some(end) = ends.filter_map(|end| window.find(end)).min() else {
            return match text.len() > MAX_NAME_BYTES {
                true => Err(Fault::malformed("its name has no end")),
                false => Ok(None),
            };
        };
        let found = name[..end].trim();
        if !is_name(found) {
            return Err(Fault::malformed(format!("`{found}` is no name")));
        }
        if !prefixed && !name[end..].starts_with('{') {
            return Err(Fault::malformed(format!("`{prefix}` is missing")));
        }
        Ok(Some((found.to_owned(), start + end)))
    }
}

impl BodyReader for BraceBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        check_length(text)?;
        if matches!(self.state, State::Name) {
            let Some((name, start)) = self.find_name(text)? else { return Ok(Progress::Open) };
            let name = unguarded(&name).into_owned();
            self.state = State::Arguments { name: name.clone(), start };
            calls.begin(Some(&name), None)?;
        }
        let State::Arguments { name, start } = &self.state else { return Ok(Progress::Open) };
        let rest = &text[*start..];
        if !self.name_ends.iter().any(|end| rest.starts_with(end)) {
            std::mem::take(&mut self.arguments).complete(name, "{}", calls)?;
            return Ok(Progress::Complete(*start));
        }
        let ended = self.braces.follow(rest, self.tools.schema(name));
        self.arguments.emit(self.braces.certain(), calls);
        let Some(end) = ended.map_err(Fault::malformed)? else { return Ok(Progress::Open) };
        std::mem::take(&mut self.arguments).complete(name, self.braces.certain(), calls)?;
        Ok(Progress::Complete(start + end))
    }

    fn finish(&mut self, _: &str, _: &mut CallSink<'_>) -> Result<usize, Fault> {
        Err(Fault::unfinished())
    }

    fn position(&self) -> usize {
        if let State::Arguments { start, .. } = self.state { start } else { 0 }
    }
}
