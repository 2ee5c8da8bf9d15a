//! Expansion of a function to the function and its tool.

use crate::docs::{self, FunctionDocs};
use crate::options::Options;
use crate::signature::{self, Argument, Outcome, Source};
use proc_macro2::{Ident, Span, TokenStream};
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
    let declared = || arguments.iter().filter(|argument| argument.is_declared());
    let declarations = declared().map(declaration);
    let body = body(function, &arguments);
    let (arguments_ident, context) = (local("arguments"), local("context"));
    let provided = provided(options, function, &arguments);
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

            #[allow(unused_variables)]
            fn call(
                &self,
                #arguments_ident: ::lm_tools::__private::Arguments,
                #context: &::lm_tools::CallContext,
            ) -> ::lm_tools::ToolOutput {
                #body
            }

            #provided
        }
    })
}

/// Body of `call`.
fn body(function: &ItemFn, arguments: &[Argument]) -> TokenStream {
    let ident = &function.sig.ident;
    let names = arguments.iter().filter(|argument| argument.is_declared()).map(|argument| &argument.name);
    let values = arguments.iter().map(value);
    let outcome = match signature::outcome(&function.sig) {
        Outcome::Value => quote!(value),
        Outcome::Result => quote!(result!),
    };
    let (given, context) = (local("arguments"), local("context"));
    let read = quote! {
        #[allow(unused_mut)]
        let mut #given = ::lm_tools::__private::CallArguments::new(#given, &[#(#names),*])?;
    };
    if function.sig.asyncness.is_some() {
        return quote! {
            let #context = ::core::clone::Clone::clone(#context);
            ::lm_tools::ToolOutput::pending(async move {
                let #context = &#context;
                #read
                ::lm_tools::__private::#outcome(#ident(#(#values),*).await)
            })
        };
    }
    let run = local("run");
    quote! {
        let #run = move || -> ::core::result::Result<::lm_tools::__private::Value, ::lm_tools::ToolError> {
            #read
            ::lm_tools::__private::#outcome(#ident(#(#values),*))
        };
        ::core::convert::Into::into(#run())
    }
}

/// Name of a local variable, which hides no function of the caller.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Provided methods of the trait that this tool replaces.
fn provided(options: &Options, function: &ItemFn, arguments: &[Argument]) -> TokenStream {
    let is_async = function.sig.asyncness.map(|_| {
        quote!(
            fn is_async(&self) -> bool {
                true
            }
        )
    });
    let states: Vec<_> = arguments.iter().filter(|argument| argument.source == Source::State).collect();
    let types = states.iter().map(|argument| &argument.ty);
    let states = (!states.is_empty()).then(|| {
        quote! {
            fn states(&self) -> ::std::vec::Vec<::lm_tools::StateType> {
                ::std::vec![#(::lm_tools::StateType::of::<#types>()),*]
            }
        }
    });
    let timeout = options.timeout.map(|timeout| {
        let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        quote! {
            fn timeout(&self) -> ::core::option::Option<::core::time::Duration> {
                ::core::option::Option::Some(::core::time::Duration::from_millis(#milliseconds))
            }
        }
    });
    quote!(#is_async #states #timeout)
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
    if arguments.iter().any(|argument| argument.name == name && !argument.is_declared()) {
        return Ok(()); // The model does not see it.
    }
    let Some(argument) = arguments.iter_mut().find(|argument| argument.name == name) else {
        let message = format!("the list of arguments names `{name}`, which is no argument of this function");
        return Err(Error::new_spanned(&function.sig.ident, message));
    };
    if !argument.description.is_empty() || !argument.choices.is_empty() {
        let message = format!("`{name}` is described twice: on the argument and in the list of arguments");
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
    let Argument { name, ty, source, description, choices, .. } = argument;
    let method = match source {
        Source::Optional => format_ident!("optional"),
        _ => format_ident!("required"),
    };
    quote!(.#method::<#ty>(#name, #description, &[#(#choices),*]))
}

fn value(argument: &Argument) -> TokenStream {
    let Argument { name, ty, .. } = argument;
    let (given, context) = (local("arguments"), local("context"));
    match argument.source {
        Source::Required => quote!(#given.required(#name)?),
        Source::Optional => quote!(#given.optional(#name)?),
        Source::Context => quote!(#context),
        Source::State => quote!(::lm_tools::__private::state::<#ty>(#context)?),
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
