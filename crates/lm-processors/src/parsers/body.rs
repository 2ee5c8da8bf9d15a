//! Readers of call bodies by syntax.

use super::body_reader::BodyReader;
use super::brace_body::{self, BraceBody};
use super::json_body::JsonBody;
use super::named_body::{self, NamedBody};
use super::parameter_body::{self, ParameterBody};
use super::python_body::{self, PythonBody};
use super::recovery::Tolerance;
use super::tools::Tools;
use crate::dialect::{CallBody, CallSyntax};

/// Creates a reader for a block of this syntax, which accepts these departures from it.
pub(crate) fn reader(
    syntax: &'static CallSyntax,
    tools: &Tools,
    tolerance: Tolerance,
) -> Box<dyn BodyReader> {
    let (tools, close) = (tools.clone(), syntax.call.close);
    match syntax.body {
        CallBody::Json(json) => Box::new(JsonBody::new(json, syntax, tolerance)),
        CallBody::Named(named) => Box::new(NamedBody::new(named, close, tools, tolerance)),
        CallBody::Parameters(call) => Box::new(ParameterBody::new(call, syntax, tools, tolerance)),
        CallBody::Python(call) => Box::new(PythonBody::new(call, close, tools)),
        CallBody::Braces(call) => Box::new(BraceBody::new(call, close, tools, tolerance)),
    }
}

/// Texts that end a call's name; empty if the name is quoted.
pub(crate) fn name_ends(syntax: &CallSyntax) -> Vec<&'static str> {
    match syntax.body {
        CallBody::Json(_) => vec![],
        CallBody::Named(named) => named_body::name_ends(&named),
        CallBody::Parameters(call) => parameter_body::name_ends(call, syntax.call.close),
        CallBody::Python(_) => python_body::NAME_ENDS.to_vec(),
        CallBody::Braces(_) => vec![brace_body::NAME_END],
    }
}
