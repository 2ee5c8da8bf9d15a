//! Types of arguments and results, as written.

use crate::signature::Source;
use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Error, GenericArgument, PathArguments, Result, Type};

/// Finds the origin of an argument's value by its type.
pub(crate) fn source(ty: &Type) -> (Type, Source) {
    if let Type::Reference(reference) = ty
        && reference.mutability.is_none()
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

pub(crate) fn check_type(ty: &Type) -> Result<()> {
    let message = match ty {
        Type::Reference(reference)
            if last_segment(&reference.elem).is_some_and(|s| s.ident == "CallContext") =>
        {
            "the context is shared by the call and its watcher: take `&CallContext` in place of `&mut CallContext`"
        }
        Type::Reference(reference) => return Err(Error::new_spanned(ty, owned_in_place_of(reference))),
        Type::ImplTrait(_) => {
            "a declaration names one type for each argument: write the concrete type in place of `impl`"
        }
        _ if last_segment(ty).is_some_and(|segment| segment.ident == "CallContext") => {
            "the context is borrowed: take `&CallContext`"
        }
        _ if parameter_of(ty, "State").is_some() => {
            "a state is never missing: take `State<T>` without `Option`"
        }
        _ => return check_lifetimes(ty),
    };
    Err(Error::new_spanned(ty, message))
}

/// Replaces `Self`, which an item inside a method cannot name, by the type.
pub(crate) fn without_self(tokens: TokenStream, ty: &Type) -> TokenStream {
    let replace = |token| match token {
        TokenTree::Ident(ident) if ident == "Self" => quote::quote_spanned!(ident.span()=> #ty),
        TokenTree::Group(group) => {
            let mut inside = Group::new(group.delimiter(), without_self(group.stream(), ty));
            inside.set_span(group.span());
            TokenTree::Group(inside).into()
        }
        other => other.into(),
    };
    tokens.into_iter().flat_map(|token| -> TokenStream { replace(token) }).collect()
}

/// Advice for a reference.
fn owned_in_place_of(reference: &syn::TypeReference) -> String {
    let inner = &reference.elem;
    let owned = match &**inner {
        Type::Slice(slice) => format!("Vec<{}>", slice.elem.to_token_stream()),
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        _ => inner.to_token_stream().to_string(),
    };
    let lifetime = reference.lifetime.as_ref().map(|lifetime| format!("{lifetime} ")).unwrap_or_default();
    let mutable = reference.mutability.map(|_| "mut ").unwrap_or_default();
    let inner = inner.to_token_stream();
    format!("a tool owns its arguments: take `{owned}` in place of `&{lifetime}{mutable}{inner}`")
}

/// Rejects types that borrow.
fn check_lifetimes(ty: &Type) -> Result<()> {
    match find_lifetime(ty.to_token_stream()) {
        None => Ok(()),
        Some(lifetime) => {
            let message = "a tool owns its arguments: take a type without lifetimes, such as `String` in place of `Cow<str>`";
            Err(Error::new(lifetime, message))
        }
    }
}

/// Finds a lifetime other than `'static`.
fn find_lifetime(tokens: TokenStream) -> Option<Span> {
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                let name = tokens.next()?;
                if name.to_string() != "static" {
                    return Some(punct.span());
                }
            }
            TokenTree::Group(group) => {
                if let Some(span) = find_lifetime(group.stream()) {
                    return Some(span);
                }
            }
            _ => {}
        }
    }
    None
}

pub(crate) fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
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
    let PathArguments::AngleBracketed(list) = &segment.arguments else { return None };
    (list.args.len() == 1).then(|| first_parameter(ty)).flatten()
}

/// Returns `T` of a `Name<T, ..>`.
pub(crate) fn first_parameter(ty: &Type) -> Option<Type> {
    let PathArguments::AngleBracketed(list) = &last_segment(ty)?.arguments else { return None };
    list.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner.clone()),
        _ => None,
    })
}
