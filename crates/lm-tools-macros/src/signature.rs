//! Arguments and result of a tool function.

use crate::docs;
use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, ItemFn, Pat, PatType, PathArguments, Result, ReturnType, Signature, Type,
};

/// An argument of the function.
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// The declared type: `T` for an `Option<T>`, and for a `State<T>`.
    pub(crate) ty: Type,
    pub(crate) source: Source,
    pub(crate) description: String,
    pub(crate) choices: Vec<String>,
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

/// Reads the arguments and removes their doc comments, which rustc allows only as input of a macro.
pub(crate) fn arguments(function: &mut ItemFn) -> Result<Vec<Argument>> {
    check(&function.sig)?;
    let mut arguments = Vec::new();
    let mut errors: Option<Error> = None;
    for input in &mut function.sig.inputs {
        match argument(input) {
            Ok(argument) => arguments.push(argument),
            Err(error) => combine(&mut errors, error),
        }
    }
    errors.map_or(Ok(arguments), Err)
}

pub(crate) fn outcome(signature: &Signature) -> Outcome {
    match &signature.output {
        ReturnType::Type(_, ty) if last_segment(ty).is_some_and(|s| s.ident == "Result") => Outcome::Result,
        _ => Outcome::Value,
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

fn argument(input: &mut FnArg) -> Result<Argument> {
    let typed = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            let message = "a tool is a free function: take `State<T>` for what it shares with other calls, or implement `lm_tools::Tool` for the type that keeps the state";
            return Err(Error::new_spanned(receiver, message));
        }
    };
    let ident = name(typed)?;
    let name = ident.unraw().to_string();
    let (ty, source) = source(&typed.ty);
    if source != Source::Context {
        check_type(&ty)?;
    }
    let (description, choices) = docs::split_choices(&docs::description(&typed.attrs))
        .map_err(|message| Error::new_spanned(&typed.pat, message))?;
    typed.attrs.retain(|attribute| !docs::is_doc(attribute));
    Ok(Argument { name, span: ident.span(), ty, source, description, choices })
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

/// Finds the origin of an argument's value by its type.
fn source(ty: &Type) -> (Type, Source) {
    if let Type::Reference(reference) = ty
        && last_segment(&reference.elem).is_some_and(|segment| segment.ident == "CallContext")
    {
        return (ty.clone(), Source::Context);
    }
    let inner = |name| parameter_of(ty, name);
    match (inner("Option"), inner("State")) {
        (Some(inner), _) => (inner, Source::Optional),
        (None, Some(inner)) => (inner, Source::State),
        (None, None) => (ty.clone(), Source::Required),
    }
}

fn check_type(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(_) => Err(Error::new_spanned(
            ty,
            "a tool owns its arguments: take `String` in place of `&str`, `Vec<T>` in place of `&[T]`; only the `CallContext` is borrowed",
        )),
        _ if last_segment(ty).is_some_and(|segment| segment.ident == "CallContext") => {
            Err(Error::new_spanned(ty, "the context is borrowed: take `&CallContext`"))
        }
        _ if parameter_of(ty, "State").is_some() => {
            Err(Error::new_spanned(ty, "a state is never missing: take `State<T>` without `Option`"))
        }
        Type::ImplTrait(_) => Err(Error::new_spanned(
            ty,
            "a declaration names one type for each argument: write the concrete type in place of `impl`",
        )),
        _ => Ok(()),
    }
}

fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

/// Returns `T` of a `name<T>`.
fn parameter_of(ty: &Type, name: &str) -> Option<Type> {
    let segment = last_segment(ty).filter(|segment| segment.ident == name)?;
    match &segment.arguments {
        PathArguments::AngleBracketed(list) => match list.args.first() {
            Some(GenericArgument::Type(inner)) if list.args.len() == 1 => Some(inner.clone()),
            _ => None,
        },
        _ => None,
    }
}
