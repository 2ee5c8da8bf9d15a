//! Loops, and the attributes of `loop`.

use std::sync::Arc;

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::{Flow, Interpreter, Loop, Object};
use crate::operators::equal;
use crate::syntax::ast::For;
use crate::text::TextWriter;
use crate::values::{Args, Cursor, ObjectId, ScopeId, Value};

impl Interpreter<'_> {
    pub(super) fn for_loop(&mut self, node: &Arc<For>, out: &mut TextWriter<'_>) -> Result<Flow> {
        let items = self.value(&node.items)?;
        self.run_loop(node, &items, 1, out)?;
        Ok(Flow::Next)
    }

    fn run_loop(
        &mut self,
        node: &Arc<For>,
        items: &Value,
        depth: usize,
        out: &mut TextWriter<'_>,
    ) -> Result<()> {
        let cursor = self.iterate(items)?;
        // The length of a text is counted.
        self.budget.read(items.read_cost())?;
        let length = if node.test.is_none() { items.len() } else { None };
        let needs_scope = node.test.is_some() || node.recursive;
        let scope = if needs_scope { self.scopes.keep(self.budget)? } else { self.scopes.current() };
        let id = self.add_object(Object::Loop(Box::new(Loop {
            node: node.clone(),
            scope,
            cursor,
            tested: node.test.is_none(),
            length,
            index: 0,
            depth,
            before: None,
            current: None,
            after: None,
            last_changed: None,
        })))?;
        // As in Jinja2, an iteration left early does not count.
        let mut completed = false;
        while let Some(item) = self.next_item(id)? {
            match self.scoped(|interpreter| interpreter.iterate_once(node, id, item, out))? {
                Flow::Next => completed = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
        if !completed {
            self.scoped(|interpreter| interpreter.run(&node.otherwise, out))?;
        }
        Ok(())
    }

    fn iterate_once(
        &mut self,
        node: &For,
        id: ObjectId,
        item: Value,
        out: &mut TextWriter<'_>,
    ) -> Result<Flow> {
        self.scopes.set(&"loop".into(), Value::Object(id), self.budget)?;
        self.assign(&node.target, item)?;
        self.run(&node.body, out)
    }

    /// `loop(items)` in a recursive loop: returns the text that the loop writes for `items`.
    pub(super) fn call_loop(&mut self, id: ObjectId, items: &Value) -> Result<Value> {
        let (node, scope, depth) = match self.object(id) {
            Object::Loop(this) if this.node.recursive => (this.node.clone(), this.scope, this.depth),
            _ => {
                return Err(Error::runtime(
                    "the loop must have the 'recursive' marker to be called recursively",
                ));
            }
        };
        let caller = self.scopes.switch(scope);
        let text = self.capture(|interpreter, out| interpreter.run_loop(&node, items, depth + 1, out));
        self.scopes.switch(caller);
        Ok(Value::Text(text?.0))
    }

    fn loop_mut(&mut self, id: ObjectId) -> Result<&mut Loop> {
        match self.object_mut(id) {
            Object::Loop(this) => Ok(this),
            _ => Err(Error::runtime("not a loop")),
        }
    }

    /// Advances to the next item.
    fn next_item(&mut self, id: ObjectId) -> Result<Option<Value>> {
        let next = match self.loop_mut(id)?.after.take() {
            Some(next) => next,
            None => self.fetch(id)?,
        };
        let this = self.loop_mut(id)?;
        if next.is_some() {
            this.index += 1;
            this.before = std::mem::replace(&mut this.current, next.clone());
        }
        Ok(next)
    }

    /// Fetches the next item that passes the loop's test.
    fn fetch(&mut self, id: ObjectId) -> Result<Option<Value>> {
        let this = self.loop_mut(id)?;
        let (node, scope, tested) = (this.node.clone(), this.scope, this.tested);
        let mut cursor = std::mem::replace(&mut this.cursor, Cursor::values(Vec::new()));
        let item = loop {
            let Some(item) = self.next(&mut cursor)? else { break None };
            if tested || self.passes(&node, scope, &item)? {
                break Some(item);
            }
        };
        self.loop_mut(id)?.cursor = cursor;
        Ok(item)
    }

    fn passes(&mut self, node: &For, scope: ScopeId, item: &Value) -> Result<bool> {
        let Some(test) = &node.test else { return Ok(true) };
        let caller = self.scopes.switch(scope);
        let passes = self.scoped(|interpreter| {
            interpreter.assign(&node.target, item.clone())?;
            let passes = interpreter.value(test)?;
            Ok(passes.is_true())
        });
        self.scopes.switch(caller);
        passes
    }

    fn peek(&mut self, id: ObjectId) -> Result<Option<Value>> {
        if self.loop_mut(id)?.after.is_none() {
            let next = self.fetch(id)?;
            self.loop_mut(id)?.after = Some(next);
        }
        Ok(self.loop_mut(id)?.after.clone().flatten())
    }

    /// Number of items; fetches the remaining ones if unknown.
    fn length(&mut self, id: ObjectId) -> Result<usize> {
        if let Some(length) = self.loop_mut(id)?.length {
            return Ok(length);
        }
        let mut items = Vec::new();
        items.extend(self.peek(id)?);
        while !items.is_empty()
            && let Some(item) = self.fetch(id)?
        {
            self.budget.build(size_of::<Value>())?;
            items.push(item);
        }
        let this = self.loop_mut(id)?;
        let length = this.index + items.len();
        let mut items = items.into_iter();
        this.after = Some(items.next());
        this.tested = true;
        this.cursor = Cursor::Values(items);
        this.length = Some(length);
        Ok(length)
    }

    /// Looks up an attribute of `loop`.
    pub(super) fn loop_attribute(&mut self, id: ObjectId, name: &str) -> Result<Option<Value>> {
        let this = self.loop_mut(id)?;
        let number = |number: usize| Ok(Some(Value::Int(number as i128)));
        match name {
            "index" => number(this.index),
            "index0" => Ok(Some(Value::Int(this.index as i128 - 1))),
            "depth" => number(this.depth),
            "depth0" => number(this.depth - 1),
            "first" => Ok(Some(Value::Bool(this.index == 1))),
            "previtem" => {
                Ok(Some(this.before.clone().unwrap_or_else(|| Value::undefined("there is no previous item"))))
            }
            "last" => Ok(Some(Value::Bool(self.peek(id)?.is_none()))),
            "nextitem" => {
                Ok(Some(self.peek(id)?.unwrap_or_else(|| Value::undefined("there is no next item"))))
            }
            "length" => self.length(id).and_then(number),
            "revindex" => {
                let index = this.index;
                number((self.length(id)? + 1).saturating_sub(index))
            }
            "revindex0" => {
                let index = this.index;
                number(self.length(id)?.saturating_sub(index))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn cycle(&mut self, id: ObjectId, args: Args) -> Result<Value> {
        let index = self.loop_mut(id)?.index;
        if args.positional.is_empty() || !args.named.is_empty() {
            return Err(Error::runtime("no items for cycling given"));
        }
        Ok(args.positional[index.saturating_sub(1) % args.positional.len()].clone())
    }

    pub(super) fn changed(&mut self, id: ObjectId, args: Args) -> Result<Value> {
        let budget = self.budget;
        let last_changed = self.loop_mut(id)?.last_changed.take();
        let mut same =
            last_changed.as_ref().is_some_and(|last_changed| last_changed.len() == args.positional.len());
        for (old, new) in last_changed.iter().flatten().zip(&args.positional) {
            same = same && equal(budget, old, new)?;
        }
        self.loop_mut(id)?.last_changed = Some(args.positional);
        Ok(Value::Bool(!same))
    }
}
