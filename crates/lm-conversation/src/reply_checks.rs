//! Validation of complete calls and answers whose schemas a grammar enforces in part.

use std::collections::{HashMap, HashSet};

use jsonschema::ValidationError;
use lm_processors::{ResponseFormat, SchemaValidator, ToolSpec, UnenforcedKeyword};
use lm_template::{Map, ToolCall, Value};

use crate::error::{Error, Result};

/// Validators of a reply's schemas that its grammar enforces in part.
#[derive(Debug)]
pub(crate) struct ReplyChecks {
    answer: Option<SchemaValidator>,
    tools: HashMap<String, ToolCheck>,
}

/// Validator of a tool's parameters, and the keywords that its grammar does not enforce.
#[derive(Debug)]
struct ToolCheck {
    parameters: SchemaValidator,
    keywords: HashSet<String>,
}

impl ReplyChecks {
    /// Compiles the schemas named in `unenforced`; `None` if it is empty. Remote references are not fetched.
    pub(crate) fn new(
        unenforced: &[UnenforcedKeyword],
        tools: &[ToolSpec],
        format: Option<&ResponseFormat>,
    ) -> Result<Option<Self>> {
        if unenforced.is_empty() {
            return Ok(None);
        }
        let answer = match format {
            Some(ResponseFormat::JsonSchema(schema)) if unenforced.iter().any(|it| it.tool.is_none()) => {
                Some(compile(schema, None, has_format(unenforced, None))?)
            }
            _ => None,
        };
        let mut checks = Self { answer, tools: HashMap::new() };
        for tool in tools {
            let keywords: HashSet<String> = unenforced
                .iter()
                .filter(|it| it.tool.as_deref() == Some(tool.name()))
                .map(|it| it.keyword.clone())
                .collect();
            if !keywords.is_empty() {
                let schema = with_null(tool.parameters());
                let parameters = compile(&schema, Some(tool.name()), keywords.contains("format"))?;
                checks.tools.insert(tool.name().to_owned(), ToolCheck { parameters, keywords });
            }
        }
        Ok(Some(checks))
    }

    /// Returns true if the text of the reply is validated.
    pub(crate) fn checks_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Returns true if calls of this tool are validated.
    pub(crate) fn checks_calls_of(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// Validates the text of an answer.
    pub(crate) fn answer(&self, text: &str) -> Result<()> {
        let Some(validator) = &self.answer else { return Ok(()) };
        let invalid = |path: String, message: String| Error::InvalidAnswer {
            text: text.to_owned(),
            path,
            message: shorten(&message),
        };
        let value = serde_json::from_str(text).map_err(|error| invalid(String::new(), error.to_string()))?;
        match validator.errors(&value).first() {
            None => Ok(()),
            Some(error) => Err(invalid(error.instance_path().to_string(), error.to_string())),
        }
    }

    /// Validates a call of a tool whose grammar does not enforce all of its parameters' schema.
    pub(crate) fn call(&self, call: &ToolCall) -> Result<()> {
        let Some(check) = self.tools.get(&call.name) else { return Ok(()) };
        let arguments = Value::Object(call.arguments.clone());
        let errors = check.parameters.errors(&arguments);
        let Some(error) = errors.first() else { return Ok(()) };
        Err(Error::InvalidCall {
            call: Box::new(call.clone()),
            path: error.instance_path().to_string(),
            keyword: check.keyword(error),
            message: shorten(&error.to_string()),
        })
    }
}

impl ToolCheck {
    /// Keyword of an error: the one that the grammar does not enforce, or else the innermost one.
    fn keyword(&self, error: &ValidationError<'_>) -> String {
        let path = error.schema_path().to_string();
        let unenforced = path.rsplit('/').find(|part| self.keywords.contains(*part));
        unenforced.or(path.rsplit('/').next()).unwrap_or_default().to_owned()
    }
}

/// Returns true if the keyword `format` of the schema of `tool`, or of the answer, is not enforced.
fn has_format(unenforced: &[UnenforcedKeyword], tool: Option<&str>) -> bool {
    unenforced.iter().any(|it| it.tool.as_deref() == tool && it.keyword == "format")
}

/// The schema with OpenAPI's `nullable` as the type `null`, as the grammar reads it.
fn with_null(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(with_null).collect(),
        Value::Object(members) => {
            let mut members: Map<String, Value> =
                members.iter().map(|(key, value)| (key.clone(), with_null(value))).collect();
            if members.get("nullable") == Some(&Value::Bool(true)) {
                if let Some(Value::String(name)) = members.get("type").cloned() {
                    members.insert("type".to_owned(), serde_json::json!([name, "null"]));
                }
                if let Some(Value::Array(values)) = members.get_mut("enum") {
                    values.push(Value::Null);
                }
            }
            Value::Object(members)
        }
        other => other.clone(),
    }
}

fn compile(schema: &Value, tool: Option<&str>, formats: bool) -> Result<SchemaValidator> {
    lm_processors::validator(schema, formats).map_err(|error| Error::UnusableSchema {
        tool: tool.map(str::to_owned),
        message: shorten(&error.to_string()),
    })
}

/// Truncates a message to 200 characters: it may quote a long value.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(200) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unenforced(tool: Option<&str>, keyword: &str) -> UnenforcedKeyword {
        UnenforcedKeyword { tool: tool.map(str::to_owned), path: "#".to_owned(), keyword: keyword.to_owned() }
    }

    #[test]
    fn first_mismatch_of_an_answer_is_named() {
        let format = |schema| Some(ResponseFormat::JsonSchema(schema));
        let schema = format(json!({"properties": {"a": {"items": {"not": {"const": 3}}}}}));
        let checks = ReplyChecks::new(&[unenforced(None, "not")], &[], schema.as_ref());
        let checks = checks.expect("a schema").expect("one is unenforced");
        assert!(checks.answer(r#"{"a": [1, 2]}"#).is_ok());
        for (text, wanted) in [(r#"{"a": [1, 3]}"#, "/a/1"), (r#"{"a": "#, "")] {
            let Err(Error::InvalidAnswer { path, .. }) = checks.answer(text) else { panic!("{text} fits") };
            assert_eq!(path, wanted);
        }
        let no_schema =
            ReplyChecks::new(&[unenforced(None, "not")], &[], format(json!({"type": 7})).as_ref());
        assert!(matches!(no_schema, Err(Error::UnusableSchema { tool: None, .. })));
    }

    #[test]
    fn call_is_checked_for_unenforced_keywords() {
        let parameters = json!({
            "properties": {"a": {"type": "string", "nullable": true, "not": {"const": "no"}}, "b": {}},
            "dependentRequired": {"a": ["b"]},
        });
        let tool =
            |name| ToolSpec::from_json(json!({"name": name, "parameters": parameters})).expect("a tool");
        let named = [unenforced(Some("f"), "not"), unenforced(Some("f"), "dependentRequired")];
        let checks = ReplyChecks::new(&named, &[tool("f"), tool("g")], None).expect("schemas").expect("two");
        let keyword = |name: &str, arguments: Value| {
            let Value::Object(arguments) = arguments else { panic!("an object") };
            match checks.call(&ToolCall::new(name, arguments)) {
                Ok(()) => None,
                Err(Error::InvalidCall { call, path, keyword, .. }) => Some((call.name, path, keyword)),
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(keyword("f", json!({"a": "yes", "b": 1})), None);
        assert_eq!(keyword("f", json!({"a": null, "b": 1})), None, "`nullable` is the grammar's");
        assert_eq!(keyword("g", json!({"a": "no"})), None, "`g` is not unenforced");
        let invalid = |path: &str, keyword: &str| Some(("f".to_owned(), path.to_owned(), keyword.to_owned()));
        assert_eq!(keyword("f", json!({"a": "no", "b": 1})), invalid("/a", "not"));
        assert_eq!(keyword("f", json!({"a": "yes"})), invalid("", "dependentRequired"));
    }

    #[test]
    fn formats_null_and_nesting_follow_the_grammar() {
        let parameters = json!({
            "properties": {"a": {"format": "ipv4"}, "c": {"type": "string", "nullable": true, "enum": ["x"]}},
            "dependentSchemas": {"d": {"required": ["b"]}},
        });
        let tool = ToolSpec::from_json(json!({"name": "f", "parameters": parameters})).expect("a tool");
        let keyword = |named: &str, arguments: Value| {
            let checks = ReplyChecks::new(&[unenforced(Some("f"), named)], std::slice::from_ref(&tool), None);
            let checks = checks.expect("a schema").expect("one is unenforced");
            let Value::Object(arguments) = arguments else { panic!("an object") };
            match checks.call(&ToolCall::new("f", arguments)) {
                Ok(()) => None,
                Err(Error::InvalidCall { keyword, .. }) => Some(keyword),
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(keyword("format", json!({"a": "x"})).as_deref(), Some("format"));
        assert_eq!(keyword("not", json!({"a": "x"})), None, "the format is the grammar's");
        assert_eq!(keyword("format", json!({"c": null})), None);
        assert_eq!(keyword("dependentSchemas", json!({"d": 1})).as_deref(), Some("dependentSchemas"));
        assert_eq!(keyword("not", json!({"d": 1})).as_deref(), Some("required"));
    }
}
