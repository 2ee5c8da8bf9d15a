//! Text that tracks the origin of each character.
//!
//! Every string of a template is a [`Text`], and every string operation builds its result with a
//! [`TextWriter`] from segments of texts. Text from a message thus stays content wherever the template puts
//! it.

pub(crate) mod html;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use crate::budget::{Budget, TEXT_BYTES};
use crate::error::BoxedResult as Result;
use crate::origin::Origin;

pub(crate) use writer::TextWriter;

/// Cost of changing a character, relative to reading it.
const CHANGE_COST: usize = 4;
/// Bytes that a mapping of characters writes before they are counted.
const CHANGED_BYTES: usize = 1 << 12;

/// A text with its origins, and a flag for Python's `Markup` (escaped HTML).
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    data: Arc<Data>,
    markup: bool,
}

#[derive(Debug, Default)]
struct Data {
    string: String,
    /// Byte ranges that are content: sorted, neither adjacent nor empty.
    content: Vec<Range<usize>>,
}

impl Text {
    /// Creates text of one origin. Its length is not counted: it is as long as something that exists already.
    pub(crate) fn new(string: impl Into<String>, origin: Origin) -> Self {
        let string = string.into();
        let content = match origin {
            Origin::Content if !string.is_empty() => std::iter::once(0..string.len()).collect(),
            _ => Vec::new(),
        };
        Self { data: Arc::new(Data { string, content }), markup: false }
    }

    /// Creates template text.
    pub(crate) fn template(string: impl Into<String>) -> Self {
        Self::new(string, Origin::Template)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.data.string
    }

    pub(crate) fn len(&self) -> usize {
        self.data.string.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true for markup: text joined with it is escaped.
    pub(crate) fn is_markup(&self) -> bool {
        self.markup
    }

    /// Sets or clears the markup flag.
    pub(crate) fn with_markup(mut self, markup: bool) -> Self {
        self.markup = markup;
        self
    }

    /// Returns true if any part is content.
    pub(crate) fn has_content(&self) -> bool {
        !self.data.content.is_empty()
    }

    /// Pieces of a byte range, each of one origin.
    pub(crate) fn segments_in(&self, range: Range<usize>) -> impl Iterator<Item = (Origin, &str)> {
        let Data { string, content } = &*self.data;
        let mut at = range.start;
        let mut next = content.partition_point(|segment| segment.end <= at);
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let segment = content.get(next).filter(|segment| segment.start < range.end);
            let (origin, end) = match segment {
                Some(segment) if segment.start <= at => {
                    next += 1;
                    (Origin::Content, segment.end.min(range.end))
                }
                Some(segment) => (Origin::Template, segment.start),
                None => (Origin::Template, range.end),
            };
            let start = std::mem::replace(&mut at, end);
            Some((origin, &string[start..end]))
        })
    }

    /// Pieces of the whole text.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (Origin, &str)> {
        self.segments_in(0..self.len())
    }

    /// A byte range of the text; markup stays markup.
    pub(crate) fn slice(&self, range: Range<usize>, budget: &Budget) -> Result<Text> {
        if range == (0..self.len()) {
            return Ok(self.clone());
        }
        if range.is_empty() {
            budget.build(TEXT_BYTES)?;
        }
        let mut writer = TextWriter::new(budget);
        writer.slice(self, range)?;
        Ok(writer.finish().with_markup(self.markup))
    }

    /// Maps each character to the text that `change` writes for it.
    pub(crate) fn map(&self, budget: &Budget, mut change: impl FnMut(char, &mut String)) -> Result<Text> {
        let mut writer = TextWriter::new(budget);
        for (origin, segment) in self.segments() {
            budget.read(segment.len().saturating_mul(CHANGE_COST))?;
            let mut changed = String::new();
            for c in segment.chars() {
                change(c, &mut changed);
                if changed.len() >= CHANGED_BYTES {
                    writer.push(&changed, origin)?;
                    changed.clear();
                }
            }
            writer.push(&changed, origin)?;
        }
        Ok(writer.finish().with_markup(self.markup))
    }

    /// Number of characters.
    pub(crate) fn count(&self) -> usize {
        self.data.string.chars().count()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
