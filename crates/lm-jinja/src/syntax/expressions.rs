//! Parsing of expressions.

use super::ast::{Arithmetic, Comparison, Expr};
use super::parser::{Parser, Use};
use super::tokens::Kind;
use crate::error::BoxedResult as Result;
use crate::text::Text;

/// Binary operators by precedence, lowest first; all are left-associative.
const PRECEDENCE: &[&[(&str, Arithmetic)]] = &[
    &[("+", Arithmetic::Add), ("-", Arithmetic::Subtract)],
    &[
        ("*", Arithmetic::Multiply),
        ("/", Arithmetic::Divide),
        ("//", Arithmetic::FloorDivide),
        ("%", Arithmetic::Modulo),
    ],
    &[("**", Arithmetic::Power)],
];

impl Parser {
    /// An expression without a bare comma.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(Self::conditional)
    }

    /// Parses expressions separated by commas, which form a tuple; `conditional` allows `a if b`.
    pub(super) fn tuple(&mut self, conditional: bool) -> Result<Expr> {
        self.tuple_or_empty(conditional)?.ok_or_else(|| self.unexpected("an expression"))
    }

    fn tuple_or_empty(&mut self, conditional: bool) -> Result<Option<Expr>> {
        let mut items = Vec::new();
        let mut is_tuple = false;
        while !self.ends_tuple() {
            items.push(if conditional { self.expression()? } else { self.nested(Self::or)? });
            if !self.skip(",") {
                break;
            }
            is_tuple = true;
        }
        if is_tuple { Ok(Some(Expr::Tuple(items))) } else { Ok(items.pop()) }
    }

    fn ends_tuple(&self) -> bool {
        matches!(self.peek(), Kind::VariableEnd | Kind::BlockEnd | Kind::End)
            || self.peek().is(")")
            || self.peek().is_name("recursive")
    }

    fn conditional(&mut self) -> Result<Expr> {
        let known = self.unknown.len();
        let mut value = self.or()?;
        let mut links = 0;
        while self.skip_name("if") {
            self.link()?;
            links += 1;
            let test = self.or()?;
            let otherwise =
                if self.skip_name("else") { Some(Box::new(self.nested(Self::conditional)?)) } else { None };
            value = Expr::Conditional(Box::new(test), Box::new(value), otherwise);
            self.unknown.truncate(known);
        }
        self.unlink(links);
        Ok(value)
    }

    fn or(&mut self) -> Result<Expr> {
        self.chain(
            Self::and,
            |parser| parser.skip_name("or").then_some(()),
            |left, (), right| Expr::Or(Box::new(left), Box::new(right)),
        )
    }

    fn and(&mut self) -> Result<Expr> {
        self.chain(
            Self::not,
            |parser| parser.skip_name("and").then_some(()),
            |left, (), right| Expr::And(Box::new(left), Box::new(right)),
        )
    }

    /// Parses left-associative operators.
    fn chain<O>(
        &mut self,
        operand: fn(&mut Self) -> Result<Expr>,
        operator: impl Fn(&mut Self) -> Option<O>,
        join: impl Fn(Expr, O, Expr) -> Expr,
    ) -> Result<Expr> {
        let mut left = operand(self)?;
        let mut links = 0;
        while let Some(operator) = operator(self) {
            self.link()?;
            links += 1;
            left = join(left, operator, operand(self)?);
        }
        self.unlink(links);
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        if self.skip_name("not") {
            return Ok(Expr::Not(Box::new(self.nested(Self::not)?)));
        }
        self.compare()
    }

    fn compare(&mut self) -> Result<Expr> {
        let first = self.sum()?;
        let mut others = Vec::new();
        while let Some(comparison) = self.comparison() {
            others.push((comparison, self.sum()?));
        }
        Ok(if others.is_empty() { first } else { Expr::Compare(Box::new(first), others) })
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.peek() {
            Kind::Operator("==") => Comparison::Equal,
            Kind::Operator("!=") => Comparison::NotEqual,
            Kind::Operator("<") => Comparison::Less,
            Kind::Operator("<=") => Comparison::LessOrEqual,
            Kind::Operator(">") => Comparison::Greater,
            Kind::Operator(">=") => Comparison::GreaterOrEqual,
            kind if kind.is_name("in") => Comparison::In,
            kind if kind.is_name("not") && self.peek_at(1).is_name("in") => {
                self.next();
                Comparison::NotIn
            }
            _ => return None,
        };
        self.next();
        Some(comparison)
    }

    fn sum(&mut self) -> Result<Expr> {
        self.arithmetic(0, Self::concat)
    }

    /// `~`, whose precedence is between sums and products.
    fn concat(&mut self) -> Result<Expr> {
        let first = self.product()?;
        let mut parts = vec![first];
        while self.skip("~") {
            parts.push(self.product()?);
        }
        match parts.pop() {
            Some(only) if parts.is_empty() => Ok(only),
            last => {
                parts.extend(last);
                Ok(Expr::Concat(parts))
            }
        }
    }

    fn product(&mut self) -> Result<Expr> {
        self.arithmetic(1, Self::power)
    }

    fn power(&mut self) -> Result<Expr> {
        self.arithmetic(2, |parser| parser.unary(true))
    }

    fn arithmetic(&mut self, level: usize, operand: fn(&mut Self) -> Result<Expr>) -> Result<Expr> {
        let operator = |parser: &mut Self| {
            let found = PRECEDENCE[level].iter().find(|(text, _)| parser.peek().is(text))?;
            parser.next();
            Some(found.1)
        };
        self.chain(operand, operator, |left, operator, right| {
            Expr::Arithmetic(operator, Box::new(left), Box::new(right))
        })
    }

    fn unary(&mut self, with_filters: bool) -> Result<Expr> {
        let value = if self.skip("-") {
            Expr::Negative(Box::new(self.nested(|parser| parser.unary(false))?))
        } else if self.skip("+") {
            Expr::Positive(Box::new(self.nested(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        let mut links = 0;
        let value = self.postfix(value, &mut links)?;
        let value = if with_filters { self.filtered(value, &mut links)? } else { value };
        self.unlink(links);
        Ok(value)
    }

    pub(super) fn primary(&mut self) -> Result<Expr> {
        Ok(match self.peek() {
            Kind::Name(_) => match self.expect_name()?.as_str() {
                "true" | "True" => Expr::Bool(true),
                "false" | "False" => Expr::Bool(false),
                "none" | "None" => Expr::None,
                name => {
                    self.used(name, Use::Load);
                    Expr::Name(name.into())
                }
            },
            Kind::Text(_) => {
                let mut text = String::new();
                while let Kind::Text(_) = self.peek() {
                    if let Kind::Text(part) = self.next() {
                        text.push_str(&part);
                    }
                }
                Expr::Text(Text::template(text))
            }
            Kind::Int(number) => {
                let number = *number;
                self.next();
                Expr::Int(number)
            }
            Kind::Float(number) => {
                let number = *number;
                self.next();
                Expr::Float(number)
            }
            Kind::Operator("(") => {
                self.next();
                let tuple = self.tuple_or_empty(true)?;
                self.expect(")")?;
                tuple.unwrap_or(Expr::Tuple(Vec::new()))
            }
            Kind::Operator("[") => Expr::List(self.bracketed("[", "]", Self::expression)?),
            Kind::Operator("{") => Expr::Dict(self.bracketed("{", "}", Self::pair)?),
            _ => return Err(self.unexpected("an expression")),
        })
    }

    fn pair(&mut self) -> Result<(Expr, Expr)> {
        let key = self.expression()?;
        self.expect(":")?;
        Ok((key, self.expression()?))
    }

    /// Parses items in brackets, with an optional trailing comma.
    pub(super) fn bracketed<T>(
        &mut self,
        open: &str,
        close: &str,
        item: fn(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.skip(close) {
            if !items.is_empty() {
                self.expect(",")?;
                if self.skip(close) {
                    break;
                }
            }
            items.push(item(self)?);
        }
        Ok(items)
    }
}
