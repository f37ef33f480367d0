//! `#[function]`: a second function that describes the function.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, LitStr, Pat, PatType, Result, Type};

use crate::parameter::{self, Parameter};
use crate::runtime;

/// The number of parameters from which on clippy warns (`too_many_arguments`).
const MANY: usize = 8;

/// The options in the parentheses of `#[function(...)]`.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    out: Option<LitStr>,
    is_secret: bool,
}

/// Returns the function without the attributes of its parameters, and the one that adds its description to a list.
pub fn expand(options: TokenStream, mut item: ItemFn) -> Result<TokenStream> {
    let options = Options::read(options)?;
    let function = item.sig.ident.clone();
    let descriptor = descriptor(&function);
    let name = options.name.map_or_else(|| function.unraw().to_string(), |name| name.value());
    let out = options.out.map_or_else(|| quote!(None), |out| quote!(Some(#out)));
    let is_secret = options.is_secret;
    let doc = parameter::doc(&item.attrs)?;

    let mut inputs = item.sig.inputs.iter_mut();
    let context = context(inputs.next(), &function)?;
    let inputs: Vec<&mut PatType> = inputs.map(typed).collect::<Result<_>>()?;
    let many = inputs.len() + 1 >= MANY;
    let parameters = read(inputs)?;
    let order = parameter::order(&parameters);
    let descriptions = parameters.iter().map(Parameter::description);
    let values = parameters.iter().map(Parameter::value);

    let runtime = runtime();
    let allow = many.then(|| quote!(#[allow(clippy::too_many_arguments)]));
    // The compiler reports unused items only outside of macros. So both ends of the item get the span of the function's
    // name.
    let head = quote_spanned!(function.span()=> #[deny(dead_code)] pub(crate) fn #descriptor);
    let body = quote! {
        of_list.add(
            #name,
            #doc,
            (::core::option::Option::#out, #is_secret),
            |params| {
                const _: #runtime::Order = #order;
                #(#descriptions;)*
            },
            |of_call, bound| #function(of_call, #(#values),*),
        );
    };
    let body = quote_spanned!(function.span()=> { #body });
    Ok(quote! {
        #allow
        #item

        #head(of_list: &mut #runtime::FunctionList<#context>) #body
    })
}

/// Returns the name of the function that describes a function.
pub fn descriptor(function: &Ident) -> Ident {
    let name = function.unraw().to_string().to_lowercase();
    format_ident!("describe_{}", name, span = function.span())
}

impl Options {
    fn read(tokens: TokenStream) -> Result<Self> {
        let mut options = Options::default();
        let read = syn::meta::parser(|meta| {
            if meta.path.is_ident("secret") {
                options.is_secret = true;
                return Ok(());
            }
            let option = if meta.path.is_ident("name") {
                &mut options.name
            } else if meta.path.is_ident("out") {
                &mut options.out
            } else {
                return Err(meta.error("expected `name = \"...\"`, `out = \"...\"` or `secret`"));
            };
            *option = Some(meta.value()?.parse()?);
            Ok(())
        });
        read.parse2(tokens)?;
        Ok(options)
    }
}

/// Parses the parameters after the context, and removes their attributes, which the compiler does not know.
fn read(inputs: Vec<&mut PatType>) -> Result<Vec<Parameter>> {
    let mut parameters = Vec::new();
    for input in inputs {
        let attributes = std::mem::take(&mut input.attrs);
        let unnamed = Ident::new("args", input.ty.span());
        let name = match &*input.pat {
            Pat::Ident(pattern) => &pattern.ident,
            _ if attributes.iter().any(|attribute| attribute.path().is_ident("args")) => &unnamed,
            pattern => {
                return Err(Error::new_spanned(pattern, "expected a name, as callers give the argument by name"));
            }
        };
        parameters.push(Parameter::new(&attributes, name, &input.ty)?);
        input.attrs = attributes.into_iter().filter(|attribute| !parameter::is_own(attribute)).collect();
    }
    Ok(parameters)
}

/// Returns the type of the context: the first parameter is a reference to it.
fn context(first: Option<&mut FnArg>, function: &Ident) -> Result<Type> {
    if let Some(FnArg::Typed(first)) = first
        && let Type::Reference(reference) = &*first.ty
    {
        return Ok((*reference.elem).clone());
    }
    Err(Error::new(function.span(), "expected a reference to the context as the first parameter"))
}

fn typed(input: &mut FnArg) -> Result<&mut PatType> {
    match input {
        FnArg::Typed(input) => Ok(input),
        FnArg::Receiver(receiver) => Err(Error::new_spanned(receiver, "expected a plain function, got a method")),
    }
}
