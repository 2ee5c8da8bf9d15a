//! Scopes and variables.

use std::collections::HashMap;
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::BoxedResult as Result;
use crate::values::ScopeId;
use crate::values::Value;

/// Approximate memory of a kept scope.
const SCOPE_BYTES: usize = 1024;
/// Approximate memory of a variable beyond the first few.
const VARIABLE_BYTES: usize = 256;
/// Number of variables from which a scope looks up names in a hash map.
const INDEXED_FROM: usize = 8;
/// Cost of a look-up in one scope besides the name, in bytes read.
const SCOPE_COST: usize = 8;

/// All scopes; those that a macro or loop may still access are kept.
#[derive(Debug)]
pub(crate) struct Scopes {
    all: Vec<Scope>,
    current: usize,
}

#[derive(Debug, Default)]
struct Scope {
    parent: Option<usize>,
    variables: Variables,
    kept: bool,
}

/// Variables of a scope: searched linearly if few, by hash map if many.
#[derive(Debug, Default)]
struct Variables {
    all: Vec<(Arc<str>, Value)>,
    indices: HashMap<Arc<str>, usize>,
}

impl Variables {
    fn index(&self, name: &str) -> Option<usize> {
        if self.all.len() < INDEXED_FROM {
            return self.all.iter().position(|(found, _)| **found == *name);
        }
        self.indices.get(name).copied()
    }

    /// Sets a variable; returns true if it is new.
    fn set(&mut self, name: &Arc<str>, value: Value) -> bool {
        if let Some(index) = self.index(name) {
            self.all[index].1 = value;
            return false;
        }
        self.all.push((name.clone(), value));
        let indexed = if self.all.len() == INDEXED_FROM { 0 } else { self.all.len() - 1 };
        if self.all.len() >= INDEXED_FROM {
            let names = self.all.iter().enumerate().skip(indexed);
            self.indices.extend(names.map(|(index, (name, _))| (name.clone(), index)));
        }
        true
    }
}

impl Scopes {
    /// Creates the outermost scope, with the variables of the rendering.
    pub(crate) fn new(given: Vec<(String, Value)>) -> Self {
        let mut variables = Variables::default();
        for (name, value) in given {
            variables.set(&name.into(), value);
        }
        Self { all: vec![Scope { parent: None, variables, kept: true }], current: 0 }
    }

    /// Enters a scope inside the current one.
    pub(crate) fn enter(&mut self) {
        self.all.push(Scope { parent: Some(self.current), ..Scope::default() });
        self.current = self.all.len() - 1;
    }

    /// Leaves the current scope.
    pub(crate) fn leave(&mut self) {
        let left = self.current;
        self.current = self.all[left].parent.unwrap_or(0);
        if left + 1 == self.all.len() && !self.all[left].kept {
            self.all.pop();
        }
    }

    /// The current scope, without keeping it alive.
    pub(crate) fn current(&self) -> ScopeId {
        ScopeId(self.current)
    }

    /// Keeps the current scope and the ones around it alive for later use.
    pub(crate) fn keep(&mut self, budget: &Budget) -> Result<ScopeId> {
        let mut scope = Some(self.current);
        while let Some(index) = scope {
            if std::mem::replace(&mut self.all[index].kept, true) {
                break;
            }
            budget.build(SCOPE_BYTES)?;
            scope = self.all[index].parent;
        }
        Ok(ScopeId(self.current))
    }

    /// Makes a kept scope the current one; returns the previous one.
    pub(crate) fn switch(&mut self, scope: ScopeId) -> ScopeId {
        ScopeId(std::mem::replace(&mut self.current, scope.0))
    }

    /// Looks up a variable in the current scope and the ones around it, innermost first.
    pub(crate) fn get(&self, name: &str, budget: &Budget) -> Result<Option<&Value>> {
        let mut scope = Some(self.current);
        while let Some(index) = scope {
            budget.read(name.len() + SCOPE_COST)?;
            let Scope { parent, variables, .. } = &self.all[index];
            if let Some(index) = variables.index(name) {
                return Ok(Some(&variables.all[index].1));
            }
            scope = *parent;
        }
        Ok(None)
    }

    /// Sets a variable of the current scope.
    pub(crate) fn set(&mut self, name: &Arc<str>, value: Value, budget: &Budget) -> Result<()> {
        budget.read(name.len())?;
        let variables = &mut self.all[self.current].variables;
        let is_new = variables.set(name, value);
        if is_new && variables.all.len() >= INDEXED_FROM { budget.build(VARIABLE_BYTES) } else { Ok(()) }
    }
}
