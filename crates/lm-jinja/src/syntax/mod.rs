//! Parser from source to syntax tree. Source: Jinja2 3.1.6, `lexer.py` and `parser.py`.

pub(super) mod ast;
mod escapes;
mod expressions;
mod lexer;
mod parser;
mod postfix;
mod statements;
mod tokens;

pub(super) use parser::parse;
