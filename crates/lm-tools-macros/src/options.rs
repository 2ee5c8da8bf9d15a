//! Options of `#[tool(..)]`.

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, LitStr, Result};

/// Maximum length of a tool name in the common APIs.
const MAX_NAME_LEN: usize = 64;

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            let slot = if meta.path.is_ident("name") {
                &mut options.name
            } else if meta.path.is_ident("description") {
                &mut options.description
            } else {
                return Err(
                    meta.error("unknown option: `tool` takes `name = \"..\"` and `description = \"..\"`")
                );
            };
            let value: LitStr = meta.value()?.parse()?;
            if meta.path.is_ident("name") {
                check_name(&value)?;
            }
            match slot.replace(value.value()) {
                None => Ok(()),
                Some(_) => Err(Error::new(meta.path.span(), "this option is given twice")),
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
