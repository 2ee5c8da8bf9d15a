//! Options of `#[tool(..)]`.

use proc_macro2::TokenStream;
use std::time::Duration;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, LitStr, Result};

/// Maximum length of a tool name in the common APIs.
const MAX_NAME_LEN: usize = 64;

const TWICE: &str = "this option is given twice";

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) timeout: Option<Duration>,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("timeout") {
                let value: LitStr = meta.value()?.parse()?;
                return match options.timeout.replace(duration(&value)?) {
                    None => Ok(()),
                    Some(_) => Err(Error::new(meta.path.span(), TWICE)),
                };
            }
            let slot = if meta.path.is_ident("name") {
                &mut options.name
            } else if meta.path.is_ident("description") {
                &mut options.description
            } else {
                return Err(meta.error(
                    "unknown option: `tool` takes `name = \"..\"`, `description = \"..\"` and `timeout = \"5s\"`",
                ));
            };
            let value: LitStr = meta.value()?.parse()?;
            if meta.path.is_ident("name") {
                check_name(&value)?;
            }
            match slot.replace(value.value()) {
                None => Ok(()),
                Some(_) => Err(Error::new(meta.path.span(), TWICE)),
            }
        });
        parser.parse2(tokens)?;
        Ok(options)
    }
}

fn check_name(name: &LitStr) -> Result<()> {
    let value = name.value();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=MAX_NAME_LEN).contains(&value.len()) && value.chars().all(allowed) {
        return Ok(());
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
