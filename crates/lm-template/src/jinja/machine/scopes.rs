//! Variables.

use std::collections::HashMap;
use std::sync::Arc;

use crate::jinja::error::Result;
use crate::jinja::limits::Limits;
use crate::jinja::value::Value;

/// What a scope that is kept costs in memory, about.
const SCOPE_BYTES: usize = 1024;
/// What a variable beyond the first few costs in memory, about.
const VARIABLE_BYTES: usize = 256;
/// From so many variables on a scope looks names up by their hashes.
const INDEXED_FROM: usize = 8;
/// Bytes looked through for each scope in which a name is looked up, besides the name.
const SCOPE_WORK: usize = 8;

/// All scopes; what a macro may still look into is kept.
#[derive(Debug)]
pub(super) struct Scopes {
    all: Vec<Scope>,
    current: usize,
}

/// The place of a scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScopeId(usize);

#[derive(Debug, Default)]
struct Scope {
    parent: Option<usize>,
    variables: Variables,
    kept: bool,
}

/// The variables of a scope. A few are found one by one, many by an index.
#[derive(Debug, Default)]
struct Variables {
    all: Vec<(Arc<str>, Value)>,
    places: HashMap<Arc<str>, usize>,
}

impl Variables {
    fn place(&self, name: &str) -> Option<usize> {
        if self.all.len() < INDEXED_FROM {
            return self.all.iter().position(|(found, _)| **found == *name);
        }
        self.places.get(name).copied()
    }

    /// Gives a variable its value, and tells whether it is a new one.
    fn set(&mut self, name: &Arc<str>, value: Value) -> bool {
        if let Some(place) = self.place(name) {
            self.all[place].1 = value;
            return false;
        }
        self.all.push((name.clone(), value));
        let indexed = if self.all.len() == INDEXED_FROM { 0 } else { self.all.len() - 1 };
        if self.all.len() >= INDEXED_FROM {
            let names = self.all.iter().enumerate().skip(indexed);
            self.places.extend(names.map(|(place, (name, _))| (name.clone(), place)));
        }
        true
    }
}

impl Scopes {
    /// The outermost scope, with the variables of the rendering.
    pub(super) fn new(given: Vec<(String, Value)>) -> Self {
        let mut variables = Variables::default();
        for (name, value) in given {
            variables.set(&name.into(), value);
        }
        Self { all: vec![Scope { parent: None, variables, kept: true }], current: 0 }
    }

    /// Begins a scope inside of the current one.
    pub(super) fn enter(&mut self) {
        self.all.push(Scope { parent: Some(self.current), ..Scope::default() });
        self.current = self.all.len() - 1;
    }

    /// Ends the current scope.
    pub(super) fn leave(&mut self) {
        let left = self.current;
        self.current = self.all[left].parent.unwrap_or(0);
        if left + 1 == self.all.len() && !self.all[left].kept {
            self.all.pop();
        }
    }

    /// The current scope, which need not outlive what runs in it.
    pub(super) fn current(&self) -> ScopeId {
        ScopeId(self.current)
    }

    /// Keeps the current scope, for what will look into it later.
    pub(super) fn keep(&mut self, limits: &Limits) -> Result<ScopeId> {
        if !std::mem::replace(&mut self.all[self.current].kept, true) {
            limits.build(SCOPE_BYTES)?;
        }
        Ok(ScopeId(self.current))
    }

    /// Makes a kept scope the current one, and tells which one was.
    pub(super) fn switch(&mut self, scope: ScopeId) -> ScopeId {
        ScopeId(std::mem::replace(&mut self.current, scope.0))
    }

    /// A variable of the current scope or the closest one around it.
    pub(super) fn get(&self, name: &str, limits: &Limits) -> Result<Option<&Value>> {
        let mut scope = Some(self.current);
        while let Some(place) = scope {
            limits.read(name.len() + SCOPE_WORK)?;
            let Scope { parent, variables, .. } = &self.all[place];
            if let Some(place) = variables.place(name) {
                return Ok(Some(&variables.all[place].1));
            }
            scope = *parent;
        }
        Ok(None)
    }

    /// Sets a variable of the current scope.
    pub(super) fn set(&mut self, name: &Arc<str>, value: Value, limits: &Limits) -> Result<()> {
        limits.read(name.len())?;
        let variables = &mut self.all[self.current].variables;
        let is_new = variables.set(name, value);
        if is_new && variables.all.len() >= INDEXED_FROM { limits.build(VARIABLE_BYTES) } else { Ok(()) }
    }
}
