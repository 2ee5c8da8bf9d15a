//! Parsers of replies, driven by the dialects of families.

mod argument_text;
mod body;
mod body_reader;
mod brace_body;
mod call_sink;
mod channel_flow;
mod code_fence;
mod elements;
mod fault;
mod json_body;
mod json_mend;
mod json_scan;
mod marker_scan;
mod named_body;
mod parameter_body;
mod python_body;
mod recovery;
mod reply;
mod stripper;
mod tag;
mod text_buffer;
mod text_flow;
mod tools;
mod unmarked_call;

pub(crate) use body::name_ends;
pub(crate) use parameter_body::{CDATA_CLOSE, CDATA_OPEN};
pub(crate) use reply::{MessageParser, ReplyParser, after_channel, open_channel};
pub(crate) use stripper::StrippedParser;
pub(crate) use unmarked_call::UnmarkedCallParser;
