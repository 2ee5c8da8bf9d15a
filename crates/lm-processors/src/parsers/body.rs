//! Readers of call bodies by syntax.

use std::sync::Arc;

use super::body_reader::BodyReader;
use super::brace_body::{self, BraceBody};
use super::json_body::JsonBody;
use super::named_body::{self, NamedBody};
use super::parameter_body::{self, ParameterBody};
use super::python_body::{self, PythonBody};
use crate::dialect::{CallBody, CallSyntax};
use crate::parser::ParserOptions;
use crate::values::SchemaCache;

/// Creates a reader for a block of this syntax. Readers that type values by a schema take it from the tools,
/// to which `schemas` belongs.
pub(crate) fn reader(
    syntax: &'static CallSyntax,
    options: &ParserOptions,
    schemas: &Arc<SchemaCache>,
) -> Box<dyn BodyReader> {
    let (tools, schemas) = (options.tools.clone(), schemas.clone());
    match syntax.body {
        CallBody::Json(json) => Box::new(JsonBody::new(json, syntax, options.recovery)),
        CallBody::Named(named) => Box::new(NamedBody::new(named, syntax, options)),
        CallBody::Parameters(call) => Box::new(ParameterBody::new(call, syntax, options, schemas)),
        CallBody::Python(call) => Box::new(PythonBody::new(call, syntax.call.close, tools, schemas)),
        CallBody::Braces(call) => {
            Box::new(BraceBody::new(call, syntax.call.close, tools, schemas, options.recovery))
        }
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
