//! Expansion of a function to the function and its tool.

use crate::docs::{self, FunctionDocs};
use crate::options::Options;
use crate::signature::{self, Argument, Outcome, Presence};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Error, ItemFn, Result};

/// Expands the macro; errors become `compile_error!` next to the function, so that its callers still compile.
pub(crate) fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let message = "`tool` expects a function: `#[tool] fn name(argument: Type) -> Type { .. }`";
            let error = Error::new_spanned(&item, message).into_compile_error();
            return quote!(#error #item);
        }
    };
    let tool = Options::parse(options).and_then(|options| implementation(&options, &mut function));
    let tool = tool.unwrap_or_else(|error| {
        strip_argument_docs(&mut function);
        error.into_compile_error()
    });
    quote!(#function #tool)
}

fn implementation(options: &Options, function: &mut ItemFn) -> Result<TokenStream> {
    let arguments = documented_arguments(function)?;
    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let name = options.name.clone().unwrap_or_else(|| ident.unraw().to_string());
    let description = description(options, function)?;
    let declarations = arguments.iter().map(declaration);
    let names = arguments.iter().map(|argument| &argument.name);
    let values = arguments.iter().map(value);
    let outcome = match signature::outcome(&function.sig) {
        Outcome::Value => format_ident!("value"),
        Outcome::Result => format_ident!("result"),
    };
    let about = format!("The tool that calls the function [`{ident}`](fn@{ident}).");
    let about_tool = format!("The tool `{name}`.");
    Ok(quote! {
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

        impl ::lm_tools::Tool for #ident {
            fn spec(&self) -> ::lm_tools::ToolSpec {
                ::lm_tools::__private::Declaration::new(#name, #description)
                    #(#declarations)*
                    .spec()
            }

            fn call(
                &self,
                arguments: ::lm_tools::__private::Arguments,
            ) -> ::core::result::Result<::lm_tools::__private::Value, ::lm_tools::ToolError> {
                #[allow(unused_mut)]
                let mut arguments = ::lm_tools::__private::CallArguments::new(arguments, &[#(#names),*])?;
                ::lm_tools::__private::#outcome(#ident(#(#values),*))
            }
        }
    })
}

/// Returns the arguments, with the descriptions from the list under `# Arguments`.
fn documented_arguments(function: &mut ItemFn) -> Result<Vec<Argument>> {
    let listed = FunctionDocs::parse(&function.attrs)?.arguments;
    let mut arguments = signature::arguments(function)?;
    let mut errors = None;
    for (name, text) in listed {
        if let Err(error) = describe(&mut arguments, &name, &text, function) {
            signature::combine(&mut errors, error);
        }
    }
    errors.map_or(Ok(arguments), Err)
}

fn describe(arguments: &mut [Argument], name: &str, text: &str, function: &ItemFn) -> Result<()> {
    let Some(argument) = arguments.iter_mut().find(|argument| argument.name == name) else {
        let message = format!("`# Arguments` names `{name}`, which is no argument of this function");
        return Err(Error::new_spanned(&function.sig.ident, message));
    };
    if !argument.description.is_empty() || !argument.choices.is_empty() {
        let message = format!("`{name}` is described twice: on the argument and under `# Arguments`");
        return Err(Error::new(argument.span, message));
    }
    let (description, choices) =
        docs::split_choices(text).map_err(|message| Error::new(argument.span, message))?;
    argument.description = description;
    argument.choices = choices;
    Ok(())
}

fn description(options: &Options, function: &ItemFn) -> Result<String> {
    let description = match &options.description {
        Some(description) => description.clone(),
        None => FunctionDocs::parse(&function.attrs)?.description,
    };
    if description.is_empty() {
        let message = "a model chooses a tool by its description: write a doc comment on the function";
        return Err(Error::new_spanned(&function.sig.ident, message));
    }
    Ok(description)
}

fn declaration(argument: &Argument) -> TokenStream {
    let Argument { name, ty, presence, description, choices, .. } = argument;
    let method = match presence {
        Presence::Required => format_ident!("required"),
        Presence::Optional => format_ident!("optional"),
    };
    quote!(.#method::<#ty>(#name, #description, &[#(#choices),*]))
}

fn value(argument: &Argument) -> TokenStream {
    let name = &argument.name;
    match argument.presence {
        Presence::Required => quote!(arguments.required(#name)?),
        Presence::Optional => quote!(arguments.optional(#name)?),
    }
}

fn strip_argument_docs(function: &mut ItemFn) {
    for input in &mut function.sig.inputs {
        if let syn::FnArg::Typed(typed) = input {
            typed.attrs.retain(|attribute| !docs::is_doc(attribute));
        }
    }
}

#[cfg(test)]
mod tests;
