//! Nemotron Nano v2 and Super 1.5: a JSON list in `<TOOLCALL>` tags.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<TOOLCALL>"]],
    model_names: &["nemotron-nano-v2", "nemotron-nano-9b-v2", "nemotron-super-49b-v1_5"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "nemotron_toolcall",
    channels: &[THINK],
    calls: &[CallSyntax::new(Tags::new("<TOOLCALL>", "</TOOLCALL>"), CallBody::Json(JsonCall::LIST))],
    ..Dialect::PLAIN
};
