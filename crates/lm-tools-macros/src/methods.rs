//! Expansion of an `impl` block to the block with a method that returns its tools.

use crate::signature::{self, Kind, combine};
use crate::tool_fn::{Target, ToolFn};
use crate::types::without_self;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Result, Type};

/// Expands `#[tools]`; errors become `compile_error!` next to the block, which stays unchanged.
pub(crate) fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut block: ItemImpl = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(_) => {
            let message =
                "`tools` expects an `impl` block: `#[tools] impl Type { #[tool] fn name(&self) .. }`";
            let error = Error::new_spanned(&item, message).into_compile_error();
            return quote!(#error #item);
        }
    };
    let mut errors = check(&block, options).err();
    let read = methods(&mut block, &mut errors);
    if errors.is_none() && read.is_empty() {
        let message = "no method of this block is a tool: write `#[tool]` on those that the model may call";
        combine(&mut errors, Error::new_spanned(&block.self_ty, message));
    }
    if block.trait_.is_none() && block.generics.params.is_empty() {
        let method = tools_method(&read, &block.self_ty);
        block.items.push(ImplItem::Verbatim(method));
    }
    let errors = errors.map(Error::into_compile_error);
    quote!(#block #errors)
}

fn check(block: &ItemImpl, options: TokenStream) -> Result<()> {
    if !options.is_empty() {
        let message = "`tools` takes no options: write them on the methods, `#[tool(..)]`";
        return Err(Error::new_spanned(options, message));
    }
    if let Some((_, path, _)) = &block.trait_ {
        let message = "the tools of a trait have no type of their own: write `#[tools]` on an `impl` block without a trait";
        return Err(Error::new_spanned(path, message));
    }
    if !block.generics.params.is_empty() {
        let message = "a declaration names one type for each argument: write the concrete types, `impl Type<Concrete>`, in place of generics";
        return Err(Error::new_spanned(&block.generics, message));
    }
    Ok(())
}

/// A method that is a tool.
struct Method {
    tool: ToolFn,
    ident: syn::Ident,
    has_receiver: bool,
    cfgs: Vec<Attribute>,
}

/// Reads the methods with `#[tool]`, and removes the attribute.
fn methods(block: &mut ItemImpl, errors: &mut Option<Error>) -> Vec<Method> {
    let mut methods: Vec<Method> = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else { continue };
        let Some(index) = function.attrs.iter().position(is_tool) else { continue };
        let attribute = function.attrs.remove(index);
        let method = method(&attribute, function);
        signature::strip(&mut function.sig);
        match method {
            Ok(method) if methods.iter().any(|other| other.tool.name == method.tool.name) => {
                let message = format!("another tool of this block is called `{}`", method.tool.name);
                combine(errors, Error::new_spanned(&method.ident, message));
            }
            Ok(method) => methods.push(method),
            Err(error) => combine(errors, error),
        }
    }
    methods
}

fn method(attribute: &Attribute, function: &mut ImplItemFn) -> Result<Method> {
    let options = match &attribute.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(_) => {
            return Err(Error::new_spanned(attribute, "write the options as `#[tool(..)]`"));
        }
    };
    let tool = ToolFn::read(options, &function.attrs, &mut function.sig, Kind::Method)?;
    let has_receiver = function.sig.receiver().is_some();
    let cfgs = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
    Ok(Method { tool, ident: function.sig.ident.clone(), has_receiver, cfgs })
}

fn is_tool(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "tool")
}

/// The method `tools`; its local types are the tools.
fn tools_method(methods: &[Method], ty: &Type) -> TokenStream {
    let types = methods.iter().map(|method| local_type(method, ty));
    let tools = methods.iter().map(|Method { ident, cfgs, .. }| {
        let name = format_ident!("{}_tool", ident.unraw());
        quote!(#(#cfgs)* tools.push(::std::boxed::Box::new(#name(::core::clone::Clone::clone(self))));)
    });
    quote! {
        /// The tools of this value, for `Toolset::with`.
        #[allow(clippy::vec_init_then_push)]
        pub fn tools(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::std::boxed::Box<dyn ::lm_tools::Tool>> {
            #(#types)*
            let mut tools: ::std::vec::Vec<::std::boxed::Box<dyn ::lm_tools::Tool>> = ::std::vec::Vec::new();
            #(#tools)*
            tools
        }
    }
}

/// The type of a method's tool, which shares the value.
fn local_type(method: &Method, ty: &Type) -> TokenStream {
    let Method { tool, ident, has_receiver, cfgs } = method;
    let name = format_ident!("{}_tool", ident.unraw());
    let receiver = has_receiver.then(|| quote!(&self.0));
    let target = Target { path: quote_spanned!(ident.span()=> <#ty>::#ident), receiver };
    let implementation = without_self(tool.implementation(&name, &target), ty);
    let shared = quote_spanned!(ty.span()=> ::std::sync::Arc<#ty>);
    quote! {
        #(#cfgs)*
        #[allow(non_camel_case_types, dead_code)]
        struct #name(#shared);

        #(#cfgs)*
        #implementation
    }
}
