//! Mistral 7B v0.3, Nemo and Large: a JSON list with ids after a token.

use super::Family;
use super::mistral_args::{ARGS, THINK};
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, JsonKey, JsonObject, Tags};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    names: &["mistral"],
    markers: &[&["[TOOL_CALLS]"]],
    model_names: &["mistral", "mixtral"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect =
    Dialect { name: "mistral_json", channels: &[THINK], calls: &[LIST, ARGS, BARE], ..Dialect::PLAIN };

/// `[TOOL_CALLS] [{"name": …, "arguments": …, "id": …}]`.
pub(super) const LIST: CallSyntax = CallSyntax::new(
    Tags { after_open: " ", ..Tags::new("[TOOL_CALLS]", "") },
    CallBody::Json(JsonCall {
        object: JsonObject::Keys {
            written: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "arguments"), (JsonKey::Id, "id")],
            aliases: &[],
        },
        ..JsonCall::LIST
    }),
);

/// The same without its token, as written by servers that force a call.
pub(super) const BARE: CallSyntax = CallSyntax { call: Tags::NONE, ..LIST };
