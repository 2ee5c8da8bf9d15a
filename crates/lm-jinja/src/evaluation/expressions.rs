//! Evaluation of expressions.

use std::collections::HashSet;

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::operators::{arithmetic, compare, negative, positive};
use crate::python_text;
use crate::syntax::ast::{Arguments, Comparison, Expr, FilterCall, TestCall};
use crate::text::{Text, TextWriter};
use crate::values::{Args, Dict, Function, SHARED_BYTES, Value, truncated};

impl Interpreter<'_> {
    /// Evaluates an expression.
    pub(super) fn value(&mut self, expression: &Expr) -> Result<Value> {
        self.budget.step()?;
        self.budget.enter()?;
        let value = self.value_inner(expression);
        self.budget.leave();
        value
    }

    /// One line per kind, so that the stack frames of nested expressions stay small.
    fn value_inner(&mut self, expression: &Expr) -> Result<Value> {
        match expression {
            Expr::None => Ok(Value::None),
            Expr::Bool(value) => Ok(Value::Bool(*value)),
            Expr::Int(value) => Ok(Value::Int(*value)),
            Expr::Float(value) => Ok(Value::Float(*value)),
            Expr::Text(text) => Ok(Value::Text(text.clone())),
            Expr::Name(name) => self.variable(name),
            Expr::List(items) => self.values(items).and_then(|items| Value::list(items, self.budget)),
            Expr::Tuple(items) => self.values(items).and_then(|items| Value::tuple(items, self.budget)),
            Expr::Dict(entries) => self.dict(entries),
            Expr::Attribute(value, name) => self.value(value).and_then(|value| self.attribute(&value, name)),
            Expr::Item(value, key) => self.item_of(value, key),
            Expr::Slice(value, bounds) => self.slice_of(value, bounds),
            Expr::Call(callee, arguments) => self.call_of(callee, arguments),
            Expr::Filter(value, filter) => self.value(value).and_then(|value| self.filter(value, filter)),
            Expr::Test(value, test) => self.test(value, test),
            Expr::Not(value) => self.value(value).map(|value| Value::Bool(!value.is_true())),
            Expr::Negative(value) => self.value(value).and_then(|value| negative(&value)),
            Expr::Positive(value) => self.value(value).and_then(|value| positive(&value)),
            Expr::And(left, right) => self.either(left, right, false),
            Expr::Or(left, right) => self.either(left, right, true),
            Expr::Arithmetic(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                arithmetic(self, *operator, &left, &right)
            }
            Expr::Concat(parts) => self.concat(parts),
            Expr::Compare(first, others) => self.compare(first, others),
            Expr::Conditional(test, value, otherwise) => self.conditional(test, value, otherwise.as_deref()),
        }
    }

    fn variable(&self, name: &str) -> Result<Value> {
        if let Some(value) = self.scopes.get(name, self.budget)? {
            return Ok(value.clone());
        }
        if let Some(function) = Function::global(name) {
            return Ok(Value::Function(function));
        }
        self.budget.build(SHARED_BYTES)?;
        Ok(Value::undefined(format!("'{}' is undefined", truncated(name))))
    }

    fn values(&mut self, expressions: &[Expr]) -> Result<Vec<Value>> {
        expressions.iter().map(|expression| self.value(expression)).collect()
    }

    fn dict(&mut self, entries: &[(Expr, Expr)]) -> Result<Value> {
        let mut dict = Dict::default();
        for (key, value) in entries {
            let (key, value) = (self.value(key)?, self.value(value)?);
            dict.insert(key, value, self.budget)?;
        }
        Ok(Value::Dict(dict.into()))
    }

    fn item_of(&mut self, value: &Expr, key: &Expr) -> Result<Value> {
        let (value, key) = (self.value(value)?, self.value(key)?);
        self.item(&value, &key)
    }

    fn slice_of(&mut self, value: &Expr, bounds: &[Option<Expr>; 3]) -> Result<Value> {
        let value = self.value(value)?;
        let mut numbers = [None; 3];
        for (number, bound) in numbers.iter_mut().zip(bounds) {
            let bound = bound.as_ref().map(|bound| self.value(bound)).transpose()?.and_then(Value::some);
            *number = bound.map(|bound| bound.expect_int()).transpose()?;
        }
        self.slice(&value, numbers)
    }

    fn call_of(&mut self, callee: &Expr, arguments: &Arguments) -> Result<Value> {
        let callee = self.value(callee)?;
        let arguments = self.arguments(arguments)?;
        self.call(&callee, arguments)
    }

    /// Evaluates the arguments of a call.
    pub(super) fn arguments(&mut self, arguments: &Arguments) -> Result<Args> {
        let mut args = Args::of(self.values(&arguments.positional)?);
        for (name, value) in &arguments.named {
            args.named.push((name.clone(), self.value(value)?));
        }
        if let Some(more) = &arguments.more_positional {
            let more = self.value(more)?;
            args.positional.extend(self.collect(&more)?);
        }
        if let Some(more) = &arguments.more_named {
            let Value::Dict(more) = self.value(more)? else {
                return Err(Error::runtime("argument after ** must be a mapping"));
            };
            self.budget.build(more.len() * size_of::<(Text, Value)>())?;
            let given: HashSet<&str> = arguments.named.iter().map(|(name, _)| name.as_str()).collect();
            for (name, value) in more.entries() {
                let name = name.expect_text()?;
                if given.contains(name.as_str()) {
                    return Err(repeated(name.as_str()));
                }
                args.named.push((name.clone(), value.clone()));
            }
        }
        Ok(args)
    }

    pub(super) fn filter(&mut self, value: Value, call: &FilterCall) -> Result<Value> {
        let filter = self.builtins.filter(&call.name).map_err(Error::runtime)?;
        let args = self.arguments(&call.arguments)?;
        self.apply_filter(filter, value, args)
    }

    fn test(&mut self, value: &Expr, call: &TestCall) -> Result<Value> {
        let value = self.value(value)?;
        let test = self.builtins.test(&call.name).map_err(Error::runtime)?;
        let args = self.arguments(&call.arguments)?;
        self.apply_test(test, &value, args).map(Value::Bool)
    }

    /// `and` and `or`, which return one operand: the left one if its truth value is `wanted`.
    fn either(&mut self, left: &Expr, right: &Expr, wanted: bool) -> Result<Value> {
        let left = self.value(left)?;
        if left.is_true() == wanted { Ok(left) } else { self.value(right) }
    }

    fn concat(&mut self, parts: &[Expr]) -> Result<Value> {
        let mut writer = TextWriter::new(self.budget);
        for part in parts {
            let part = self.value(part)?;
            writer.text(&python_text::str(self, &part)?)?;
        }
        Ok(Value::Text(writer.finish()))
    }

    /// Evaluates a chain of comparisons, up to the first that is false.
    fn compare(&mut self, first: &Expr, others: &[(Comparison, Expr)]) -> Result<Value> {
        let mut left = self.value(first)?;
        for (comparison, right) in others {
            let right = self.value(right)?;
            if !compare(self, *comparison, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn conditional(&mut self, test: &Expr, value: &Expr, otherwise: Option<&Expr>) -> Result<Value> {
        let test = self.value(test)?;
        match otherwise {
            _ if test.is_true() => self.value(value),
            Some(otherwise) => self.value(otherwise),
            None => Ok(Value::undefined(
                "the inline if-expression evaluated to false and no else section was defined.",
            )),
        }
    }
}

/// Error for a keyword argument that is given twice.
pub(super) fn repeated(name: &str) -> Box<Error> {
    Error::runtime(format!("got multiple values for keyword argument '{}'", truncated(name)))
}
