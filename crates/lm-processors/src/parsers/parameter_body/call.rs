//! The call that is read: its name, parameters, and the JSON text of its arguments.

use lm_template::{Map, Value};

use super::state::{Form, Parameter, ValueKind};
use crate::dialect::{Accepted, ValueText};
use crate::json_text::json_text;
use crate::marker_guard::{guarded, unguarded};
use crate::parsers::argument_text::ArgumentText;
use crate::parsers::call_sink::CallSink;
use crate::parsers::elements::element_value;
use crate::parsers::fault::Fault;
use crate::parsers::recovery::Departure;
use crate::parsers::tools::Tools;
use crate::values::{
    Readings, Schema, Types, push_json_chars, push_json_string, python_literal, typed_value,
};

/// Parameters that some models wrap all arguments in, if the tool does not declare them.
const WRAPPERS: [&str; 4] = ["arguments", "parameters", "properties", "args"];

#[derive(Debug)]
pub(super) struct Call {
    form: Form,
    tools: Tools,
    name: String,
    /// True if neither the name nor the calls have a marker, and the name is undeclared: without parameters,
    /// this is text.
    is_doubtful: bool,
    /// Names of the tool's declared parameters.
    declared_keys: Vec<String>,
    /// Keys of the parameters so far.
    keys: Vec<String>,
    /// Declared ones of them, if only declared parameters are accepted.
    given: Vec<String>,
    json: Readings,
    emitted: ArgumentText,
}

impl Call {
    pub(super) fn new(form: Form, tools: Tools) -> Self {
        Self {
            form,
            tools,
            name: String::new(),
            is_doubtful: false,
            declared_keys: Vec::new(),
            keys: Vec::new(),
            given: Vec::new(),
            json: Readings::default(),
            emitted: ArgumentText::default(),
        }
    }

    pub(super) fn tools(&self) -> &Tools {
        &self.tools
    }

    pub(super) fn declared_keys(&self) -> &[String] {
        &self.declared_keys
    }

    /// Returns true before the first parameter.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns true if a JSON object may be in place of the parameters.
    pub(super) fn may_be_json(&self) -> bool {
        self.json.certain().is_empty() && self.form.tolerance.accepts(Departure::JsonArguments)
    }

    /// Returns true if a parameter with this key may follow: it is declared and not given yet. `None` without
    /// a declaration.
    pub(super) fn lacks(&self, key: &str) -> Option<bool> {
        let names = self.schema().map(Schema::property_names).unwrap_or_default();
        let declared = names.iter().any(|name| name == key);
        (!names.is_empty()).then(|| declared && !self.has(key))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|given| given == key)
    }

    /// Begins the call of this tool. The start of a doubtful one is reported with its first parameter.
    pub(super) fn begin(&mut self, name: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        self.name = unguarded(name).into_owned();
        let is_declared = self.tools.is_empty() || self.tools.declares(self.tools.declared_name(&self.name));
        let has_marker = !self.form.syntax.name.open.is_empty() || !self.form.around.section.open.is_empty();
        self.is_doubtful = !has_marker && !is_declared && self.form.tolerance.accepts(Departure::TextForCall);
        if !self.is_doubtful {
            calls.begin(Some(&self.name), None)?;
        }
        self.declared_keys = self.schema().map(Schema::declared_names).unwrap_or_default();
        self.json = Readings::of(self.schema());
        Ok(())
    }

    /// Begins a parameter; returns the interpretation of its value.
    pub(super) fn begin_parameter(
        &mut self,
        key: &str,
        calls: &mut CallSink<'_>,
    ) -> Result<ValueKind, Fault> {
        if self.given.iter().any(|given| *given == unguarded(key)) {
            return Err(Fault::malformed(format!("the argument `{key}` is given twice")));
        }
        if std::mem::take(&mut self.is_doubtful) {
            calls.begin(Some(&self.name), None)?;
        }
        let kind = self.kind(key);
        self.keys.push(unguarded(key).into_owned());
        if !matches!(kind, ValueKind::Ignored | ValueKind::Wrapped) {
            self.member(key);
        }
        Ok(kind)
    }

    /// Interpretation of a parameter's text by the schema.
    fn kind(&self, key: &str) -> ValueKind {
        let schema = self.schema();
        let names = schema.map(Schema::property_names).unwrap_or_default();
        let undeclared = !names.is_empty() && names.iter().all(|name| name != key);
        if undeclared
            && self.keys.is_empty()
            && WRAPPERS.contains(&key)
            && self.form.tolerance.accepts(Departure::WrappedArguments)
        {
            return ValueKind::Wrapped;
        }
        if self.accepts_only_declared() && schema.is_some_and(|schema| !schema.declares(key)) {
            return ValueKind::Ignored;
        }
        let types = self.types(key);
        let may_be_elements = types == Types::ANY || !types.contains(Types::STRING);
        match self.form.syntax.written {
            _ if types == Types::STRING => ValueKind::Text,
            ValueText::Elements if may_be_elements => ValueKind::Elements,
            _ => ValueKind::BySchema,
        }
    }

    /// Returns true if a value cannot be verbatim text.
    pub(super) fn is_json(&self, parameter: &Parameter) -> bool {
        match parameter.kind {
            ValueKind::Json => true,
            ValueKind::BySchema => !self.types(&parameter.key).contains(Types::STRING),
            ValueKind::Text | ValueKind::Elements | ValueKind::Wrapped | ValueKind::Ignored => false,
        }
    }

    /// Appends a part of the JSON text.
    pub(super) fn write(&mut self, json: &str) {
        self.json.write(|out| out.push_str(json));
    }

    /// Appends a part of a string.
    pub(super) fn write_text(&mut self, text: &str) {
        self.json.write(|out| push_json_chars(out, text));
    }

    /// Ends a parameter whose value has this text; text itself was written before.
    pub(super) fn end_value(&mut self, parameter: &Parameter, content: &str) -> Result<(), Fault> {
        let Parameter { key, kind } = parameter;
        let (syntax, plain) = (self.form.syntax, unguarded(content));
        let schema = self.tools.schema(&self.name);
        let json: Option<Value> =
            if *kind == ValueKind::Json { serde_json::from_str(&plain).ok() } else { None };
        match kind {
            ValueKind::Ignored => {}
            ValueKind::Text => {
                self.json.write(|out| out.push('"'));
                self.json.narrow(schema, key, &Value::from(&*plain));
            }
            ValueKind::Wrapped => self.unwrapped(key, &plain),
            ValueKind::BySchema | ValueKind::Json => self.json.value(schema, key, |schema| {
                Ok(json.clone().unwrap_or_else(|| typed_value(&plain, schema, syntax.untyped)))
            })?,
            ValueKind::Elements => {
                self.json.value(schema, key, |schema| element_value(content, syntax, schema))?;
            }
        }
        Ok(())
    }

    /// Unwraps arguments given as one parameter; a value that is not an object is an ordinary parameter.
    fn unwrapped(&mut self, key: &str, content: &str) {
        let text = content.trim();
        match serde_json::from_str(text).ok().or_else(|| python_literal(text)) {
            Some(Value::Object(members)) => self.members(members),
            _ if self.accepts_only_declared() => {}
            _ => {
                let value = typed_value(content, None, self.form.syntax.untyped);
                self.members(Map::from_iter([(unguarded(key).into_owned(), value)]));
            }
        }
    }

    /// Adds the members of an object of arguments.
    pub(super) fn members(&mut self, members: Map<String, Value>) {
        for (key, value) in members {
            let declared = self.schema().is_some_and(|schema| schema.declares(&key));
            if declared || !self.accepts_only_declared() {
                self.member(&guarded(&key));
                self.write(&guarded(&json_text(&value)));
            }
        }
    }

    /// Starts a member of the arguments.
    fn member(&mut self, key: &str) {
        if self.accepts_only_declared() && self.schema().is_some() {
            self.given.push(unguarded(key).into_owned());
        }
        let before = if self.json.certain().is_empty() { "{" } else { ", " };
        self.json.write(|json| {
            json.push_str(before);
            push_json_string(json, key);
            json.push_str(": ");
        });
    }

    /// Ends the arguments.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.is_doubtful {
            return Err(Fault::text_of_undeclared(&self.name));
        }
        if self.accepts_only_declared()
            && let Some(missing) = self.schema().and_then(|schema| schema.missing(&self.given))
        {
            return Err(Fault::malformed(format!("the required argument `{missing}` is missing")));
        }
        self.write(if self.json.certain().is_empty() { "{}" } else { "}" });
        self.json.end(self.tools.schema(&self.name));
        Ok(())
    }

    /// Emits the new part of the arguments.
    pub(super) fn emit(&mut self, calls: &mut CallSink<'_>) {
        self.emitted.emit(self.json.certain(), calls);
    }

    /// Reports the call, whose arguments have ended.
    pub(super) fn complete(&mut self, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        std::mem::take(&mut self.emitted).complete(&self.name, self.json.certain(), calls)
    }

    fn accepts_only_declared(&self) -> bool {
        self.form.syntax.accepted == Accepted::Declared
    }

    fn schema(&self) -> Option<Schema<'_>> {
        self.tools.schema(&self.name)
    }

    /// Types that an argument may have.
    fn types(&self, key: &str) -> Types {
        self.json.types(self.schema(), key).unwrap_or(Types::ANY)
    }
}
