//! State and basic operations of the parser; statements and expressions have their own files.

use super::ast::{Blocks, Tree};
use super::lexer::tokens;
use super::tokens::{Kind, Token};
use crate::builtins::Builtins;
use crate::error::{BoxedResult as Result, Error};

/// Maximum nesting of tags and expressions. (Jinja2 fails from some seventy parentheses on.)
const MAX_NESTING: usize = 60;
/// Maximum depth of the tree, including chains (`a + b + c`, `x.y.z`), on which the parser does not recurse.
const MAX_TREE_DEPTH: usize = 200;

/// Parses a template.
pub(crate) fn parse(source: &str, builtins: Builtins) -> Result<Tree> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        builtins,
        at: 0,
        nesting: 0,
        tree_depth: 0,
        unknown: Vec::new(),
        loops: 0,
        special: Vec::new(),
        blocks: Blocks::new(),
    };
    let (body, _) = parser.body(&[])?;
    parser.refuse_unknown(0)?;
    Ok(Tree { body, blocks: parser.blocks })
}

pub(super) struct Parser {
    tokens: Vec<Token>,
    pub(super) builtins: Builtins,
    at: usize,
    nesting: usize,
    tree_depth: usize,
    /// Unknown filters and tests that are not (yet) known to be in a branch.
    pub(super) unknown: Vec<Error>,
    /// Number of open loops in this function, for `break` and `continue`.
    pub(super) loops: usize,
    /// Uses so far of the names in [`SPECIAL`], by their index.
    special: Vec<(usize, Use)>,
    pub(super) blocks: Blocks,
}

/// Names that a macro receives if its body reads them.
const SPECIAL: [&str; 3] = ["caller", "varargs", "kwargs"];

/// Use of a variable.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Use {
    Load,
    Store,
}

impl Parser {
    pub(super) fn peek(&self) -> &Kind {
        self.peek_at(0)
    }

    /// The token `ahead` positions further on; `End` repeats.
    pub(super) fn peek_at(&self, ahead: usize) -> &Kind {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)].kind
    }

    pub(super) fn line(&self) -> usize {
        self.tokens[self.at.min(self.tokens.len() - 1)].line
    }

    pub(super) fn next(&mut self) -> Kind {
        let kind = self.peek().clone();
        self.at += 1;
        kind
    }

    pub(super) fn skip(&mut self, operator: &str) -> bool {
        let found = self.peek().is(operator);
        self.at += usize::from(found);
        found
    }

    pub(super) fn skip_name(&mut self, name: &str) -> bool {
        let found = self.peek().is_name(name);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, operator: &str) -> Result<()> {
        if self.skip(operator) { Ok(()) } else { Err(self.unexpected(&format!("'{operator}'"))) }
    }

    pub(super) fn expect_kind(&mut self, kind: &Kind) -> Result<()> {
        if self.peek() == kind {
            self.at += 1;
            return Ok(());
        }
        Err(self.unexpected(&format!("'{}'", kind.shown())))
    }

    pub(super) fn expect_name(&mut self) -> Result<String> {
        match self.peek() {
            Kind::Name(_) => match self.next() {
                Kind::Name(name) => Ok(name),
                _ => unreachable!("peeked a name"),
            },
            _ => Err(self.unexpected("a name")),
        }
    }

    pub(super) fn unexpected(&self, expected: &str) -> Box<Error> {
        self.error(format!("expected {expected}, got '{}'", self.peek().shown()))
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Box<Error> {
        Error::syntax(message, self.line())
    }

    /// Runs `parse` one nesting level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(format!("nested deeper than {MAX_NESTING} levels")));
        }
        self.link()?;
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        self.unlink(1);
        parsed
    }

    /// Counts a level of the tree; `unlink` reverts it.
    pub(super) fn link(&mut self) -> Result<()> {
        if self.tree_depth == MAX_TREE_DEPTH {
            return Err(self.error(format!("a chain of more than {MAX_TREE_DEPTH} links")));
        }
        self.tree_depth += 1;
        Ok(())
    }

    pub(super) fn unlink(&mut self, links: usize) {
        self.tree_depth -= links;
    }

    /// Number of uses of special names so far, for `reads`.
    pub(super) fn uses(&self) -> usize {
        self.special.len()
    }

    /// Records a use of a variable.
    pub(super) fn used(&mut self, name: &str, usage: Use) {
        if let Some(index) = SPECIAL.iter().position(|special| *special == name) {
            self.special.push((index, usage));
        }
    }

    /// Forgets the uses after the first `uses`.
    pub(super) fn forget_uses(&mut self, uses: usize) {
        self.special.truncate(uses);
    }

    /// Returns true if what was parsed after the first `uses` reads a special name before any assignment to
    /// it.
    pub(super) fn reads(&self, uses: usize, name: &str) -> bool {
        let first = self.special[uses..].iter().find(|(index, _)| SPECIAL[*index] == name);
        matches!(first, Some((_, Use::Load)))
    }

    /// Records an unknown filter or test.
    pub(super) fn expect_known<T>(&mut self, found: Result<T, String>) {
        if let Err(message) = found {
            self.unknown.push(*Error::syntax(message, self.line()));
        }
    }

    /// Fails if there are more than `known` unknown filters and tests.
    pub(super) fn refuse_unknown(&mut self, known: usize) -> Result<()> {
        if self.unknown.len() > known { Err(Box::new(self.unknown.swap_remove(known))) } else { Ok(()) }
    }
}
