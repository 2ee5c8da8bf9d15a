//! Variables.

use std::sync::Arc;

use crate::jinja::error::Result;
use crate::jinja::limits::Limits;
use crate::jinja::value::Value;

/// What a scope that is kept costs in memory, about.
const SCOPE_BYTES: usize = 128;

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
    variables: Vec<(Arc<str>, Value)>,
    kept: bool,
}

impl Scopes {
    /// The outermost scope, with the variables of the rendering.
    pub(super) fn new(variables: Vec<(String, Value)>) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value)).collect();
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
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let mut scope = Some(self.current);
        while let Some(place) = scope {
            let Scope { parent, variables, .. } = &self.all[place];
            if let Some((_, value)) = variables.iter().rev().find(|(found, _)| **found == *name) {
                return Some(value);
            }
            scope = *parent;
        }
        None
    }

    /// Sets a variable of the current scope.
    pub(super) fn set(&mut self, name: &Arc<str>, value: Value) {
        let variables = &mut self.all[self.current].variables;
        match variables.iter_mut().find(|(found, _)| found == name) {
            Some((_, old)) => *old = value,
            None => variables.push((name.clone(), value)),
        }
    }
}
