//! Parsing of tags.

use std::collections::HashSet;
use std::sync::Arc;

use super::ast::{Block, Body, Expr, For, MacroDefinition, Node, Statement, Target};
use super::parser::{Parser, Use};
use super::tokens::Kind;
use crate::error::BoxedResult as Result;
use crate::text::Text;

impl Parser {
    /// Parses statements up to an end tag in `ends`, and returns its name; to the end of the template if
    /// `ends` is empty.
    pub(super) fn body(&mut self, ends: &[&str]) -> Result<(Body, String)> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            let statement = match self.next() {
                Kind::End if ends.is_empty() => return Ok((body, String::new())),
                Kind::End => {
                    return Err(
                        self.error(format!("unexpected end of template, expected {}", ends.join(" or ")))
                    );
                }
                Kind::Data(data) => Statement::Data(Text::template(data)),
                Kind::VariableBegin => {
                    let value = self.tuple(true)?;
                    self.expect_kind(&Kind::VariableEnd)?;
                    Statement::Print(vec![value])
                }
                _ => {
                    let name = self.expect_name()?;
                    if ends.contains(&name.as_str()) {
                        return Ok((body, name));
                    }
                    let statement = self.nested(|parser| parser.statement(&name))?;
                    self.expect_kind(&Kind::BlockEnd)?;
                    statement
                }
            };
            body.push(Node { line, statement });
        }
    }

    /// Parses the end of a tag and its body, up to the end tag.
    fn tag_body(&mut self, ends: &[&str]) -> Result<(Body, String)> {
        self.skip(":");
        self.expect_kind(&Kind::BlockEnd)?;
        self.body(ends)
    }

    /// Parses a body with its own scope, in which unknown filters are refused.
    fn inner_body(&mut self, end: &str) -> Result<Body> {
        let known = self.unknown.len();
        let (body, _) = self.tag_body(&[end])?;
        self.refuse_unknown(known)?;
        Ok(body)
    }

    /// Parses a body that is a function in Python: `break` inside it cannot leave a loop around it.
    fn function_body(&mut self, end: &str) -> Result<Body> {
        let loops = std::mem::take(&mut self.loops);
        let body = self.inner_body(end);
        self.loops = loops;
        body
    }

    fn statement(&mut self, name: &str) -> Result<Statement> {
        match name {
            "if" => self.if_tag(),
            "for" => self.for_tag(),
            "set" => self.set_tag(),
            "macro" => self.macro_tag(),
            "call" => self.call_tag(),
            "with" => self.with_tag(),
            "print" => Ok(Statement::Print(self.list_of_expressions()?)),
            "filter" => {
                let filters = self.filters(true)?;
                Ok(Statement::FilterBlock { filters, body: self.inner_body("endfilter")? })
            }
            "generation" => Ok(Statement::Generation(self.function_body("endgeneration")?)),
            "block" => self.block_tag(),
            "break" | "continue" if self.loops == 0 => Err(self.error(format!("'{name}' outside of a loop"))),
            "break" => Ok(Statement::Break),
            "continue" => Ok(Statement::Continue),
            "include" | "import" | "from" | "extends" | "autoescape" => {
                Err(self.error(format!("'{name}' is not offered: a chat template is one file of plain text")))
            }
            _ => Err(self.error(format!("unknown tag '{name}'"))),
        }
    }

    fn list_of_expressions(&mut self) -> Result<Vec<Expr>> {
        let mut values = Vec::new();
        while *self.peek() != Kind::BlockEnd {
            if !values.is_empty() {
                self.expect(",")?;
            }
            values.push(self.expression()?);
        }
        Ok(values)
    }

    fn if_tag(&mut self) -> Result<Statement> {
        let known = self.unknown.len();
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.tuple(false)?;
            let (body, end) = self.tag_body(&["elif", "else", "endif"])?;
            branches.push((test, body));
            if end == "else" {
                otherwise = self.tag_body(&["endif"])?.0;
            }
            if end != "elif" {
                break;
            }
        }
        // In a branch, an unknown filter fails only when executed.
        self.unknown.truncate(known);
        Ok(Statement::If { branches, otherwise })
    }

    fn for_tag(&mut self) -> Result<Statement> {
        let target = self.target(false)?;
        if !self.skip_name("in") {
            return Err(self.unexpected("'in'"));
        }
        let items = self.tuple(false)?;
        let known = self.unknown.len();
        let test = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        self.loops += 1;
        let body = self.tag_body(&["endfor", "else"]);
        self.loops -= 1;
        let (body, end) = body?;
        let otherwise = if end == "else" { self.tag_body(&["endfor"])?.0 } else { Vec::new() };
        self.refuse_unknown(known)?;
        Ok(Statement::For(Arc::new(For { target, items, test, recursive, body, otherwise })))
    }

    fn set_tag(&mut self) -> Result<Statement> {
        let target = self.target(true)?;
        if self.skip("=") {
            return Ok(Statement::Set { target, value: self.tuple(true)? });
        }
        let filters = self.filters(false)?;
        Ok(Statement::SetBlock { target, filters, body: self.inner_body("endset")? })
    }

    fn with_tag(&mut self) -> Result<Statement> {
        let mut variables = Vec::new();
        while !matches!(self.peek(), Kind::BlockEnd) && !self.peek().is(":") {
            if !variables.is_empty() {
                self.expect(",")?;
            }
            let target = self.target(false)?;
            self.expect("=")?;
            variables.push((target, self.expression()?));
        }
        Ok(Statement::With { variables, body: self.inner_body("endwith")? })
    }

    fn block_tag(&mut self) -> Result<Statement> {
        let name = self.expect_name()?;
        let scoped = self.skip_name("scoped");
        let uses = self.uses();
        let body = self.function_body("endblock")?;
        // A block receives nothing of the macro around it.
        self.forget_uses(uses);
        self.skip_name(&name);
        let block = Arc::new(Block { scoped, body });
        match self.blocks.insert(name.as_str().into(), block.clone()) {
            Some(_) => Err(self.error(format!("block '{name}' defined twice"))),
            None => Ok(Statement::Block(block)),
        }
    }

    fn macro_tag(&mut self) -> Result<Statement> {
        let name = self.expect_name()?;
        let parameters = self.parameters()?;
        let uses = self.uses();
        let body = self.function_body("endmacro")?;
        Ok(Statement::Macro(Arc::new(self.define(Some(name.into()), parameters, body, uses)?)))
    }

    fn call_tag(&mut self) -> Result<Statement> {
        let has_parameters = self.peek().is("(");
        let parameters = if has_parameters { self.parameters()? } else { Vec::new() };
        let Expr::Call(callee, arguments) = self.expression()? else {
            return Err(self.error("expected a call"));
        };
        if arguments.named.iter().any(|(name, _)| name.as_str() == "caller") {
            return Err(self.error("keyword argument repeated: caller"));
        }
        let uses = self.uses();
        let body = self.function_body("endcall")?;
        let caller = Arc::new(self.define(None, parameters, body, uses)?);
        Ok(Statement::Call { callee: *callee, arguments, caller })
    }

    fn define(
        &self,
        name: Option<Arc<str>>,
        parameters: Vec<(Arc<str>, Option<Expr>)>,
        body: Body,
        uses: usize,
    ) -> Result<MacroDefinition> {
        let parameter = |name: &str| parameters.iter().find(|(parameter, _)| &**parameter == name);
        let reads = |name: &str| self.reads(uses, name);
        let reads_caller = reads("caller");
        if reads_caller && matches!(parameter("caller"), Some((_, None))) {
            return Err(self.error("the special \"caller\" argument must be omitted or be given a default"));
        }
        Ok(MacroDefinition {
            reads_caller,
            reads_varargs: reads("varargs") && parameter("varargs").is_none(),
            reads_kwargs: reads("kwargs") && parameter("kwargs").is_none(),
            name,
            parameters,
            body,
        })
    }

    fn parameters(&mut self) -> Result<Vec<(Arc<str>, Option<Expr>)>> {
        self.expect("(")?;
        let mut parameters: Vec<(Arc<str>, Option<Expr>)> = Vec::new();
        let mut names = HashSet::new();
        while !self.skip(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
            }
            let name = self.variable()?;
            if !names.insert(name.clone()) {
                return Err(self.error(format!("duplicate argument '{name}' in function definition")));
            }
            self.used(&name, Use::Store);
            let default = if self.skip("=") { Some(self.expression()?) } else { None };
            if default.is_none() && parameters.last().is_some_and(|(_, default)| default.is_some()) {
                return Err(self.error("non-default argument follows default argument"));
            }
            parameters.push((name, default));
        }
        Ok(parameters)
    }

    /// Parses a name that can be assigned to.
    fn variable(&mut self) -> Result<Arc<str>> {
        let name = self.expect_name()?;
        match name.as_str() {
            "true" | "false" | "none" | "True" | "False" | "None" => {
                Err(self.error(format!("can't assign to '{name}'")))
            }
            _ => Ok(name.into()),
        }
    }

    /// Parses an assignment target: a name, several, or (with `attributes`) an attribute of a namespace.
    fn target(&mut self, attributes: bool) -> Result<Target> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        while matches!(self.peek(), Kind::Name(name) if name != "in") || self.peek().is("(") {
            targets.push(self.nested(|parser| parser.single_target(attributes))?);
            if !self.skip(",") {
                break;
            }
            is_tuple = true;
        }
        match targets.pop() {
            Some(target) if !is_tuple => Ok(target),
            Some(last) => {
                targets.push(last);
                Ok(Target::Tuple(targets))
            }
            None => Err(self.unexpected("a name")),
        }
    }

    fn single_target(&mut self, attributes: bool) -> Result<Target> {
        if self.skip("(") {
            let target = self.target(attributes)?;
            self.expect(")")?;
            return Ok(target);
        }
        let name = self.variable()?;
        if attributes && self.skip(".") {
            return Ok(Target::Attribute(name, Text::template(self.expect_name()?)));
        }
        self.used(&name, Use::Store);
        Ok(Target::Name(name))
    }
}
