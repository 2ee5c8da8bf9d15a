//! Both engines, set up as transformers sets up Jinja2.

use lm_jinja::{Clock, Map, RenderOptions, Template, Value};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value as MiniValue};
use minijinja::{Environment, Error, ErrorKind};

/// Result of a rendering.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Text(String),
    /// Refused by `raise_exception` with this message.
    Raised(String),
    /// Failed with this message, which is the engine's own.
    Failed(String),
}

impl Outcome {
    /// Returns true if both are the same text, the same refusal, or any two failures.
    pub fn agrees(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::Failed(_), Self::Failed(_)))
    }
}

const NOW: &str = "2025-03-14T15:09:26";

/// Compiles for this engine; returns the function that renders.
pub fn ours(source: &str) -> impl Fn(&Map<String, Value>) -> Outcome + use<> {
    let template = Template::new(source);
    let clock = Clock::Fixed(NOW.parse().expect("a time"));
    move |variables| {
        let options = RenderOptions { clock, ..RenderOptions::default() };
        let rendered = template.as_ref().map_err(Clone::clone);
        match rendered.and_then(|template| template.render(variables, &options)) {
            Ok(rendering) => Outcome::Text(rendering.text().to_owned()),
            Err(lm_jinja::Error::Raised { message }) => Outcome::Raised(message),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}

/// minijinja with Python's methods, and with `tojson`, `strftime_now` and `raise_exception` as transformers
/// has them.
pub struct Minijinja(Environment<'static>);

impl Minijinja {
    pub fn new() -> Self {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.expect("valid delimiters"));
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message).with_source(Raised))
        });
        environment.add_function("strftime_now", |format: String| -> Result<String, Error> {
            let now: lm_jinja::DateTime = NOW.parse().expect("a time");
            let text = jiff::fmt::strtime::format(format, now);
            text.map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
        });
        Self(environment)
    }

    /// Compiles for minijinja; returns the function that renders.
    pub fn compile(&self, source: &str) -> impl Fn(&Map<String, Value>) -> Outcome {
        // The block is an extension of transformers'.
        let source = source.replace("endgeneration", "endif").replace(" generation ", " if true ");
        let mut environment = self.0.clone();
        let compiled = environment.add_template_owned("template", source);
        move |variables| {
            let template = compiled
                .as_ref()
                .map_err(failure)
                .and_then(|()| environment.get_template("template").map_err(|error| failure(&error)));
            match template.map(|template| template.render(Serde(variables))) {
                Ok(Ok(text)) => Outcome::Text(text),
                Ok(Err(error)) => failure(&error),
                Err(outcome) => outcome,
            }
        }
    }
}

/// Marks the error of `raise_exception`.
#[derive(Debug)]
struct Raised;

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("raise_exception")
    }
}

impl std::error::Error for Raised {}

fn failure(error: &Error) -> Outcome {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(found) = cause {
        if found.source().is_some_and(|source| source.is::<Raised>())
            && let Some(error) = found.downcast_ref::<Error>()
        {
            return Outcome::Raised(error.detail().unwrap_or_default().to_owned());
        }
        cause = found.source();
    }
    Outcome::Failed(error.to_string())
}

fn tojson(value: Serde<Value>, options: Kwargs) -> Result<MiniValue, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let _: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut text = String::new();
    write_json(&mut text, &value.0, indent, 0);
    Ok(MiniValue::from(text))
}

/// Python's `json.dumps(value, ensure_ascii=False, indent=indent)`.
fn write_json(out: &mut String, value: &Value, indent: Option<usize>, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent * depth));
        }
    };
    let comma = if indent.is_some() { "," } else { ", " };
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { comma } else { "" });
                line(out, depth + 1);
                write_json(out, item, indent, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Value::Object(entries) if !entries.is_empty() => {
            out.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { comma } else { "" });
                line(out, depth + 1);
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(": ");
                write_json(out, item, indent, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
