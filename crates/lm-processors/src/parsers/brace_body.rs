//! Calls with arguments in braces: `call:f{a:1}`.

use std::sync::Arc;

use lm_template::ToolSpec;

use super::argument_text::{ArgumentText, is_name, names, schema};
use super::body_reader::{BodyReader, MAX_BLOCK_BYTES, Progress};
use super::call_sink::CallSink;
use super::fault::Fault;
use crate::declared_names::{Declared, declared};
use crate::dialect::BraceCall;
use crate::marker_guard::unguarded;
use crate::parser::Recovery;
use crate::values::{BraceArguments, SchemaCache};

/// Maximum length of a name; longer text is not a call.
const MAX_NAME_BYTES: usize = 1 << 10;

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
    tools: Arc<[ToolSpec]>,
    schemas: Arc<SchemaCache>,
    name: Option<String>,
    /// Start of the arguments, once the name is known.
    start: usize,
    braces: BraceArguments,
    arguments: ArgumentText,
}

impl BraceBody {
    pub(crate) fn new(
        syntax: BraceCall,
        close: &'static str,
        tools: Arc<[ToolSpec]>,
        schemas: Arc<SchemaCache>,
        recovery: Recovery,
    ) -> Self {
        let (repaired_before, name_ends) =
            if recovery == Recovery::On { (close, REPAIRED_NAME_ENDS) } else { ("", &[NAME_END][..]) };
        let (braces, arguments) =
            (BraceArguments::new(syntax.quote, repaired_before), ArgumentText::default());
        Self { syntax, close, name_ends, tools, schemas, name: None, start: 0, braces, arguments }
    }

    /// Reads the name, once it is certain. The prefix before it may be missing or reduced to its colon.
    fn find_name(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<bool, Fault> {
        let prefix = self.syntax.before_name;
        let rest = text.trim_start();
        if text.len() - rest.len() > MAX_NAME_BYTES {
            return Err(Fault::malformed("it has no name"));
        }
        let rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
        if prefix.starts_with(rest) && rest != prefix && text.len() <= MAX_NAME_BYTES {
            return Ok(false);
        }
        let (name, prefixed) = match rest.strip_prefix(prefix) {
            Some(name) => (name, true),
            None => (rest, false),
        };
        let tools = self.tools.clone();
        let ends = [self.name_ends, &[self.close]].concat();
        match declared(name, names(&tools), &ends) {
            Declared::Found(found) => return self.begin(found, text.len() - name.len() + found.len(), calls),
            Declared::Open => return Ok(false),
            Declared::Absent => {}
        }
        let window = &name[..name.floor_char_boundary(MAX_NAME_BYTES)];
        let close = if self.close.is_empty() { None } else { window.find(self.close) };
        let found = self.name_ends.iter().filter_map(|end| window.find(end));
        let Some(end) = found.chain(close).min() else {
            return if text.len() > MAX_NAME_BYTES {
                Err(Fault::malformed("its name has no end"))
            } else {
                Ok(false)
            };
        };
        let found = name[..end].trim();
        if !is_name(found) {
            return Err(Fault::malformed(format!("`{found}` is no name")));
        }
        if !prefixed && !name[end..].starts_with('{') {
            return Err(Fault::malformed(format!("`{prefix}` is missing")));
        }
        self.begin(found, text.len() - name.len() + end, calls)
    }

    /// Begins a call of `name`, whose arguments start at `start`.
    fn begin(&mut self, name: &str, start: usize, calls: &mut CallSink<'_>) -> Result<bool, Fault> {
        self.start = start;
        let name = unguarded(name).into_owned();
        calls.begin(Some(&name), None)?;
        self.name = Some(name);
        Ok(true)
    }
}

impl BodyReader for BraceBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        if text.len() > MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        if self.name.is_none() && !self.find_name(text, calls)? {
            return Ok(Progress::Open);
        }
        let Some(name) = &self.name else { return Ok(Progress::Open) };
        let rest = &text[self.start..];
        if !self.name_ends.iter().any(|end| rest.starts_with(end)) {
            std::mem::take(&mut self.arguments).complete(name, "{}", calls)?;
            return Ok(Progress::Complete(self.start));
        }
        let ended = self.braces.follow(rest, schema(&self.tools, &self.schemas, name));
        self.arguments.emit(self.braces.certain(), calls);
        let Some(end) = ended.map_err(Fault::malformed)? else { return Ok(Progress::Open) };
        std::mem::take(&mut self.arguments).complete(name, self.braces.certain(), calls)?;
        Ok(Progress::Complete(self.start + end))
    }

    fn finish(&mut self, _: &str, _: &mut CallSink<'_>) -> Result<usize, Fault> {
        Err(Fault::unfinished())
    }

    fn position(&self) -> usize {
        self.start
    }
}
