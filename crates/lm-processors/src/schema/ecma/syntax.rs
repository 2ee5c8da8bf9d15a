//! Parts of a parsed expression.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed expression.
pub(super) struct Pattern {
    pub(super) root: Node,
    /// Number of capturing groups.
    pub(super) groups: usize,
    /// Numbers of the named groups, from 0.
    pub(super) names: BTreeMap<String, usize>,
    /// Numbers of the groups that back references name.
    pub(super) referenced: BTreeSet<usize>,
}

impl Pattern {
    /// Number of the group of a back reference, from 0.
    pub(super) fn group(&self, target: &GroupRef) -> Option<usize> {
        match target {
            GroupRef::Number(number) => number.checked_sub(1).filter(|at| *at < self.groups),
            GroupRef::Name(name) => self.names.get(name).copied(),
        }
    }
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Char(char),
    /// Any character but a line terminator.
    Dot,
    Class {
        negated: bool,
        items: Vec<ClassItem>,
    },
    Start,
    End,
    WordBoundary {
        negated: bool,
    },
    Look {
        behind: bool,
        negated: bool,
        body: Box<Node>,
    },
    /// A group, with its number if it captures, from 0.
    Group(Option<usize>, Box<Node>),
    Reference(GroupRef),
    Repeat {
        body: Box<Node>,
        quantifier: String,
        /// True if the body can match more than once.
        is_loop: bool,
    },
    Sequence(Vec<Node>),
    Alternatives(Vec<Node>),
}

/// Group of a back reference.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GroupRef {
    Number(usize),
    Name(String),
}

/// An element of a class.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClassItem {
    Range(char, char),
    /// `\d`, `\w` or `\s`, or their complements in capitals.
    Escape(char),
    /// `\p{…}` or `\P{…}`.
    Property(String),
}
