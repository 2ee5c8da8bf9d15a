//! The processor of every family whose dialect is a table of tags.

use crate::parser::{OutputParser, ParserOptions};
use crate::processor::ModelDataProcessor;
use crate::tagged_output::{TagDialect, TaggedOutput};

/// A family that is told by its name and its tags.
pub(super) struct Tagged {
    pub(super) name: &'static str,
    pub(super) dialect: &'static TagDialect,
}

impl ModelDataProcessor for Tagged {
    fn name(&self) -> &'static str {
        self.name
    }

    fn opens_reasoning(&self, tail: &str) -> bool {
        self.dialect.opens_reasoning(tail)
    }

    fn parser(&self, options: &ParserOptions) -> Box<dyn OutputParser> {
        Box::new(TaggedOutput::new(self.dialect, options))
    }
}
