//! Functions available to chat templates.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::{Interpreter, Object};
use crate::origin::Origin;
use crate::python_text;
use crate::strftime::strftime;
use crate::text::Text;
use crate::values::{Args, Dict, Function, Range, Value, required};

/// Maximum number of items of a range: the limit of Jinja2's sandbox.
const MAX_RANGE: usize = 100_000;

/// Maximum bytes of a `strftime_now` format: one of its fields may be some hundred characters wide.
const MAX_TIME_FORMAT: usize = 1 << 12;

/// Calls a function.
pub(crate) fn call(function: Function, interpreter: &mut Interpreter<'_>, args: Args) -> Result<Value> {
    match function {
        Function::Cycler => cycler(interpreter, args),
        Function::Dict => Ok(Value::Dict(dict(interpreter, args)?.into())),
        Function::DictFromKeys => from_keys(interpreter, args),
        Function::Joiner => joiner(interpreter, args),
        Function::Namespace => namespace(interpreter, args),
        Function::RaiseException => raise_exception(interpreter, args),
        Function::Range => range(args),
        Function::SelfReference => Err(Error::runtime("'TemplateReference' object is not callable")),
        Function::StrftimeNow => strftime_now(interpreter, args),
    }
}

fn cycler(interpreter: &mut Interpreter<'_>, args: Args) -> Result<Value> {
    if args.positional.is_empty() || !args.named.is_empty() {
        return Err(Error::runtime("at least one item has to be provided"));
    }
    interpreter.add_object(Object::Cycler { items: args.positional, at: 0 }).map(Value::Object)
}

fn joiner(interpreter: &mut Interpreter<'_>, args: Args) -> Result<Value> {
    let [separator] = args.bind(["sep"])?;
    let separator = match separator {
        Some(separator) => python_text::str(interpreter, &separator)?,
        None => Text::template(", "),
    };
    interpreter.add_object(Object::Joiner { separator, used: false }).map(Value::Object)
}

fn namespace(interpreter: &mut Interpreter<'_>, args: Args) -> Result<Value> {
    let attributes = dict(interpreter, args)?;
    let hidden = |key: &Value| matches!(key, Value::Text(name) if name.as_str().starts_with('_'));
    if attributes.entries().iter().any(|(key, _)| hidden(key)) {
        return Err(Error::runtime("attributes of a namespace do not begin with an underscore"));
    }
    interpreter.add_object(Object::Namespace(attributes)).map(Value::Object)
}

/// Python's `dict(mapping or pairs, **named)`.
fn dict(interpreter: &mut Interpreter<'_>, args: Args) -> Result<Dict> {
    let budget = interpreter.budget;
    let mut dict = Dict::default();
    if args.positional.len() > 1 {
        return Err(Error::runtime("dict expected at most 1 argument"));
    }
    match args.positional.first() {
        Some(Value::Dict(other)) => {
            for (key, value) in other.entries() {
                dict.insert(key.clone(), value.clone(), budget)?;
            }
        }
        Some(Value::Undefined(undefined)) => return Err(undefined.error()),
        Some(pairs) => {
            for pair in interpreter.collect(pairs)? {
                let Ok([key, value]) = <[Value; 2]>::try_from(interpreter.collect(&pair)?) else {
                    return Err(Error::runtime("dict expects pairs"));
                };
                dict.insert(key, value, budget)?;
            }
        }
        None => {}
    }
    for (name, value) in args.named {
        dict.insert(Value::Text(name), value, budget)?;
    }
    Ok(dict)
}

fn from_keys(interpreter: &mut Interpreter<'_>, args: Args) -> Result<Value> {
    let [keys, value] = args.bind_positional()?;
    let value = value.unwrap_or(Value::None);
    let mut dict = Dict::default();
    for key in interpreter.collect(&required(keys, "iterable")?)? {
        dict.insert(key, value.clone(), interpreter.budget)?;
    }
    Ok(Value::Dict(dict.into()))
}

fn raise_exception(interpreter: &mut Interpreter<'_>, args: Args) -> Result<Value> {
    let [message] = args.bind(["message"])?;
    let message = python_text::str(interpreter, &required(message, "message")?)?;
    Err(Box::new(Error::Raised { message: message.as_str().to_owned() }))
}

fn range(args: Args) -> Result<Value> {
    let [first, second, step] = args.bind_positional()?;
    let number = |value: &Value| -> Result<i64> {
        i64::try_from(value.expect_int()?).map_err(|_| Error::runtime("range: the number is too large"))
    };
    let (start, stop) = match (&first, &second) {
        (Some(start), Some(stop)) => (number(start)?, number(stop)?),
        (Some(stop), None) => (0, number(stop)?),
        (None, _) => return Err(Error::runtime("range expected at least 1 argument, got 0")),
    };
    let step = step.as_ref().map_or(Ok(1), number)?;
    if step == 0 {
        return Err(Error::runtime("range() arg 3 must not be zero"));
    }
    let range = Range { start, stop, step };
    if range.len() > MAX_RANGE {
        return Err(Error::runtime(format!("range too big: the limit is {MAX_RANGE}")));
    }
    Ok(Value::Range(range.into()))
}

fn strftime_now(interpreter: &mut Interpreter<'_>, args: Args) -> Result<Value> {
    let [format] = args.bind(["format"])?;
    let format = required(format, "format")?;
    let format = format.expect_text()?;
    let (now, seconds) = interpreter.clock.now();
    if format.len() > MAX_TIME_FORMAT {
        return Err(Error::runtime(format!(
            "strftime_now: the format has more than {MAX_TIME_FORMAT} bytes"
        )));
    }
    let text = strftime(format.as_str(), now, seconds)?;
    let origin = if format.has_content() { Origin::Content } else { Origin::Template };
    interpreter.budget.text(text.len(), text.len())?;
    Ok(Value::Text(Text::new(text, origin)))
}
