//! Marks and commas that are missing in arguments in braces.
//!
//! Two defects have one reading: an argument that can only be a string lacks its first mark (`a:x,
//! y<mark>,b:1`), and the comma after a marked argument is missing before a declared key
//! (`a:<mark>x<mark>b:1`). A string without its last mark could end anywhere: such a call is malformed.

use std::ops::Range;

use super::{BraceArguments, MAX_LAYOUT_BYTES, Need, State};
use crate::marker_guard::unguarded;
use crate::values::push_json_string;
use crate::values::schema::{Schema, Types};

/// Search for the mark at the end of a string without its first one.
pub(super) enum LostStart {
    /// The value has marks, or none.
    No,
    /// More text is needed to decide.
    Open,
    /// The string has this length.
    Ended(usize),
}

impl BraceArguments {
    /// Searches `value`, the text from the start of an argument without a first mark. The next mark ends it
    /// if a comma or a bracket follows, and it is not the first mark of another string.
    pub(super) fn lost_start(&self, value: &str, schema: Option<Schema<'_>>) -> LostStart {
        let types = self.out.types(schema, &self.argument);
        if self.close.is_empty() || !self.is_argument() || types != Some(Types::STRING) {
            return LostStart::No;
        }
        let end_of_call = value.find(self.close);
        let Some(mark) = value.find(self.mark) else {
            return if end_of_call.is_some() { LostStart::No } else { LostStart::Open };
        };
        let (string, behind) = (&value[..mark], value[mark + self.mark.len()..].trim_start());
        if end_of_call.is_some_and(|end| end < mark) || string.trim_end().ends_with([':', ',', '[', '{']) {
            return LostStart::No;
        }
        match behind.chars().next() {
            None => LostStart::Open,
            Some(',' | '}') => LostStart::Ended(mark),
            Some(_) => LostStart::No,
        }
    }

    /// Reads the string at `range` of `text`, which lacks its first mark.
    pub(super) fn unopened(
        &mut self,
        text: &str,
        range: Range<usize>,
        schema: Option<Schema<'_>>,
    ) -> Result<Need, String> {
        self.at = range.end + self.mark.len();
        let string = &text[range];
        self.write(|out| push_json_string(out, &unguarded(string)));
        self.string_ends(string, schema);
        Ok(Need::AnotherLook)
    }

    /// Returns true if the text read so far ends with a marked argument, and not with the mark that would
    /// begin another one.
    pub(super) fn may_lack_comma(&self, text: &str) -> bool {
        let read = text[..self.at].trim_end().strip_suffix(self.mark);
        !self.close.is_empty()
            && self.is_argument()
            && read.is_some_and(|string| !string.trim_end().ends_with([':', '[', ',']))
    }

    /// Returns true if a declared key and a colon follow. `None` if more text is needed to decide.
    pub(super) fn lacks_comma(&self, rest: &str, schema: Option<Schema<'_>>) -> Option<bool> {
        let Some(colon) = rest.find([':', ',', '{', '}', '<']) else {
            return (rest.len() > MAX_LAYOUT_BYTES).then_some(false);
        };
        let declared = schema.is_some_and(|schema| schema.declares(rest[..colon].trim_end()));
        Some(declared && rest[colon..].starts_with(':') && matches!(self.state, State::After))
    }
}
