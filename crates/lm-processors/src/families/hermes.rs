//! Hermes 2/3, Granite 4, SmolLM3, MiMo and others: calls as JSON in `<tool_call>` tags.
//! Source: the published chat template of NousResearch/Hermes-2-Pro-Llama-3-8B.

use super::Family;
use super::qwen3_coder_xml;
use super::think_tags::THINK;
use crate::dialect::{
    AnswerSyntax, BeforeCalls, CallBody, CallSyntax, Dialect, JsonCall, Tags, UnmarkedCalls,
};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<tool_call>", "<function-name>"]],
    model_names: &["hermes", "granite-4", "smollm3", "mimo"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "hermes",
    channels: &[THINK],
    unmarked: UnmarkedCalls::Read,
    calls_note: "To call a function, write exactly this and nothing else:\n\
                 <tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>\n\
                 If no function fits the request, answer in plain text.",
    answer: AnswerSyntax { before_calls: BeforeCalls::OwnLine, ..AnswerSyntax::PLAIN },
    calls: &[
        CALLS,
        // Qwen's form in markup between these tags.
        qwen3_coder_xml::CALLS,
    ],
    ..Dialect::PLAIN
};

/// `<tool_call>\n{"name": …, "arguments": …}\n</tool_call>`, one per line.
pub(super) const CALLS: CallSyntax = CallSyntax {
    separator: "\n",
    ..CallSyntax::new(Tags::lines("<tool_call>", "</tool_call>"), CallBody::Json(JsonCall::ONE))
};
