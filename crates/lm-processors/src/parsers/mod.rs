//! The parser cores that families are declared over.

mod body;
mod channel_flow;
mod json_body;
mod json_scan;
mod marker_scan;
mod reply;
mod text_buffer;
mod text_flow;

pub(crate) use reply::ReplyParser;
