//! `--tools`: the demo tools, or declarations from a file whose results the user enters.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use lm_template::{Map, ToolSpec, Value};
use lm_tools::{CallLimits, ToolError, Toolset};

use crate::interrupt::Interrupt;
use crate::json_file;
use crate::lines::{Line, Lines};
use crate::screen::json_line;
use crate::suggestion::did_you_mean;

/// Argument of `--tools`.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolSource {
    /// The demo tools: get_weather, get_stock_price, a calculator and the current time.
    Demo,
    /// A file with a JSON array of declarations.
    File(PathBuf),
}

impl FromStr for ToolSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "demo" { Self::Demo } else { Self::File(text.into()) })
    }
}

impl ToolSource {
    /// Declarations of the tools.
    pub fn specs(&self) -> Result<Vec<ToolSpec>> {
        match self {
            Self::Demo => Ok(lm_tools::demo().specs()),
            Self::File(path) => read_specs(path),
        }
    }

    /// Creates the callable tools: a tool declared in a file asks the user for its result.
    pub fn toolset(&self, lines: &Arc<Mutex<Lines>>, interrupt: &Interrupt) -> Result<Toolset> {
        let Self::File(path) = self else { return Ok(lm_tools::demo()) };
        // One question at a time, and a line that is being typed is waited for.
        let limits = CallLimits { max_parallel: 1, cancel_grace: None, ..CallLimits::default() };
        let mut tools = Toolset::new().with_limits(limits);
        for spec in read_specs(path)? {
            let (name, lines, interrupt) = (spec.name().to_owned(), Arc::clone(lines), interrupt.clone());
            let ask = move |arguments: Map<String, Value>| ask(&name, &arguments, &lines, &interrupt);
            tools = tools.with_fn(spec, ask).with_context(|| format!("`{}`", path.display()))?;
        }
        Ok(tools)
    }
}

fn read_specs(path: &Path) -> Result<Vec<ToolSpec>> {
    let shown = path.display();
    let json = json_file::read(path).with_context(|| {
        let meant = path.to_str().map(|name| did_you_mean(name, ["demo"].into_iter(), "--tools "));
        format!("the tools file `{shown}` cannot be used{}", meant.unwrap_or_default())
    })?;
    let Value::Array(declarations) = json else {
        bail!("the tools file `{shown}` must hold a JSON array of tool declarations");
    };
    let mut specs: Vec<ToolSpec> = Vec::with_capacity(declarations.len());
    for (number, value) in (1..).zip(declarations) {
        let at = || format!("`{shown}`: declaration {number}");
        check_keys(&value).with_context(at)?;
        let spec = ToolSpec::from_json(value).with_context(at)?;
        if let Some(first) = specs.iter().position(|other| other.name() == spec.name()) {
            bail!("{}: declaration {} has the name `{}`, too", at(), first + 1, spec.name());
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// Refuses a key that is nearly one of a declaration: the mistyped one would be ignored.
fn check_keys(declaration: &Value) -> Result<()> {
    const KEYS: [&str; 7] = ["type", "function", "name", "description", "parameters", "strict", "return"];
    let function = declaration.get("function").unwrap_or(declaration);
    for key in [declaration, function].into_iter().filter_map(Value::as_object).flat_map(Map::keys) {
        let meant = did_you_mean(key, KEYS.into_iter(), "");
        if !KEYS.contains(&key.as_str()) && !meant.is_empty() {
            bail!("the key `{key}` is unknown{meant}");
        }
    }
    Ok(())
}

/// Asks the user for the result of a tool: one line, parsed as JSON if it is valid JSON, otherwise text.
fn ask(
    name: &str,
    arguments: &Map<String, Value>,
    lines: &Mutex<Lines>,
    interrupt: &Interrupt,
) -> Result<Value, ToolError> {
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    let prompt = format!("result of {name}({})> ", json_line(arguments));
    match lines.line(&prompt) {
        Ok(Line::Text(text)) => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
        Ok(Line::Interrupted | Line::Cleared) => {
            interrupt.cancel();
            Err(ToolError::failed("cancelled"))
        }
        Ok(Line::End) => Err(ToolError::failed("no result was given")),
        Err(error) => Err(ToolError::failed(format!("{error:#}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_template::ToolCall;
    use std::io::Cursor;

    const DECLARATION: &str =
        r#"[{"name": "ping", "description": "Asks a host.", "parameters": {"type": "object"}}]"#;

    fn result_for(input: &'static str) -> Value {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tools.json");
        std::fs::write(&path, DECLARATION).expect("the file can be written");
        let lines = Arc::new(Mutex::new(Lines::Piped(Box::new(Cursor::new(input)))));
        let tools = ToolSource::File(path).toolset(&lines, &Interrupt::default()).expect("the file is right");
        tools.call(&ToolCall::new("ping", Map::new())).to_json()["content"].clone()
    }

    #[test]
    fn user_line_is_the_result() {
        assert_eq!(result_for("it is up\n"), "it is up");
        assert_eq!(result_for("{\"up\": true}\n")["up"], true);
        assert!(result_for("").to_string().contains("no result was given"));
    }

    #[test]
    fn invalid_tools_file_error_names_file_and_place() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tools.json");
        for (text, expected) in [
            ("{", "is not JSON"),
            ("{}", "must hold a JSON array"),
            (r#"[{"description": "d"}]"#, "declaration 1"),
            (
                r#"[{"name": "a"}, {"name": "b"}, {"name": "a"}]"#,
                "declaration 3: declaration 1 has the name `a`, too",
            ),
        ] {
            std::fs::write(&path, text).expect("the file can be written");
            let error = ToolSource::File(path.clone()).specs().expect_err("is refused");
            let message = format!("{error:#}");
            assert!(message.contains(expected) && message.contains("tools.json"), "{message}");
        }
        std::fs::write(&path, format!("\u{feff}{DECLARATION}")).expect("the file can be written");
        assert_eq!(ToolSource::File(path).specs().expect("a byte order mark is skipped").len(), 1);
        let error = ToolSource::File("absent.json".into()).specs().expect_err("is refused");
        assert!(format!("{error:#}").contains("absent.json"));
    }
}
