//! Execution of statements.

use std::sync::Arc;

use super::expressions::repeated;
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::{Flow, Interpreter, Object};
use crate::python_text;
use crate::syntax::ast::{Arguments, Block, Body, Expr, FilterCall, MacroDefinition, Statement, Target};
use crate::text::{Text, TextWriter};
use crate::values::{Args, Value};

impl Interpreter<'_> {
    /// Runs statements until one leaves or continues a loop.
    pub(super) fn run(&mut self, body: &Body, out: &mut TextWriter<'_>) -> Result<Flow> {
        self.budget.enter()?;
        let mut flow = Ok(Flow::Next);
        for node in body {
            flow = self.statement(&node.statement, out).map_err(|error| error.at(node.line));
            if flow != Ok(Flow::Next) {
                break;
            }
        }
        self.budget.leave();
        flow
    }

    fn statement(&mut self, statement: &Statement, out: &mut TextWriter<'_>) -> Result<Flow> {
        self.budget.step()?;
        match statement {
            Statement::Data(text) => self.write(text, out)?,
            Statement::Print(values) => self.print(values, out)?,
            Statement::If { branches, otherwise } => return self.branch(branches, otherwise, out),
            Statement::For(node) => return self.for_loop(node, out),
            Statement::Set { target, value } => {
                let value = self.value(value)?;
                self.assign(target, value)?;
            }
            Statement::SetBlock { target, filters, body } => return self.set_block(target, filters, body),
            Statement::With { variables, body } => return self.with(variables, body, out),
            Statement::FilterBlock { filters, body } => return self.filter_block(filters, body, out),
            Statement::Macro(definition) => self.define(definition)?,
            Statement::Call { callee, arguments, caller } => {
                self.call_block(callee, arguments, caller, out)?
            }
            Statement::Block(block) => self.block(block, out)?,
            Statement::Generation(body) => self.generation(body, out)?,
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    pub(super) fn write(&mut self, text: &Text, out: &mut TextWriter<'_>) -> Result<()> {
        out.text(text)?;
        if self.captures == 0 {
            self.rendered = out.len();
        }
        Ok(())
    }

    fn print(&mut self, values: &[Expr], out: &mut TextWriter<'_>) -> Result<()> {
        for value in values {
            let value = self.value(value)?;
            let text = python_text::str(self, &value)?;
            self.write(&text, out)?;
        }
        Ok(())
    }

    fn branch(
        &mut self,
        branches: &[(Expr, Body)],
        otherwise: &Body,
        out: &mut TextWriter<'_>,
    ) -> Result<Flow> {
        for (test, body) in branches {
            let test = self.value(test)?;
            if test.is_true() {
                return self.run(body, out);
            }
        }
        self.run(otherwise, out)
    }

    /// Runs `run` in a new scope.
    pub(super) fn scoped<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.scopes.enter();
        let result = run(self);
        self.scopes.leave();
        result
    }

    /// Captures the text that `run` writes.
    pub(super) fn capture<T>(
        &mut self,
        run: impl FnOnce(&mut Self, &mut TextWriter<'_>) -> Result<T>,
    ) -> Result<(Text, T)> {
        let mut out = TextWriter::new(self.budget);
        self.captures += 1;
        let result = run(self, &mut out);
        self.captures -= 1;
        Ok((out.finish(), result?))
    }

    fn capture_scoped(&mut self, body: &Body) -> Result<(Text, Flow)> {
        self.capture(|interpreter, out| interpreter.scoped(|interpreter| interpreter.run(body, out)))
    }

    /// Assigns a value to the target of a `set`, loop or macro.
    pub(super) fn assign(&mut self, target: &Target, value: Value) -> Result<()> {
        match target {
            Target::Name(name) => self.scopes.set(name, value, self.budget)?,
            Target::Attribute(name, attribute) => return self.assign_attribute(name, attribute, value),
            Target::Tuple(targets) => {
                let values = self.collect(&value)?;
                if values.len() != targets.len() {
                    let (expected, got) = (targets.len(), values.len());
                    return Err(Error::runtime(format!("cannot unpack {got} values to {expected} names")));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign(target, value)?;
                }
            }
        }
        Ok(())
    }

    fn assign_attribute(&mut self, name: &Arc<str>, attribute: &Text, value: Value) -> Result<()> {
        if attribute.as_str().starts_with('_') {
            return Err(Error::runtime("attributes of a namespace do not begin with an underscore"));
        }
        let budget = self.budget;
        if let Some(Value::Object(id)) = self.scopes.get(name, budget)?.cloned()
            && let Object::Namespace(attributes) = self.object_mut(id)
        {
            return attributes.insert(Value::Text(attribute.clone()), value, budget);
        }
        Err(Error::runtime("cannot assign attribute on non-namespace object"))
    }

    fn set_block(&mut self, target: &Target, filters: &[FilterCall], body: &Body) -> Result<Flow> {
        let (text, flow) = self.capture_scoped(body)?;
        if flow == Flow::Next {
            let value = self.filtered(Value::Text(text), filters)?;
            self.assign(target, value)?;
        }
        Ok(flow)
    }

    fn filtered(&mut self, mut value: Value, filters: &[FilterCall]) -> Result<Value> {
        for filter in filters {
            value = self.filter(value, filter)?;
        }
        Ok(value)
    }

    fn with(&mut self, variables: &[(Target, Expr)], body: &Body, out: &mut TextWriter<'_>) -> Result<Flow> {
        let values = variables.iter().map(|(_, value)| self.value(value)).collect::<Result<Vec<_>>>()?;
        self.scoped(|interpreter| {
            for ((target, _), value) in variables.iter().zip(values) {
                interpreter.assign(target, value)?;
            }
            interpreter.run(body, out)
        })
    }

    fn filter_block(
        &mut self,
        filters: &[FilterCall],
        body: &Body,
        out: &mut TextWriter<'_>,
    ) -> Result<Flow> {
        let (text, flow) = self.capture_scoped(body)?;
        if flow == Flow::Next {
            let value = self.filtered(Value::Text(text), filters)?;
            let text = python_text::str(self, &value)?;
            self.write(&text, out)?;
        }
        Ok(flow)
    }

    fn call_block(
        &mut self,
        callee: &Expr,
        arguments: &Arguments,
        caller: &Arc<MacroDefinition>,
        out: &mut TextWriter<'_>,
    ) -> Result<()> {
        let callee = self.value(callee)?;
        let Args { positional, mut named } = self.arguments(arguments)?;
        if named.iter().any(|(name, _)| name.as_str() == "caller") {
            return Err(repeated("caller"));
        }
        let keywords = arguments.named.len();
        named.insert(keywords, (Text::template("caller"), self.macro_value(caller)?));
        let value = self.call(&callee, Args { positional, named })?;
        let text = python_text::str(self, &value)?;
        self.write(&text, out)
    }

    /// Runs a block where its tag is.
    fn block(&mut self, block: &Block, out: &mut TextWriter<'_>) -> Result<()> {
        let around = self.block_scope;
        if block.scoped {
            self.block_scope = self.scopes.current();
        }
        let result = self.run_block(block, out);
        self.block_scope = around;
        result
    }

    /// Runs a block inside the scope that blocks see.
    pub(super) fn run_block(&mut self, block: &Block, out: &mut TextWriter<'_>) -> Result<()> {
        let caller = self.scopes.switch(self.block_scope);
        let result = self.scoped(|interpreter| interpreter.run(&block.body, out));
        self.scopes.switch(caller);
        result.map(drop)
    }

    /// Records the range of the model's text: at the end of the rendering so far, as transformers does, even
    /// if the text is captured first.
    fn generation(&mut self, body: &Body, out: &mut TextWriter<'_>) -> Result<()> {
        let (text, _) = self.capture_scoped(body)?;
        self.budget.build(size_of::<std::ops::Range<usize>>())?;
        self.generation.push(self.rendered..self.rendered + text.len());
        self.write(&text, out)
    }
}
