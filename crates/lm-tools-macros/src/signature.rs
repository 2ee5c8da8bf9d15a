//! Arguments and result of a tool function.

use crate::arg_options::{ArgOptions, is_arg};
use crate::docs;
use crate::types::{check_type, first_parameter, last_segment, source};
use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, FnArg, Pat, PatType, Receiver, Result, ReturnType, Signature, Type};

/// An argument of the function.
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// The declared type: `T` for an `Option<T>`, and for a `State<T>`.
    pub(crate) ty: Type,
    pub(crate) source: Source,
    pub(crate) description: String,
    pub(crate) choices: Vec<String>,
    pub(crate) options: ArgOptions,
}

/// Origin of an argument's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// A required argument of the call.
    Required,
    /// An optional argument of the call.
    Optional,
    /// The context of the call, which is not in the declaration.
    Context,
    /// A state of the toolset, which is not in the declaration.
    State,
}

impl Argument {
    /// Sets the description, and the choices at its end.
    ///
    /// # Errors
    /// When the option is repeated, or the choices are not a list.
    pub(crate) fn describe(&mut self, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if !self.description.is_empty() || !self.choices.is_empty() {
            let message = format!("`{}` is described twice: keep one description", self.name);
            return Err(Error::new(self.span, message));
        }
        let split = docs::split_choices(text).map_err(|message| Error::new(self.span, message))?;
        (self.description, self.choices) = split;
        Ok(())
    }

    /// Name in the declaration.
    pub(crate) fn declared_name(&self) -> String {
        self.options.rename.as_ref().map_or_else(|| self.name.clone(), syn::LitStr::value)
    }

    /// Returns true if the model gives the value.
    pub(crate) fn is_declared(&self) -> bool {
        matches!(self.source, Source::Required | Source::Optional)
    }
}

/// Kind of the function's return type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    Value,
    Result,
}

/// Kind of the function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A free function.
    Function,
    /// A function of an `impl` block under `#[tools]`, with or without `&self`.
    Method,
}

/// Reads the arguments and removes their attributes, which rustc allows only as input of a macro.
pub(crate) fn arguments(signature: &mut Signature, kind: Kind) -> Result<Vec<Argument>> {
    let mut errors = check(signature).err();
    let mut arguments = Vec::new();
    for input in &mut signature.inputs {
        match argument(input, kind) {
            Ok(argument) => arguments.extend(argument),
            Err(error) => combine(&mut errors, error),
        }
    }
    errors.map_or(Ok(arguments), Err)
}

/// Removes the attributes of arguments that rustc does not allow there.
pub(crate) fn strip(signature: &mut Signature) {
    for input in &mut signature.inputs {
        let attributes = match input {
            FnArg::Typed(typed) => &mut typed.attrs,
            FnArg::Receiver(receiver) => &mut receiver.attrs,
        };
        attributes.retain(|attribute| !docs::is_doc(attribute) && !is_arg(attribute));
    }
}

pub(crate) fn outcome(signature: &Signature) -> Outcome {
    match &signature.output {
        ReturnType::Type(_, ty) if last_segment(ty).is_some_and(|s| s.ident == "Result") => Outcome::Result,
        _ => Outcome::Value,
    }
}

/// The type of a successful result: `T` for a `Result<T, E>`; `None` if it has no name here.
pub(crate) fn returned(signature: &Signature) -> Option<Type> {
    match &signature.output {
        ReturnType::Default => Some(syn::parse_quote!(())),
        ReturnType::Type(_, ty) if matches!(**ty, Type::ImplTrait(_)) => None,
        ReturnType::Type(_, ty) if outcome(signature) == Outcome::Result => first_parameter(ty),
        ReturnType::Type(_, ty) => Some((**ty).clone()),
    }
}

pub(crate) fn combine(errors: &mut Option<Error>, error: Error) {
    match errors {
        Some(errors) => errors.combine(error),
        None => *errors = Some(error),
    }
}

fn check(signature: &Signature) -> Result<()> {
    let wrong: [(Option<Span>, &str); 3] = [
        (signature.unsafety.map(|token| token.span()), "a model calls this function: it cannot be `unsafe`"),
        (
            (!signature.generics.params.is_empty()).then(|| signature.generics.span()),
            "a declaration names one type for each argument: write the concrete types in place of generics",
        ),
        (signature.variadic.as_ref().map(Spanned::span), "a tool's arguments have names: no variadics"),
    ];
    let mut errors = None;
    for (span, message) in wrong {
        if let Some(span) = span {
            combine(&mut errors, Error::new(span, message));
        }
    }
    errors.map_or(Ok(()), Err)
}

/// Reads an argument; `None` for `&self`.
fn argument(input: &mut FnArg, kind: Kind) -> Result<Option<Argument>> {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => return check_receiver(receiver, kind).map(|()| None),
    };
    let ident = name(typed)?;
    let (ty, source) = source(&typed.ty);
    if source != Source::Context {
        check_type(&ty)?;
    }
    let mut argument = Argument {
        name: ident.unraw().to_string(),
        span: ident.span(),
        ty,
        source,
        description: String::new(),
        choices: Vec::new(),
        options: ArgOptions::default(),
    };
    read_attributes(&mut argument, typed)?;
    Ok(Some(argument))
}

/// Reads docs and options of an argument, and removes them.
fn read_attributes(argument: &mut Argument, typed: &mut PatType) -> Result<()> {
    if let Some(cfg) = typed.attrs.iter().find(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr"))
    {
        let message = "an argument of a tool is there in every build: put the `#[cfg]` on the function, and write one function for each case";
        return Err(Error::new_spanned(cfg, message));
    }
    let given = typed.attrs.iter().find(|attribute| is_arg(attribute)).cloned();
    argument.options = ArgOptions::take(&mut typed.attrs)?;
    if let (Some(given), false) = (given, argument.is_declared()) {
        let message = "the model does not see this argument: remove the `#[arg]`";
        return Err(Error::new_spanned(given, message));
    }
    if argument.options.default.is_some() && argument.source == Source::Optional {
        let message = "an argument with a default is never `None`: write `T` in place of `Option<T>`, or remove the default";
        return Err(Error::new_spanned(&typed.ty, message));
    }
    argument.describe(&docs::description(&typed.attrs))?;
    if let Some(description) = argument.options.description.take() {
        argument.describe(&description.value()).map_err(|error| Error::new(description.span(), error))?;
    }
    typed.attrs.retain(|attribute| !docs::is_doc(attribute));
    Ok(())
}

fn check_receiver(receiver: &Receiver, kind: Kind) -> Result<()> {
    let message = match kind {
        Kind::Function => {
            "a method is a tool of its type: write `#[tools]` on the `impl` block, and `#[tool]` on the method inside it"
        }
        Kind::Method if receiver.colon_token.is_some() => {
            "a tool shares its value with other calls: take `&self`"
        }
        Kind::Method if receiver.reference.is_none() => {
            "a tool may be called again: take `&self` in place of `self`"
        }
        Kind::Method if receiver.mutability.is_some() => {
            "calls may run at the same time: take `&self`, and keep what changes in a `Mutex` or an atomic"
        }
        Kind::Method => return Ok(()),
    };
    Err(Error::new_spanned(receiver, message))
}

fn name(typed: &PatType) -> Result<Ident> {
    match &*typed.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            Ok(pattern.ident.clone())
        }
        pattern => {
            let message =
                "the model needs a name for this argument: take it by name and match inside the function";
            Err(Error::new_spanned(pattern, message))
        }
    }
}
