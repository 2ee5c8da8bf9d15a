//! GLM-4.5 and later: the name, then tagged keys and values, all in `<tool_call>` tags. GLM-4.5 and 4.6 write
//! each of these on its own line, 4.7 without line breaks; the parser accepts both. Source: the call format
//! of zai-org/GLM-4.7's published chat template.

use super::Family;
use super::hermes;
use super::think_tags::THINK;
use crate::dialect::{CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["glm4_moe"],
    markers: &[&["<tool_call>", "<arg_key>"]],
    model_names: &["glm-4"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "glm4_xml",
    channels: &[ChannelSyntax { calls_inside: CallsInside::AtStart, ..THINK }],
    calls: &[
        CallSyntax::new(
            Tags::new("<tool_call>", "</tool_call>"),
            CallBody::Parameters(&ParameterCall::ARG_KEY),
        ),
        // JSON between these tags, as other families write.
        hermes::CALLS,
    ],
    ..Dialect::PLAIN
};
