//! Options of `#[arg(..)]` on an argument.

use crate::options::{once, text};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, ExprRange, Lit, LitStr, RangeLimits, Result, Token, Type};

const KNOWN: &str = "unknown option: `arg` takes `default = value`, `range(1..=10)`, `length(1..=80)`, `pattern = \"..\"`, \
    `choices(..)`, `items(..)`, `example = value`, `rename = \"..\"` and `description = \"..\"`";
const KNOWN_ITEM: &str =
    "unknown option: `items` takes `range(1..=10)`, `length(1..=80)`, `pattern = \"..\"` and `choices(..)`";

/// Options of an argument.
#[derive(Default)]
pub(crate) struct ArgOptions {
    pub(crate) rename: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    /// `None` inside: the type's own default.
    pub(crate) default: Option<Option<Expr>>,
    example: Option<Expr>,
    limits: Limits,
    items: Option<(Span, Limits)>,
}

/// Restrictions of a value.
#[derive(Default)]
struct Limits {
    range: Option<Expr>,
    length: Option<Expr>,
    pattern: Option<LitStr>,
    choices: Option<Punctuated<Expr, Token![,]>>,
}

impl ArgOptions {
    /// Takes the `#[arg]` attributes of an argument.
    pub(crate) fn take(attributes: &mut Vec<Attribute>) -> Result<Self> {
        let mut options = Self::default();
        let (given, others) = std::mem::take(attributes).into_iter().partition(is_arg);
        *attributes = others;
        let given: Vec<Attribute> = given;
        for attribute in &given {
            attribute.parse_nested_meta(|meta| options.set(&meta))?;
        }
        options.check_default()?;
        Ok(options)
    }

    fn set(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match meta.path.get_ident().map(ToString::to_string).as_deref() {
            Some("rename") => once(&mut self.rename, text(meta)?, meta),
            Some("description") => once(&mut self.description, text(meta)?, meta),
            Some("example") => once(&mut self.example, meta.value()?.parse()?, meta),
            Some("default") if meta.input.peek(Token![=]) => {
                once(&mut self.default, Some(meta.value()?.parse()?), meta)
            }
            Some("default") => once(&mut self.default, None, meta),
            Some("items") => {
                let mut items = Limits::default();
                meta.parse_nested_meta(|meta| items.set(&meta, KNOWN_ITEM))?;
                once(&mut self.items, (meta.path.span(), items), meta)
            }
            _ => self.limits.set(meta, KNOWN),
        }
    }

    /// A literal is compared with the literals of the limits here; rustc checks the types.
    fn check_default(&self) -> Result<()> {
        let Some(Some(default)) = &self.default else { return Ok(()) };
        let Limits { range, length, choices, .. } = &self.limits;
        let wrong = |relation: &str, limit: &dyn ToTokens| {
            let message = format!("this default is {relation} `{}`", limit.to_token_stream());
            Err(Error::new_spanned(default, message))
        };
        let characters = text_of(default).map(|text| text.chars().count() as f64);
        for (range, value) in [(range, number(default)), (length, characters)] {
            if let (Some(Expr::Range(range)), Some(value)) = (range, value)
                && !contains(range, value)
            {
                return wrong("outside", range);
            }
        }
        match choices {
            Some(choices)
                if number(default).is_some() && !choices.iter().any(|c| number(c) == number(default)) =>
            {
                wrong("not one of", choices)
            }
            Some(choices)
                if text_of(default).is_some() && !choices.iter().any(|c| text_of(c) == text_of(default)) =>
            {
                wrong("not one of", choices)
            }
            _ => Ok(()),
        }
    }

    /// Calls on the builder of the argument's schema.
    pub(crate) fn calls(&self, ty: &Type) -> TokenStream {
        let limits = self.limits.calls();
        let default = self.default_value(ty).map(|value| quote!(.default(#value)));
        let example = self.example.as_ref().map(|example| {
            let value = typed(example, ty);
            quote!(.example(#value))
        });
        let items = self.items.as_ref().map(|(span, limits)| {
            let calls = limits.calls();
            quote_spanned!(*span=> .items(|item| item #calls))
        });
        quote!(#limits #items #default #example)
    }

    /// Expression of the default.
    pub(crate) fn default_value(&self, ty: &Type) -> Option<TokenStream> {
        let default = self.default.as_ref()?;
        Some(match default {
            Some(value) => typed(value, ty),
            None => quote!(<#ty as ::core::default::Default>::default()),
        })
    }
}

impl Limits {
    fn set(&mut self, meta: &ParseNestedMeta<'_>, known: &str) -> Result<()> {
        match meta.path.get_ident().map(ToString::to_string).as_deref() {
            Some("range") => once(&mut self.range, range(meta, "range(1..=10)")?, meta),
            Some("length") => once(&mut self.length, range(meta, "length(1..=80)")?, meta),
            Some("pattern") => once(&mut self.pattern, pattern(meta)?, meta),
            Some("choices") => {
                let content;
                syn::parenthesized!(content in meta.input);
                let choices = Punctuated::parse_terminated(&content)?;
                if choices.is_empty() {
                    return Err(meta.error("write the choices: `choices(\"a\", \"b\")`"));
                }
                once(&mut self.choices, choices, meta)
            }
            _ => Err(meta.error(known)),
        }
    }

    fn calls(&self) -> TokenStream {
        let call = |name: &str, value: &dyn ToTokens, span: Span| {
            let name = syn::Ident::new(name, span);
            quote_spanned!(span=> .#name(#value))
        };
        let range = self.range.as_ref().map(|range| call("range", range, range.span()));
        let length = self.length.as_ref().map(|range| call("length", range, range.span()));
        let pattern = self.pattern.as_ref().map(|pattern| call("pattern", pattern, pattern.span()));
        let choices = self.choices.as_ref().map(|choices| {
            let values = choices.iter().map(|choice| quote_spanned!(choice.span()=> .choice(#choice)));
            quote!(#(#values)*)
        });
        quote!(#choices #range #length #pattern)
    }
}

pub(crate) fn is_arg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("arg")
}

/// Reads `(1..=10)`.
fn range(meta: &ParseNestedMeta<'_>, example: &str) -> Result<Expr> {
    let content;
    syn::parenthesized!(content in meta.input);
    let value: Expr = content.parse()?;
    let wrong = |message: &str| Err(Error::new_spanned(&value, format!("{message}: write `{example}`")));
    let Expr::Range(ExprRange { start, end, limits, .. }) = &value else {
        return wrong("expected a range");
    };
    if start.is_none() && end.is_none() {
        return wrong("this range has neither a start nor an end");
    }
    let ends = |end: &Option<Box<Expr>>| end.as_deref().and_then(number);
    match (ends(start), ends(end), limits) {
        (Some(start), Some(end), RangeLimits::Closed(_)) if start > end => wrong("this range is empty"),
        (Some(start), Some(end), RangeLimits::HalfOpen(_)) if start >= end => wrong("this range is empty"),
        _ => Ok(value),
    }
}

/// Reads `= ".."`, a regular expression.
fn pattern(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    let pattern = text(meta)?;
    match defect(&pattern.value()) {
        None => Ok(pattern),
        Some(defect) => {
            Err(Error::new(pattern.span(), format!("this is not a regular expression: {defect}")))
        }
    }
}

/// Defect of a pattern that every syntax of regular expressions has. Patterns are those of ECMA-262, which
/// differs from the parser's syntax in look-around, back-references and a few escapes: these are left to the
/// validator of the schema.
fn defect(pattern: &str) -> Option<String> {
    use regex_syntax::ast::ErrorKind;
    let error = regex_syntax::ast::parse::Parser::new().parse(pattern).err()?;
    let is_defect = match error.kind() {
        ErrorKind::GroupUnclosed
        | ErrorKind::GroupUnopened
        | ErrorKind::RepetitionMissing
        | ErrorKind::RepetitionCountInvalid
        | ErrorKind::ClassRangeInvalid
        | ErrorKind::EscapeUnexpectedEof => true,
        // Classes of ECMA-262 that begin with their end.
        ErrorKind::ClassUnclosed => !pattern.contains("[]") && !pattern.contains("[^]"),
        _ => false,
    };
    let character = pattern[..error.span().start.offset].chars().count() + 1;
    is_defect.then(|| format!("{} at character {character}", error.kind()))
}

fn contains(range: &ExprRange, value: f64) -> bool {
    let end = |end: &Option<Box<Expr>>| end.as_deref().and_then(number);
    let above = end(&range.start).is_none_or(|start| value >= start);
    let below = end(&range.end).is_none_or(|end| match range.limits {
        RangeLimits::Closed(_) => value <= end,
        RangeLimits::HalfOpen(_) => value < end,
    });
    above && below
}

/// Value of a number literal.
fn number(value: &Expr) -> Option<f64> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(value), .. }) => value.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(value), .. }) => value.base10_parse().ok(),
        Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => number(expr).map(|value| -value),
        _ => None,
    }
}

/// Value of a text literal.
fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// The expression as a `ty`: texts become the owned type of the argument.
fn typed(value: &Expr, ty: &Type) -> TokenStream {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => {
            quote_spanned!(value.span()=> <#ty as ::core::convert::From<&str>>::from(#value))
        }
        _ => value.to_token_stream(),
    }
}
