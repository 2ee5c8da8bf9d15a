//! A function or method as a tool: its declaration and the call.

use crate::docs::{self, FunctionDocs};
use crate::options::{Options, OutputSchema};
use crate::signature::{self, Argument, Kind, Outcome, Source};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Result, ReturnType, Signature, Type};

/// A function that becomes a tool.
pub(crate) struct ToolFn {
    /// Name in the declaration.
    pub(crate) name: String,
    description: String,
    arguments: Vec<Argument>,
    options: Options,
    outcome: Outcome,
    /// Place of the result's type.
    returned: Span,
    is_async: bool,
    /// Type of the described result.
    output: Option<Type>,
    /// Description of the result, and its type.
    returns: Option<(String, Type)>,
}

/// The function that is called.
pub(crate) struct Target {
    /// Its path.
    pub(crate) path: TokenStream,
    /// Expression of its shared value, for a method with `&self`.
    pub(crate) receiver: Option<TokenStream>,
}

impl ToolFn {
    /// Reads a function, and removes the attributes of its arguments.
    pub(crate) fn read(
        options: TokenStream,
        attributes: &[Attribute],
        signature: &mut Signature,
        kind: Kind,
    ) -> Result<Self> {
        let options = Options::parse(options)?;
        let docs = FunctionDocs::parse(attributes)?;
        let mut arguments = signature::arguments(signature, kind)?;
        describe_all(&mut arguments, docs.arguments, attributes)?;
        check_names(&arguments)?;
        Ok(Self {
            name: options.name.clone().unwrap_or_else(|| signature.ident.unraw().to_string()),
            description: description(&options, docs.description, &signature.ident)?,
            returns: returns(docs.returns, signature),
            output: output(&options, signature)?,
            outcome: signature::outcome(signature),
            returned: match &signature.output {
                ReturnType::Default => Span::call_site(),
                ReturnType::Type(_, ty) => ty.span(),
            },
            is_async: signature.asyncness.is_some(),
            arguments,
            options,
        })
    }

    /// Implements the trait for the type `ty`.
    pub(crate) fn implementation(&self, ty: &Ident, target: &Target) -> TokenStream {
        let declaration = self.declaration();
        let body = self.body(target);
        let (arguments, context) = (local("arguments"), local("context"));
        let provided = self.provided();
        quote! {
            impl ::lm_tools::Tool for #ty {
                fn spec(&self) -> ::lm_tools::ToolSpec {
                    #declaration
                }

                #[allow(unused_variables)]
                fn call(
                    &self,
                    #arguments: ::lm_tools::__private::Arguments,
                    #context: &::lm_tools::CallContext,
                ) -> ::lm_tools::ToolOutput {
                    #body
                }

                #provided
            }
        }
    }

    fn declared(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|argument| argument.is_declared())
    }

    fn declaration(&self) -> TokenStream {
        let (name, description) = (&self.name, &self.description);
        let arguments = self.declared().map(argument);
        let strict = self.options.strict.unwrap_or(false).then(|| quote!(.strict()));
        let returns = self.returns.as_ref().map(|(text, ty)| {
            let ty = self.output.as_ref().unwrap_or(ty);
            quote_spanned!(ty.span()=> .returns(#text, ::lm_tools::__result_schema!(#ty)))
        });
        quote! {
            ::lm_tools::__private::Declaration::new(#name, #description)
                #(.argument(#arguments))*
                #strict
                #returns
                .spec()
        }
    }

    /// Body of `call`.
    fn body(&self, target: &Target) -> TokenStream {
        let names = self.declared().map(Argument::declared_name);
        let values = self.arguments.iter().map(value);
        // Errors about the type of the result point at it.
        let result = |call: TokenStream| match self.outcome {
            Outcome::Value => quote_spanned!(self.returned=> ::lm_tools::__private::value(#call)),
            Outcome::Result => quote_spanned!(self.returned=> ::lm_tools::__tool_result!(#call)),
        };
        let (given, context, receiver) = (local("arguments"), local("context"), local("receiver"));
        let read = quote! {
            #[allow(unused_mut)]
            let mut #given = ::lm_tools::__private::CallArguments::new(#given, &[#(#names),*])?;
        };
        let path = &target.path;
        let shared = target
            .receiver
            .as_ref()
            .map(|value| quote!(let #receiver = ::core::clone::Clone::clone(#value);));
        let this = target.receiver.as_ref().map(|_| quote!(&*#receiver,));
        let call = quote!(#path(#this #(#values),*));
        if self.is_async {
            let result = result(quote!(#call.await));
            return quote! {
                let #context = ::core::clone::Clone::clone(#context);
                #shared
                ::lm_tools::ToolOutput::pending(async move {
                    let #context = &#context;
                    #read
                    #result
                })
            };
        }
        let (run, result) = (local("run"), result(call));
        quote! {
            #shared
            let #run = move || -> ::core::result::Result<::lm_tools::__private::Value, ::lm_tools::ToolError> {
                #read
                #result
            };
            ::core::convert::Into::into(#run())
        }
    }

    /// Provided methods of the trait that this tool replaces.
    fn provided(&self) -> TokenStream {
        let is_async = self.is_async.then(|| {
            quote! {
                fn is_async(&self) -> bool {
                    true
                }
            }
        });
        let states: Vec<_> = self.arguments.iter().filter(|a| a.source == Source::State).collect();
        let types = states.iter().map(|argument| &argument.ty);
        let states = (!states.is_empty()).then(|| {
            quote! {
                fn states(&self) -> ::std::vec::Vec<::lm_tools::StateType> {
                    ::std::vec![#(::lm_tools::StateType::of::<#types>()),*]
                }
            }
        });
        let timeout = self.options.timeout.map(|timeout| {
            let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            quote! {
                fn timeout(&self) -> ::core::option::Option<::core::time::Duration> {
                    ::core::option::Option::Some(::core::time::Duration::from_millis(#milliseconds))
                }
            }
        });
        let retries = self.options.retries.map(|retries| {
            quote! {
                fn retries(&self) -> ::core::option::Option<::lm_tools::RetryPolicy> {
                    let policy = ::core::default::Default::default();
                    ::core::option::Option::Some(::lm_tools::RetryPolicy { max_retries: #retries, ..policy })
                }
            }
        });
        let sequential = self.options.sequential.map(|sequential| {
            quote! {
                fn is_sequential(&self) -> bool {
                    #sequential
                }
            }
        });
        let output = self.output.as_ref().map(|ty| {
            let schema = quote_spanned!(ty.span()=> ::lm_tools::__private::output_schema::<#ty>());
            quote! {
                fn output_schema(&self) -> ::core::option::Option<::lm_tools::__private::Value> {
                    ::core::option::Option::Some(#schema)
                }
            }
        });
        let annotations = self.options.annotations();
        quote!(#is_async #states #timeout #retries #sequential #output #annotations)
    }
}

/// Name of a local variable, which hides no function of the caller.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Adds the descriptions of the list under `# Arguments`.
fn describe_all(
    arguments: &mut [Argument],
    listed: Vec<(String, String)>,
    attributes: &[Attribute],
) -> Result<()> {
    let mut errors = None;
    for (name, text) in listed {
        let described = match arguments.iter_mut().find(|argument| argument.name == name) {
            Some(argument) if argument.is_declared() => argument.describe(&text),
            Some(_) => Ok(()), // The model does not see it.
            None => {
                let message = format!(
                    "the docs describe an argument `{name}`, which this function does not have: rename or remove it there"
                );
                Err(Error::new(docs::line_of(attributes, &name), message))
            }
        };
        if let Err(error) = described {
            signature::combine(&mut errors, error);
        }
    }
    errors.map_or(Ok(()), Err)
}

/// Two arguments cannot have one name in the declaration.
fn check_names(arguments: &[Argument]) -> Result<()> {
    let declared: Vec<_> = arguments.iter().filter(|argument| argument.is_declared()).collect();
    for (index, argument) in declared.iter().enumerate() {
        let name = argument.declared_name();
        let span = argument.options.rename.as_ref().map_or(argument.span, syn::LitStr::span);
        if name.is_empty() {
            return Err(Error::new(span, "the model needs a name for this argument"));
        }
        if declared[..index].iter().any(|other| other.declared_name() == name) {
            return Err(Error::new(span, format!("another argument is called `{name}`")));
        }
    }
    Ok(())
}

fn description(options: &Options, docs: String, function: &Ident) -> Result<String> {
    let description = options.description.clone().unwrap_or(docs);
    if description.is_empty() {
        let message = "a model chooses a tool by its description: write a doc comment on the function";
        return Err(Error::new_spanned(function, message));
    }
    Ok(description)
}

fn output(options: &Options, signature: &Signature) -> Result<Option<Type>> {
    match &options.output_schema {
        None => Ok(None),
        Some(OutputSchema::Given(ty)) => Ok(Some((**ty).clone())),
        Some(OutputSchema::Returned) => signature::returned(signature).map(Some).ok_or_else(|| {
            let message = "the type of the result is not named here: write `#[tool(output_schema = Type)]`";
            Error::new_spanned(&signature.output, message)
        }),
    }
}

/// The described result of a function with a named return type.
fn returns(docs: String, signature: &Signature) -> Option<(String, Type)> {
    let is_described = !docs.is_empty() && !matches!(signature.output, ReturnType::Default);
    signature::returned(signature).filter(|_| is_described).map(|ty| (docs, ty))
}

/// Builder of an argument's schema.
fn argument(argument: &Argument) -> TokenStream {
    let Argument { ty, source, description, choices, options, .. } = argument;
    let name = argument.declared_name();
    let is_optional = *source == Source::Optional || options.default.is_some();
    let calls = options.calls(ty);
    let optional = is_optional.then(|| quote!(.optional()));
    let choices = (!choices.is_empty()).then(|| quote!(.texts(&[#(#choices),*])));
    // Errors about the type point at it.
    let new = quote_spanned!(ty.span()=> ::lm_tools::__private::Argument::<#ty>::new(#name, #description));
    quote!(#new #choices #calls #optional)
}

fn value(argument: &Argument) -> TokenStream {
    let ty = &argument.ty;
    let name = argument.declared_name();
    let (given, context) = (local("arguments"), local("context"));
    match (argument.source, argument.options.default_value(ty)) {
        (Source::Required | Source::Optional, Some(default)) => {
            quote!(#given.optional::<#ty>(#name)?.unwrap_or_else(|| #default))
        }
        (Source::Required, None) => quote_spanned!(ty.span()=> #given.required::<#ty>(#name)?),
        (Source::Optional, None) => quote_spanned!(ty.span()=> #given.optional::<#ty>(#name)?),
        (Source::Context, _) => quote!(#context),
        (Source::State, _) => quote!(::lm_tools::__private::state::<#ty>(#context)?),
    }
}
