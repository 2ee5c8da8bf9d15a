//! Postfix syntax: attributes, items, calls, filters and tests.

use std::collections::HashSet;
use std::sync::Arc;

use super::ast::{Arguments, Expr, FilterCall, TestCall};
use super::parser::Parser;
use super::tokens::Kind;
use crate::error::BoxedResult as Result;
use crate::text::Text;

enum Subscript {
    Key(Expr),
    Slice(Box<[Option<Expr>; 3]>),
}

impl Parser {
    /// Parses attributes, items and calls after a value.
    pub(super) fn postfix(&mut self, mut value: Expr, links: &mut usize) -> Result<Expr> {
        loop {
            value = match self.peek() {
                Kind::Operator(".") => self.attribute(value)?,
                Kind::Operator("[") => self.subscript(value)?,
                Kind::Operator("(") => Expr::Call(Box::new(value), self.arguments()?),
                _ => return Ok(value),
            };
            self.link()?;
            *links += 1;
        }
    }

    fn attribute(&mut self, value: Expr) -> Result<Expr> {
        self.expect(".")?;
        if let Kind::Int(index) = *self.peek() {
            self.next();
            return Ok(Expr::Item(Box::new(value), Box::new(Expr::Int(index))));
        }
        Ok(Expr::Attribute(Box::new(value), Text::template(self.expect_name()?)))
    }

    fn subscript(&mut self, value: Expr) -> Result<Expr> {
        let mut keys = self.bracketed("[", "]", Self::key)?;
        match keys.pop() {
            Some(Subscript::Slice(bounds)) if keys.is_empty() => Ok(Expr::Slice(Box::new(value), bounds)),
            Some(Subscript::Key(key)) if keys.is_empty() => Ok(Expr::Item(Box::new(value), Box::new(key))),
            Some(last) => {
                keys.push(last);
                let keys = keys.into_iter().map(|key| match key {
                    Subscript::Key(key) => Ok(key),
                    Subscript::Slice(_) => Err(self.error("a slice among several keys is not offered")),
                });
                Ok(Expr::Item(Box::new(value), Box::new(Expr::Tuple(keys.collect::<Result<_>>()?))))
            }
            None => Ok(Expr::Item(Box::new(value), Box::new(Expr::Tuple(Vec::new())))),
        }
    }

    /// Parses a key, or the up to three bounds of a slice.
    fn key(&mut self) -> Result<Subscript> {
        let mut bounds = [None, None, None];
        for index in 0..3 {
            if !self.peek().is(":") && !self.peek().is("]") && !self.peek().is(",") {
                bounds[index] = Some(self.expression()?);
            }
            let continues = index < 2 && self.skip(":");
            if index == 0 && !continues {
                let key = bounds[0].take().ok_or_else(|| self.unexpected("an expression"))?;
                return Ok(Subscript::Key(key));
            }
            if !continues {
                break;
            }
        }
        Ok(Subscript::Slice(Box::new(bounds)))
    }

    pub(super) fn arguments(&mut self) -> Result<Arguments> {
        self.expect("(")?;
        let mut arguments = Arguments::default();
        let mut first = true;
        while !self.skip(")") {
            if !first {
                self.expect(",")?;
                if self.skip(")") {
                    break;
                }
            }
            first = false;
            self.argument(&mut arguments)?;
        }
        let mut names = HashSet::new();
        match arguments.named.iter().find(|(name, _)| !names.insert(name.as_str())) {
            Some((name, _)) => Err(self.error(format!("keyword argument repeated: {}", name.as_str()))),
            None => Ok(arguments),
        }
    }

    fn argument(&mut self, arguments: &mut Arguments) -> Result<()> {
        let out_of_order = Err(self.error("invalid syntax for function call expression"));
        let no_more = arguments.more_named.is_some();
        if self.skip("*") {
            if no_more || arguments.more_positional.is_some() {
                return out_of_order;
            }
            arguments.more_positional = Some(Box::new(self.expression()?));
        } else if self.skip("**") {
            if no_more {
                return out_of_order;
            }
            arguments.more_named = Some(Box::new(self.expression()?));
        } else if self.peek_at(1).is("=") && matches!(self.peek(), Kind::Name(_)) {
            if no_more {
                return out_of_order;
            }
            let name = Text::template(self.expect_name()?);
            self.expect("=")?;
            arguments.named.push((name, self.expression()?));
        } else {
            if no_more || arguments.more_positional.is_some() || !arguments.named.is_empty() {
                return out_of_order;
            }
            arguments.positional.push(self.expression()?);
        }
        Ok(())
    }

    /// Parses filters and tests after a value.
    pub(super) fn filtered(&mut self, mut value: Expr, links: &mut usize) -> Result<Expr> {
        loop {
            value = match self.peek() {
                Kind::Operator("|") => {
                    self.next();
                    Expr::Filter(Box::new(value), self.filter()?)
                }
                Kind::Operator("(") => Expr::Call(Box::new(value), self.arguments()?),
                kind if kind.is_name("is") => self.test(value)?,
                _ => return Ok(value),
            };
            self.link()?;
            *links += 1;
        }
    }

    /// Parses the filters of a block: `a | b`; with `start`, the first one has no bar before it.
    pub(super) fn filters(&mut self, start: bool) -> Result<Vec<FilterCall>> {
        let mut filters = Vec::new();
        while (start && filters.is_empty()) || self.skip("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    fn filter(&mut self) -> Result<FilterCall> {
        let name = self.dotted_name()?;
        self.expect_known(self.builtins.filter(&name));
        let arguments = if self.peek().is("(") { self.arguments()? } else { Arguments::default() };
        Ok(FilterCall { name: name.into(), arguments })
    }

    fn dotted_name(&mut self) -> Result<String> {
        let mut name = self.expect_name()?;
        while self.skip(".") {
            name = name + "." + &self.expect_name()?;
        }
        Ok(name)
    }

    pub(super) fn test(&mut self, value: Expr) -> Result<Expr> {
        self.next();
        let negated = self.skip_name("not");
        let name: Arc<str> = self.dotted_name()?.into();
        self.expect_known(self.builtins.test(&name));
        let arguments = if self.peek().is("(") { self.arguments()? } else { self.bare_argument()? };
        let test = Expr::Test(Box::new(value), TestCall { name, arguments });
        Ok(if negated { Expr::Not(Box::new(test)) } else { test })
    }

    /// Parses the single argument that a test may have without parentheses: `x is divisibleby 3`.
    fn bare_argument(&mut self) -> Result<Arguments> {
        let begins = match self.peek() {
            Kind::Name(name) => !matches!(name.as_str(), "else" | "or" | "and"),
            Kind::Text(_) | Kind::Int(_) | Kind::Float(_) => true,
            kind => kind.is("[") || kind.is("{"),
        };
        if !begins {
            return Ok(Arguments::default());
        }
        if self.peek().is_name("is") {
            return Err(self.error("tests cannot be chained with is"));
        }
        let mut links = 0;
        let argument = self.nested(|parser| {
            let argument = parser.primary()?;
            parser.postfix(argument, &mut links)
        })?;
        self.unlink(links);
        Ok(Arguments { positional: vec![argument], ..Arguments::default() })
    }
}
