//! Apriel 1.5 and 1.6: a JSON list in `<tool_calls>` tags; the prompt starts the reasoning with a sentence.

use super::Family;
use super::hunyuan_a13b;
use crate::dialect::{AnswerSyntax, ChannelSyntax, Dialect, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family =
    Family { model_names: &["apriel"], ..Family::of(&DialectProcessor::new(&DIALECT)) };

const DIALECT: Dialect = Dialect {
    name: "apriel",
    channels: &[ChannelSyntax {
        start_is_text: true,
        ..ChannelSyntax::new(Tags::new("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"))
    }],
    answer: AnswerSyntax {
        dropped: &["\n[END FINAL RESPONSE]", "[END FINAL RESPONSE]"],
        ..AnswerSyntax::PLAIN
    },
    calls: &[hunyuan_a13b::CALLS],
    ..Dialect::PLAIN
};
