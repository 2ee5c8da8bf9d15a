//! MiniMax-M2: `invoke` elements in a section.
//! Source: the published chat template of MiniMaxAI/MiniMax-M2.

use super::Family;
use super::think_tags::THINK;
use crate::dialect::{
    AnswerSyntax, BeforeCalls, CallBody, CallSyntax, CallsInside, ChannelSyntax, Dialect, ParameterCall,
    Tags, Undeclared,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<minimax:tool_call>", "<invoke name="]],
    model_names: &["minimax-m2"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "minimax_m2",
    channels: &[ChannelSyntax { calls_inside: CallsInside::AtStart, ..THINK }],
    answer: AnswerSyntax { before_calls: BeforeCalls::Layout("\n"), ..AnswerSyntax::PLAIN },
    calls: &[CallSyntax {
        section: Tags::lines("<minimax:tool_call>", "</minimax:tool_call>"),
        separator: "\n",
        undeclared: Undeclared::Malformed,
        ..CallSyntax::new(Tags::new("<invoke", "</invoke>"), CallBody::Parameters(&ParameterCall::INVOKE))
    }],
    ..Dialect::PLAIN
};
