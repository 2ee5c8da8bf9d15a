//! The parser cores that families are declared over.

mod json_call;
mod marked_json;
mod marker_scan;
mod plain_text;
mod reasoning_flow;
mod tagged_output;
mod text_flow;

pub(crate) use plain_text::PlainText;
pub(crate) use tagged_output::{TagDialect, TaggedOutput, Tags};
pub(crate) use text_flow::LineBreakBeforeCall;
