//! Expansion of a function to the function and its tool.

use crate::signature::{self, Kind};
use crate::tool_fn::{Target, ToolFn};
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Error, ItemFn};

/// Expands `#[tool]`; errors become `compile_error!` next to the function, so that its callers still compile.
pub(crate) fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let message = "`tool` expects a function: `#[tool] fn name(argument: Type) -> Type { .. }`";
            let error = Error::new_spanned(&item, message).into_compile_error();
            return quote!(#error #item);
        }
    };
    let tool = ToolFn::read(options, &function.attrs, &mut function.sig, Kind::Function);
    signature::strip(&mut function.sig);
    let tool = tool.map_or_else(Error::into_compile_error, |tool| type_of(&tool, &function));
    quote!(#function #tool)
}

/// The type of the tool, which has the function's name.
fn type_of(tool: &ToolFn, function: &ItemFn) -> TokenStream {
    let (ident, visibility) = (&function.sig.ident, &function.vis);
    let implementation = tool.implementation(ident, &Target { path: quote!(#ident), receiver: None });
    let about = format!("The tool that calls the function [`{0}`](fn@{0}).", ident.unraw());
    let about_tool = format!("The tool `{}`.", tool.name);
    quote! {
        #[doc = #about]
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #ident {}

        impl #ident {
            #[doc = #about_tool]
            #visibility fn tool() -> Self {
                Self {}
            }
        }

        #implementation
    }
}

#[cfg(test)]
mod tests;
