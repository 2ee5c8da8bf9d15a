//! Text of a value: its start, and the part of it that is certain.

use super::state::{Form, Parameter};
use super::{CDATA_CLOSE, CDATA_OPEN};
use crate::dialect::{ParameterCall, ValueText};
use crate::parsers::json_scan::{JsonScan, JsonStep};
use crate::parsers::recovery::Departure;
use crate::parsers::tools::MAX_NAME_BYTES;
use crate::values::partial;

/// A line's end that models write in place of a line feed.
const CRLF: &str = "\r\n";

/// Layout and marker at the start of a value.
pub(super) struct Frame {
    pub(super) len: usize,
    /// True if the value is protected (CDATA).
    pub(super) protected: bool,
    /// Layout before the closing marker that is not part of the value.
    layout: &'static str,
}

/// Reads the start of a value; `None` if more text is needed to decide.
pub(super) fn frame(rest: &str, form: Form) -> Option<Frame> {
    let ParameterCall { value, written, .. } = *form.syntax;
    let is_line = value.after_open == "\n" && form.tolerance.accepts(Departure::CarriageReturns);
    let line_break = if is_line { CRLF } else { value.after_open };
    let framed = rest.strip_prefix(value.after_open).or_else(|| rest.strip_prefix(line_break));
    let content = framed.unwrap_or(rest);
    if framed.is_none() && (value.after_open.starts_with(rest) || line_break.starts_with(rest)) {
        return None;
    }
    if written == ValueText::VerbatimOrCdata {
        let inside = content.trim_start();
        if let Some(protected) = inside.strip_prefix(CDATA_OPEN) {
            return Some(Frame { len: rest.len() - protected.len(), protected: true, layout: "" });
        }
        if content.len() - inside.len() <= MAX_NAME_BYTES && CDATA_OPEN.starts_with(inside) {
            return None;
        }
    }
    let layout = if framed.is_some() { value.before_close } else { "" };
    Some(Frame { len: rest.len() - content.len(), protected: false, layout })
}

/// The value being read.
#[derive(Debug)]
pub(super) struct ValueReader {
    pub(super) parameter: Parameter,
    pub(super) start: usize,
    pub(super) close: String,
    /// Layout before `close` that is not part of the value.
    layout: &'static str,
    pub(super) protected: bool,
    /// Number of open elements.
    pub(super) depth: usize,
    /// End of the range searched for the value's end.
    pub(super) searched: usize,
    /// End of the value if its closing marker is missing: before a marker that ends the call.
    pub(super) held: Option<usize>,
    /// The first closing marker, with its length, that no other marker follows.
    pub(super) closed: Option<(usize, usize)>,
    /// True if the value may be verbatim text.
    pub(super) is_text: bool,
    /// Nesting and strings of a value that can only be JSON, inside which no marker ends it.
    json: Option<JsonScan>,
}

impl ValueReader {
    pub(super) fn new(parameter: Parameter, start: usize, frame: Frame, is_json: bool, form: Form) -> Self {
        let ParameterCall { value, key, written, .. } = *form.syntax;
        let close = match (frame.protected, written) {
            (true, _) => CDATA_CLOSE.to_owned(),
            (_, ValueText::Elements) => format!("{}{}{}", value.close, parameter.key, key.close),
            _ => value.close.to_owned(),
        };
        Self {
            parameter,
            start,
            close,
            layout: frame.layout,
            protected: frame.protected,
            depth: 0,
            searched: start,
            held: None,
            closed: None,
            is_text: !is_json,
            json: is_json.then(JsonScan::default),
        }
    }

    /// Skips a JSON list or object, whose strings may contain the closing marker; returns false if more text
    /// is needed. Text that is not JSON is searched from its start.
    pub(super) fn skip_json(&mut self, text: &str) -> bool {
        let Some(scan) = &mut self.json else { return true };
        for &byte in &text.as_bytes()[self.searched..] {
            let step = scan.step(byte);
            let invalid = matches!(step, JsonStep::Invalid(_));
            self.searched = if invalid { self.start } else { self.searched + 1 };
            if invalid || step == JsonStep::Close && scan.depth() == 0 {
                self.json = None;
                return true;
            }
        }
        false
    }

    /// Reads JSON whose end is missing as other text, from its start; returns false if the value is not JSON.
    pub(super) fn forget_json(&mut self) -> bool {
        let is_json = self.json.take().is_some();
        if is_json {
            self.searched = self.start;
        }
        is_json
    }

    /// The text from `from` on that belongs to the value with any continuation.
    pub(super) fn certain<'t>(&self, text: &'t str, from: usize, form: Form) -> &'t str {
        let open = [self.held, self.closed.map(|(start, _)| start)].into_iter().flatten().min();
        let read = &text[from..open.unwrap_or(self.searched)];
        let may_lack_marker = form.tolerance.accepts(Departure::ParameterMarkers);
        let layout = if self.layout.is_empty() && may_lack_marker { "\n" } else { self.layout };
        let certain = &read[..read.len() - partial(read, &format!("{layout}\0"))];
        self.without_return(certain, layout, form)
    }

    /// The value, which ends at `end` with a marker of the length `taken`, 0 if that is missing.
    pub(super) fn content<'t>(&self, text: &'t str, end: usize, taken: usize, form: Form) -> &'t str {
        let layout = if taken == 0 && self.layout.is_empty() { "\n" } else { self.layout };
        let content = &text[self.start..end];
        match content.strip_suffix(layout) {
            Some(content) => self.without_return(content, layout, form),
            None => content,
        }
    }

    /// Removes the carriage return at the end of a text before `layout` and the closing marker, if these are
    /// a line's end.
    fn without_return<'t>(&self, text: &'t str, layout: &str, form: Form) -> &'t str {
        let ends_line = layout == "\n" || layout.is_empty() && self.close == "\n";
        match text.strip_suffix('\r') {
            Some(line) if ends_line && form.tolerance.accepts(Departure::CarriageReturns) => line,
            _ => text,
        }
    }
}
