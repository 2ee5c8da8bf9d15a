//! Rules for calls, from a family's syntax and the tools' parameters.

mod arguments;
mod held_markers;
mod json;
mod markup;
mod names;
mod parameters;
mod texts;
mod verbatim;

use std::collections::BTreeSet;

use lm_template::{ToolSpec, Value};
use serde_json::json;

use super::lark::{Lark, literal, sequence};
use super::values::{Spelling, Values};
use crate::dialect::{
    BraceCall, CallBody, CallSyntax, Count, JsonCall, NamedCall, NamedId, PythonCall, PythonList, Tags,
};
use crate::grammar_request::Calls;
use crate::layout::Layout;
use crate::schema::SchemaError;
use crate::schema::{Normalized, Reading, UnenforcedKeyword, normalized};
use json::json_object;
use markup::Markup;
pub(super) use names::NameCheck;
pub(crate) use names::NewParser;
use parameters::parameters;

/// A tool with its normalized parameters, of type `object`.
struct Tool<'a> {
    name: &'a str,
    parameters: Normalized<'a>,
}

/// Writer of the calls of some tools in one syntax.
pub(super) struct CallWriter<'a> {
    /// Name of the processor.
    processor: &'static str,
    lark: &'a mut Lark,
    syntax: &'a CallSyntax,
    layout: Layout,
    /// Markers of messages, which end a call in any position.
    excluded: &'a [&'static str],
    tools: Vec<Tool<'a>>,
    unenforced: BTreeSet<UnenforcedKeyword>,
}

/// Start marker of calls, and an expression for the text after it.
pub(super) struct CallRules {
    /// Empty if the calls have no marker.
    pub(super) opener: &'static str,
    /// Expression for the calls after the marker.
    pub(super) rest: String,
    /// Keywords that the rules do not enforce.
    pub(super) unenforced: BTreeSet<UnenforcedKeyword>,
}

/// Builds the rules of calls of `tools` in `syntax`; strings in them exclude `excluded`.
pub(super) fn calls(
    processor: &'static str,
    lark: &mut Lark,
    syntax: &CallSyntax,
    tools: &[&ToolSpec],
    number: Calls,
    layout: Layout,
    excluded: &[&'static str],
) -> Result<CallRules, SchemaError> {
    let documents: Vec<Value> = tools.iter().map(|tool| parameters_of(tool)).collect();
    let read = tools.iter().zip(&documents).map(|(tool, document)| {
        let parameters = normalized(document, Reading::ToolParameters);
        Ok(Tool { name: tool.name(), parameters: parameters.map_err(|error| error.of_tool(tool.name()))? })
    });
    let tools = read.collect::<Result<_, SchemaError>>()?;
    let mut writer =
        CallWriter { processor, lark, syntax, layout, excluded, tools, unenforced: BTreeSet::new() };
    let rest = writer.rest(number)?;
    Ok(CallRules { opener: opener(syntax), rest, unenforced: writer.unenforced })
}

/// Start marker of calls in `syntax`; empty if they have none.
pub(super) fn opener(syntax: &CallSyntax) -> &'static str {
    if syntax.section.open.is_empty() { syntax.call.open } else { syntax.section.open }
}

/// A tool's parameters as an object schema. Tools without parameters declare none, null or an empty object.
fn parameters_of(tool: &ToolSpec) -> Value {
    match tool.parameters() {
        Value::Object(schema) if !schema.is_empty() => {
            let mut schema = schema.clone();
            let combines = ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| schema.contains_key(*key));
            if !combines && !schema.contains_key("type") {
                schema.insert("type".to_owned(), "object".into());
            }
            Value::Object(schema)
        }
        Value::Null | Value::Object(_) => json!({"type": "object", "properties": {}}),
        other => other.clone(),
    }
}

impl CallWriter<'_> {
    /// Builds the calls after their start marker.
    fn rest(&mut self, number: Calls) -> Result<String, SchemaError> {
        let CallSyntax { section, call, separator, .. } = *self.syntax;
        let body = self.body(number)?;
        let inner = sequence([&*self.space(call.after_open), &body, &self.close()]);
        let inner = self.lark.rule(inner);
        let again = sequence([&*self.separator(separator), &self.lark.marker(call.open), &inner]);
        let more = if self.repeats(number) { format!("({again})*") } else { String::new() };
        if section.open.is_empty() {
            // After the layout before a further call the reply may still end: the model decides on its opener
            // alone, not on a line break.
            let layout = self.repeats(number) && !separator.is_empty() && separator.trim().is_empty();
            let last = if layout { format!("({})?", self.separator(separator)) } else { String::new() };
            let more = sequence([&*more, &last]);
            return Ok(self.lark.rule(sequence([&*inner, &more])));
        }
        let rest = sequence([
            &*self.space(section.after_open),
            &self.lark.marker(call.open),
            &inner,
            &more,
            &self.space(section.before_close),
            &self.lark.marker(section.close),
        ]);
        Ok(self.lark.rule(rest))
    }

    /// Builds the layout and the marker at the end of a call.
    fn close(&mut self) -> String {
        let Tags { before_close, close, .. } = self.syntax.call;
        if let CallBody::Parameters(call) = self.syntax.body
            && call.end.is_empty()
        {
            let markup = Markup { call, around: self.syntax };
            return markup.next(self.lark, self.layout, &format!("{}{before_close}", markup.lead()), close);
        }
        sequence([&*self.space(before_close), &self.lark.marker(close)])
    }

    /// Returns true if each of several calls is its own block; a list is one block.
    fn repeats(&self, number: Calls) -> bool {
        let list = matches!(
            self.syntax.body,
            CallBody::Json(JsonCall { count: Count::List { .. }, .. })
                | CallBody::Python(PythonCall { list: PythonList::Brackets, .. })
        );
        number == Calls::Several && !list
    }

    fn body(&mut self, number: Calls) -> Result<String, SchemaError> {
        let several = number == Calls::Several;
        Ok(match self.syntax.body {
            CallBody::Json(json) => self.json(&json, several)?,
            CallBody::Named(named) => self.named(&named)?,
            CallBody::Python(python) => self.python(&python, several)?,
            CallBody::Braces(braces) => self.braces(&braces)?,
            CallBody::Parameters(call) => {
                let mut options = Vec::new();
                for at in 0..self.tools.len() {
                    let tool = &self.tools[at].parameters.schema;
                    let values = Values::new(self.lark, Spelling::JSON, self.layout, tool);
                    let mut values = values.never_with(self.excluded);
                    let markup = Markup { call, around: self.syntax };
                    let option = parameters(&mut values, markup, self.tools[at].name, tool);
                    let (found, listed) = (std::mem::take(&mut values.unenforced), values.unwritable.take());
                    self.keep(found, at);
                    options.push(option.ok_or_else(|| self.impossible(at, listed))?);
                }
                self.lark.rule(options.join(" | "))
            }
        })
    }

    /// Builds one alternative per tool: `write` combines its name and an expression for its arguments.
    fn for_each_tool(
        &mut self,
        spelling: Spelling,
        arguments: impl Fn(&mut Values<'_>, &Value) -> Option<String>,
        write: impl Fn(&mut Lark, &str, &str) -> String,
    ) -> Result<String, SchemaError> {
        let mut options = Vec::new();
        for at in 0..self.tools.len() {
            let parameters = &self.tools[at].parameters.schema;
            let values = Values::new(self.lark, spelling, self.layout, parameters);
            let mut values = values.never_with(self.excluded);
            let expression = arguments(&mut values, parameters);
            let (found, listed) = (std::mem::take(&mut values.unenforced), values.unwritable.take());
            self.keep(found, at);
            let expression = expression.ok_or_else(|| self.impossible(at, listed))?;
            options.push(write(self.lark, self.tools[at].name, &expression));
        }
        Ok(self.lark.rule(options.join(" | ")))
    }

    fn keep(&mut self, found: BTreeSet<UnenforcedKeyword>, at: usize) {
        let Tool { name, parameters } = &self.tools[at];
        let all = parameters.unenforced.iter().cloned().chain(parameters.in_document(found));
        self.unenforced
            .extend(all.map(|found| UnenforcedKeyword { tool: Some((*name).to_owned()), ..found }));
    }

    /// Fault of a tool without calls; `listed` is the location of a value that the syntax cannot write, and
    /// the value if it is listed.
    fn impossible(&self, at: usize, listed: Option<(String, Option<Value>)>) -> SchemaError {
        let Tool { name, parameters } = &self.tools[at];
        let mut lark = Lark::default();
        let mut values = Values::new(&mut lark, Spelling::JSON, self.layout, &parameters.schema);
        let fault = match values.object_value(&parameters.schema) {
            None if values.objects(&parameters.schema).is_empty() => {
                SchemaError::unsatisfiable("#", "", ": the arguments of a call are an object")
            }
            Some(_) => {
                let listed = listed.map(|(path, value)| (parameters.place(&path), value));
                SchemaError::unwritable(listed.as_ref(), self.processor)
            }
            None => Values::fault(parameters, self.layout),
        };
        fault.of_tool(name)
    }

    fn json(&mut self, call: &JsonCall, several: bool) -> Result<String, SchemaError> {
        let spelling = Spelling { colon: call.colon, comma: call.comma, ..Spelling::JSON };
        let layout = self.layout;
        let object = self.for_each_tool(
            spelling,
            |values, parameters| values.object_value(parameters),
            |lark, name, arguments| json_object(lark, &call.object, &spelling, layout, name, arguments),
        )?;
        let Count::List { after_open, comma, before_close } = call.count else { return Ok(object) };
        let mark = |text: &str| spelling.mark(text, layout);
        let more = if several { format!("({} {object})*", mark(comma)) } else { String::new() };
        let (open, close) = (mark(&format!("[{after_open}")), mark(&format!("{before_close}]")));
        Ok(self.lark.rule(sequence([&*open, &object, &more, &close])))
    }

    fn named(&mut self, call: &NamedCall) -> Result<String, SchemaError> {
        let layout = self.layout;
        let space = |lark: &mut Lark, text: &str| text_or_marker(lark, text, layout);
        self.for_each_tool(
            Spelling::JSON,
            |values, parameters| values.object_value(parameters),
            |lark, name, arguments| {
                let id = match (call.id, layout) {
                    (NamedId::NameAndIndex, _) => "/[0-9]{1,4}/".to_owned(),
                    (NamedId::After(marker), Layout::Any) => {
                        let marker = lark.marker(marker);
                        format!("({marker} /[A-Za-z0-9_-]{{1,64}}/)?")
                    }
                    _ => String::new(),
                };
                let (before, after) = (space(lark, call.before_name), space(lark, call.after_name));
                let end = space(lark, call.after_arguments);
                // A single string: of two names with a common prefix, the shorter one ends with its colon.
                let colon = if call.id == NamedId::NameAndIndex { ":" } else { "" };
                let name = literal(&format!("{name}{colon}"));
                sequence([&*before, &name, &id, &after, arguments, &end])
            },
        )
    }

    fn python(&mut self, call: &PythonCall, several: bool) -> Result<String, SchemaError> {
        let (spelling, layout) = (Spelling::python(call.quote), self.layout);
        let call_of = self.for_each_tool(
            spelling,
            |values, parameters| values.arguments(parameters, "=", ", "),
            |_, name, arguments| {
                format!("{} {arguments} {}", literal(&format!("{name}(")), spelling.mark(")", layout))
            },
        )?;
        match call.list {
            PythonList::Brackets => {
                let mark = |text: &str| spelling.mark(text, layout);
                let more = if several { format!("({} {call_of})*", mark(", ")) } else { String::new() };
                Ok(self.lark.rule(sequence([&*mark("["), &call_of, &more, &mark("]")])))
            }
            PythonList::Lines => {
                let line = space(self.lark, "\n", layout);
                let more = if several { format!("({line} {call_of})*") } else { String::new() };
                Ok(self.lark.rule(sequence([&*call_of, &more])))
            }
        }
    }

    fn braces(&mut self, call: &BraceCall) -> Result<String, SchemaError> {
        let (spelling, layout) = (Spelling::braces(call.quote), self.layout);
        self.for_each_tool(
            spelling,
            |values, parameters| values.arguments(parameters, ":", ","),
            |lark, name, arguments| {
                let before = lark.marker(call.before_name);
                let open = spelling.mark("{", layout);
                format!("{before} {} {open} {arguments} {}", literal(name), spelling.mark("}", layout))
            },
        )
    }

    fn space(&mut self, layout: &str) -> String {
        space(self.lark, layout, self.layout)
    }

    /// Separator of two calls: layout, or a required text.
    fn separator(&mut self, separator: &str) -> String {
        if separator.trim().is_empty() {
            return self.space(separator);
        }
        match self.layout {
            Layout::Exact => self.lark.marker(separator),
            Layout::Any => {
                let space = self.space("");
                sequence([&*space, &self.lark.marker(separator.trim()), &space])
            }
        }
    }
}

/// Whitespace of the family's layout: as the family writes it, or any.
pub(super) fn space(lark: &mut Lark, text: &str, layout: Layout) -> String {
    match layout {
        Layout::Exact => literal(text),
        Layout::Any => lark.terminal("/[ \\t\\r\\n]*/"),
    }
}

/// A text that the family writes around a name or arguments: markers, words and line breaks.
pub(super) fn text_or_marker(lark: &mut Lark, text: &str, layout: Layout) -> String {
    let inner = text.trim_matches('\n');
    if inner.is_empty() {
        return if text.is_empty() { String::new() } else { space(lark, text, layout) };
    }
    let start = text.len() - text.trim_start_matches('\n').len();
    let (before, after) = (&text[..start], &text[start + inner.len()..]);
    sequence([&*space(lark, before, layout), &lark.marker(inner), &space(lark, after, layout)])
}
