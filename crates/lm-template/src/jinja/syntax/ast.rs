//! The syntax tree.

use std::sync::Arc;

use crate::jinja::filters::Filter;
use crate::jinja::tests::Test;
use crate::jinja::text::Text;

/// Statements in order.
pub(crate) type Body = Vec<Node>;

/// A statement and its line.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) statement: Statement,
}

#[derive(Debug)]
pub(crate) enum Statement {
    /// Text outside of tags.
    Data(Text),
    Print(Vec<Expr>),
    If {
        branches: Vec<(Expr, Body)>,
        otherwise: Body,
    },
    For(Arc<For>),
    Set {
        target: Target,
        value: Expr,
    },
    SetBlock {
        target: Target,
        filters: Vec<FilterCall>,
        body: Body,
    },
    With {
        variables: Vec<(Target, Expr)>,
        body: Body,
    },
    FilterBlock {
        filters: Vec<FilterCall>,
        body: Body,
    },
    Macro(Arc<MacroDefinition>),
    /// A call whose `caller` is a block.
    Call {
        callee: Expr,
        arguments: Arguments,
        caller: Arc<MacroDefinition>,
    },
    /// What a child template would replace; there are none, so it is its body.
    Block(Body),
    /// Text that the model generated.
    Generation(Body),
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) items: Expr,
    pub(crate) test: Option<Expr>,
    pub(crate) recursive: bool,
    pub(crate) body: Body,
    pub(crate) otherwise: Body,
}

/// A macro, or the block of a call.
#[derive(Debug)]
pub(crate) struct MacroDefinition {
    /// None for the block of a call.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) parameters: Vec<(Arc<str>, Option<Expr>)>,
    pub(crate) body: Body,
    /// Whether the body reads them, so that a call may give more than the parameters.
    pub(crate) reads_caller: bool,
    pub(crate) reads_varargs: bool,
    pub(crate) reads_kwargs: bool,
}

/// What is assigned to.
#[derive(Debug)]
pub(crate) enum Target {
    Name(Arc<str>),
    /// An attribute of a namespace.
    Attribute(Arc<str>, Text),
    Tuple(Vec<Target>),
}

#[derive(Debug)]
pub(crate) enum Expr {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Text),
    Name(Arc<str>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Attribute(Box<Expr>, Text),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Box<[Option<Expr>; 3]>),
    Call(Box<Expr>, Arguments),
    Filter(Box<Expr>, FilterCall),
    Test(Box<Expr>, TestCall),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// `~`
    Concat(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    /// Test, value when it holds, value when not.
    Conditional(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Expr>,
    pub(crate) named: Vec<(Text, Expr)>,
    /// `*expression`
    pub(crate) more_positional: Option<Box<Expr>>,
    /// `**expression`
    pub(crate) more_named: Option<Box<Expr>>,
}

/// A filter; an unknown one fails when it is reached, as it can only be in a branch.
#[derive(Debug)]
pub(crate) struct FilterCall {
    pub(crate) name: Arc<str>,
    pub(crate) filter: Option<Filter>,
    pub(crate) arguments: Arguments,
}

/// A test, as [`FilterCall`].
#[derive(Debug)]
pub(crate) struct TestCall {
    pub(crate) name: Arc<str>,
    pub(crate) test: Option<Test>,
    pub(crate) arguments: Arguments,
}
