//! Options of `#[tool(..)]`.

use proc_macro2::TokenStream;
use quote::quote;
use std::time::Duration;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Error, LitBool, LitInt, LitStr, Result, Token, Type};

/// Maximum length of a tool name in the common APIs.
const MAX_NAME_LEN: usize = 64;

const KNOWN: &str = "unknown option: `tool` takes `name = \"..\"`, `description = \"..\"`, `timeout = \"5s\"`, `retries = 2`, `sequential`, `strict`, \
    `output_schema`, `title = \"..\"`, `read_only`, `destructive = false`, `idempotent` and `open_world = false`";

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retries: Option<u32>,
    pub(crate) sequential: Option<bool>,
    pub(crate) strict: Option<bool>,
    pub(crate) output_schema: Option<OutputSchema>,
    annotations: Annotations,
}

/// Type whose schema describes the result.
pub(crate) enum OutputSchema {
    /// The function's return type, or `T` of a `Result<T, E>`.
    Returned,
    Given(Box<Type>),
}

#[derive(Default)]
struct Annotations {
    title: Option<String>,
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| options.set(&meta));
        parser.parse2(tokens)?;
        Ok(options)
    }

    fn set(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let annotations = &mut self.annotations;
        match meta.path.get_ident().map(ToString::to_string).as_deref() {
            Some("name") => once(&mut self.name, name(&text(meta)?)?, meta),
            Some("description") => once(&mut self.description, text(meta)?.value(), meta),
            Some("timeout") => once(&mut self.timeout, duration(&text(meta)?)?, meta),
            Some("retries") => once(&mut self.retries, retries(meta)?, meta),
            Some("sequential") => once(&mut self.sequential, flag(meta)?, meta),
            Some("strict") => once(&mut self.strict, flag(meta)?, meta),
            Some("output_schema") => once(&mut self.output_schema, output_schema(meta)?, meta),
            Some("title") => once(&mut annotations.title, text(meta)?.value(), meta),
            Some("read_only") => once(&mut annotations.read_only, flag(meta)?, meta),
            Some("destructive") => once(&mut annotations.destructive, flag(meta)?, meta),
            Some("idempotent") => once(&mut annotations.idempotent, flag(meta)?, meta),
            Some("open_world") => once(&mut annotations.open_world, flag(meta)?, meta),
            _ => Err(meta.error(KNOWN)),
        }
    }

    /// The method `annotations` of the tool, if there is a hint.
    pub(crate) fn annotations(&self) -> Option<TokenStream> {
        let Annotations { title, read_only, destructive, idempotent, open_world } = &self.annotations;
        let hint = |name: TokenStream, value: &Option<bool>| {
            value.map(|value| quote!(annotations.#name = ::core::option::Option::Some(#value);))
        };
        let title = title.as_ref().map(|title| {
            quote!(annotations.title = ::core::option::Option::Some(::std::string::String::from(#title));)
        });
        let hints: Vec<TokenStream> = title
            .into_iter()
            .chain(hint(quote!(read_only), read_only))
            .chain(hint(quote!(destructive), destructive))
            .chain(hint(quote!(idempotent), idempotent))
            .chain(hint(quote!(open_world), open_world))
            .collect();
        (!hints.is_empty()).then(|| {
            quote! {
                fn annotations(&self) -> ::lm_tools::ToolAnnotations {
                    let mut annotations = ::lm_tools::ToolAnnotations::default();
                    #(#hints)*
                    annotations
                }
            }
        })
    }
}

/// Sets an option, which may be given once.
pub(crate) fn once<T>(slot: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new_spanned(&meta.path, "this option is given twice")),
    }
}

/// Reads `= ".."`.
pub(crate) fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    meta.value()?.parse()
}

/// Reads `= true`, `= false` or nothing, which is true.
fn flag(meta: &ParseNestedMeta<'_>) -> Result<bool> {
    if !meta.input.peek(Token![=]) {
        return Ok(true);
    }
    Ok(meta.value()?.parse::<LitBool>()?.value())
}

fn retries(meta: &ParseNestedMeta<'_>) -> Result<u32> {
    meta.value()?.parse::<LitInt>()?.base10_parse()
}

fn output_schema(meta: &ParseNestedMeta<'_>) -> Result<OutputSchema> {
    if !meta.input.peek(Token![=]) {
        return Ok(OutputSchema::Returned);
    }
    Ok(OutputSchema::Given(Box::new(meta.value()?.parse()?)))
}

fn name(name: &LitStr) -> Result<String> {
    let value = name.value();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=MAX_NAME_LEN).contains(&value.len()) && value.chars().all(allowed) {
        return Ok(value);
    }
    let message = format!("a tool's name is 1 to {MAX_NAME_LEN} ASCII letters, digits, `_` or `-`");
    Err(Error::new(name.span(), message))
}

/// Parses a duration: a whole number with its unit, `500ms`, `5s` or `2m`.
fn duration(text: &LitStr) -> Result<Duration> {
    let value = text.value();
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000)];
    let parsed = units.iter().find_map(|(unit, milliseconds)| {
        let number: u64 = value.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*milliseconds).filter(|&time| time > 0).map(Duration::from_millis)
    });
    parsed.ok_or_else(|| Error::new(text.span(), "expected a time such as `500ms`, `5s` or `2m`"))
}
