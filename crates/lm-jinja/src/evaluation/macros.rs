//! Macros and call blocks, which are macros as well.

use std::rc::Rc;
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::syntax::ast::{Expr, MacroDefinition};
use crate::values::{Args, Dict, Macro, SHARED_BYTES, Value};

impl Interpreter<'_> {
    pub(super) fn define(&mut self, definition: &Arc<MacroDefinition>) -> Result<()> {
        let value = self.macro_value(definition)?;
        if let Some(name) = &definition.name {
            self.scopes.set(name, value, self.budget)?;
        }
        Ok(())
    }

    pub(super) fn macro_value(&mut self, definition: &Arc<MacroDefinition>) -> Result<Value> {
        let scope = self.scopes.keep(self.budget)?;
        self.budget.build(SHARED_BYTES)?;
        Ok(Value::Macro(Rc::new(Macro { definition: definition.clone(), scope })))
    }

    pub(super) fn call_macro(&mut self, called: &Macro, args: Args) -> Result<Value> {
        let caller = self.scopes.switch(called.scope);
        let text = self.capture(|interpreter, out| {
            interpreter.scoped(|interpreter| {
                interpreter.bind(&called.definition, args)?;
                interpreter.run(&called.definition.body, out)
            })
        });
        self.scopes.switch(caller);
        Ok(Value::Text(text?.0))
    }

    /// Binds the parameters, and the rest to `varargs`, `kwargs` and `caller` if the body reads them.
    /// Defaults come last: they see all of these, and the defaults before them.
    fn bind(&mut self, definition: &MacroDefinition, mut args: Args) -> Result<()> {
        let given = args.positional.len().min(definition.parameters.len());
        let more = args.positional.split_off(given);
        let (first, others) = definition.parameters.split_at(given);
        if definition.reads_caller && !others.is_empty() && first.iter().any(|(name, _)| &**name == "caller")
        {
            // Jinja2 passes such a macro one argument too many.
            return Err(Error::runtime("`caller` is given by position, and other arguments are not"));
        }
        let defaults = self.bind_parameters(definition, &mut args)?;
        if definition.reads_caller && !definition.has_parameter("caller") {
            let caller = args.take("caller").and_then(Value::some);
            let caller = caller.unwrap_or_else(|| Value::undefined("No caller defined"));
            self.scopes.set(&"caller".into(), caller, self.budget)?;
        }
        self.bind_rest(definition, more, args)?;
        for (name, default) in defaults {
            let value = self.value(default)?;
            self.scopes.set(name, value, self.budget)?;
        }
        Ok(())
    }

    /// Binds the parameters that are given, and the others to undefined values, which hide outer variables;
    /// returns the defaults of those.
    fn bind_parameters<'d>(
        &mut self,
        definition: &'d MacroDefinition,
        args: &mut Args,
    ) -> Result<Vec<(&'d Arc<str>, &'d Expr)>> {
        let mut positional = std::mem::take(&mut args.positional).into_iter();
        let mut defaults = Vec::new();
        for (name, default) in &definition.parameters {
            self.budget.read(args.named.len().saturating_mul(size_of::<Value>()))?;
            let given = positional.next().or_else(|| args.take(name));
            if let (None, Some(default)) = (&given, default) {
                defaults.push((name, default));
            }
            let missing = || Value::undefined(format!("parameter '{name}' was not provided"));
            self.scopes.set(name, given.unwrap_or_else(missing), self.budget)?;
        }
        Ok(defaults)
    }

    fn bind_rest(&mut self, definition: &MacroDefinition, more: Vec<Value>, args: Args) -> Result<()> {
        let name = definition.name.as_deref().unwrap_or("caller");
        if definition.reads_kwargs {
            let mut named = Dict::default();
            for (name, value) in args.named {
                named.insert(Value::Text(name), value, self.budget)?;
            }
            self.scopes.set(&"kwargs".into(), Value::Dict(named.into()), self.budget)?;
        } else if let Some((argument, _)) = args.named.first() {
            let argument = argument.as_str();
            return Err(Error::runtime(format!("macro '{name}' takes no keyword argument '{argument}'")));
        }
        if definition.reads_varargs {
            let more = Value::tuple(more, self.budget)?;
            self.scopes.set(&"varargs".into(), more, self.budget)?;
        } else if !more.is_empty() {
            let count = definition.parameters.len();
            return Err(Error::runtime(format!("macro '{name}' takes not more than {count} argument(s)")));
        }
        Ok(())
    }
}

/// Looks up an attribute of a macro.
pub(super) fn macro_attribute(called: &Macro, name: &str, budget: &Budget) -> Result<Option<Value>> {
    Ok(Some(match name {
        "name" => called.name().map_or(Value::None, Value::text),
        "arguments" => {
            let names = called.definition.parameters.iter().map(|(name, _)| Value::text(&**name));
            Value::tuple(names.collect(), budget)?
        }
        "caller" => Value::Bool(called.definition.reads_caller),
        "catch_kwargs" => Value::Bool(called.definition.reads_kwargs),
        "catch_varargs" => Value::Bool(called.definition.reads_varargs),
        "explicit_caller" => Value::Bool(called.definition.has_parameter("caller")),
        _ => return Ok(None),
    }))
}
