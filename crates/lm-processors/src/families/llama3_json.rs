//! Llama 3.1, 3.2 and 3.3: a call is a JSON object anywhere in the reply.

use super::Family;
use super::functionary_v31;
use crate::dialect::{CallBody, CallSyntax, Dialect, JsonCall, PythonCall, Tags, Undeclared};
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&[r#"{"name": function name, "parameters""#]],
    model_names: &["llama-3.1", "llama-3.2", "llama-3.3"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect = Dialect {
    name: "llama3_json",
    calls: &[
        CallSyntax { separator: "; ", ..CallSyntax::new(Tags::NONE, BODY) },
        CallSyntax { separator: "; ", ..CallSyntax::new(Tags::new("<|python_tag|>", ""), BODY) },
        // The form of Llama 3.1 for tools that Meta declared: `brave_search.call(query="…")`.
        CallSyntax {
            undeclared: Undeclared::Text,
            ..CallSyntax::new(Tags::new("<|python_tag|>", ""), CallBody::Python(PythonCall::LINES))
        },
        // The form of Llama 3.1 for tools of the user.
        functionary_v31::CALLS,
        // Several calls as a list, which the models sometimes write.
        CallSyntax::new(Tags::NONE, CallBody::Json(JsonCall { count: JsonCall::LIST.count, ..ONE })),
    ],
    ..Dialect::PLAIN
};

const ONE: JsonCall = JsonCall::ONE_WITH_PARAMETERS;
const BODY: CallBody = CallBody::Json(ONE);
