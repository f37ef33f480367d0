//! A parameter of a function, or a field of a struct of arguments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Error, Expr, Ident, Meta, Result, Type};

use crate::runtime;

/// A declared parameter.
pub struct Parameter {
    name: String,
    ty: Type,
    kind: Kind,
    doc: Vec<Expr>,
}

/// How a parameter takes values.
enum Kind {
    /// Required.
    Required,
    /// Optional, with its default.
    Optional(TokenStream),
    /// Takes all further positional values.
    Rest,
    /// Takes all further keyword values.
    Keywords,
}

impl Kind {
    /// Returns the rank in the order of parameters: named ones first, then `#[rest]`, then `#[keywords]`.
    fn place(&self) -> u8 {
        match self {
            Kind::Required | Kind::Optional(_) => 0,
            Kind::Rest => 1,
            Kind::Keywords => 2,
        }
    }
}

impl Parameter {
    /// Parses a parameter with its attributes.
    pub fn new(attributes: &[Attribute], name: &Ident, ty: &Type) -> Result<Self> {
        let mut kind = None;
        for attribute in attributes.iter().filter(|attribute| is_own(attribute)) {
            let path = attribute.path();
            let found = if path.is_ident("default") {
                Kind::Optional(default(attribute)?)
            } else if path.is_ident("rest") {
                attribute.meta.require_path_only()?;
                Kind::Rest
            } else if path.is_ident("keywords") {
                attribute.meta.require_path_only()?;
                Kind::Keywords
            } else {
                continue;
            };
            if kind.replace(found).is_some() {
                return Err(Error::new_spanned(attribute, "a parameter has one of these attributes at most"));
            }
        }
        Ok(Parameter {
            name: name.unraw().to_string(),
            ty: ty.clone(),
            kind: kind.unwrap_or(Kind::Required),
            doc: doc(attributes),
        })
    }

    /// Returns the expression of the `Param` that describes this parameter.
    pub fn description(&self) -> TokenStream {
        let Parameter { name, ty, kind, doc } = self;
        let runtime = runtime();
        let doc = quote!(&[#(#doc),*]);
        match kind {
            Kind::Required => quote!(#runtime::Param::required::<#ty>(#name, #doc)),
            Kind::Optional(default) => quote! {
                #runtime::Param::optional::<#ty>(
                    #name,
                    || {
                        let default: #ty = #default;
                        ::core::convert::Into::into(default)
                    },
                    #doc,
                )
            },
            Kind::Rest => quote!(#runtime::Param::rest(#name, #doc)),
            Kind::Keywords => quote!(#runtime::Param::keywords(#name, #doc)),
        }
    }

    /// Returns the expression that takes the value of this parameter from a `Binder` called `bound`.
    pub fn value(&self) -> TokenStream {
        let Parameter { name, ty, kind, .. } = self;
        match kind {
            Kind::Required => quote!(bound.take::<#ty>(#name, ::core::option::Option::None)?),
            Kind::Optional(default) => quote!(bound.take::<#ty>(#name, ::core::option::Option::Some(#default))?),
            Kind::Rest => quote!(bound.rest()),
            Kind::Keywords => quote!(bound.keywords()),
        }
    }
}

/// Checks that named parameters come first, then `#[rest]`, then `#[keywords]`, each of these once.
pub fn check_order(parameters: &[Parameter], at: &Ident) -> Result<()> {
    let out_of_place = parameters.windows(2).find(|pair| {
        let (left, right) = (pair[0].kind.place(), pair[1].kind.place());
        left > right || (left == right && left > 0)
    });
    match out_of_place {
        Some([_, wrong]) => {
            let message = format!(
                "`{}` is out of order: expected named parameters, then at most one #[rest], then at most one #[keywords]",
                wrong.name
            );
            Err(Error::new(at.span(), message))
        }
        _ => Ok(()),
    }
}

/// Returns the lines of the documentation comments among these attributes.
pub fn doc(attributes: &[Attribute]) -> Vec<Expr> {
    let lines = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    lines
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) => Some(pair.value.clone()),
            _ => None,
        })
        .collect()
}

/// Whether this attribute must be removed from a parameter before compilation.
pub fn is_own(attribute: &Attribute) -> bool {
    ["default", "rest", "keywords", "args", "doc"].iter().any(|name| attribute.path().is_ident(name))
}

/// Returns the value of `#[default]` or `#[default(EXPRESSION)]`.
fn default(attribute: &Attribute) -> Result<TokenStream> {
    if let Meta::Path(_) = attribute.meta {
        return Ok(quote!(::core::default::Default::default()));
    }
    let value: Expr = attribute.parse_args()?;
    Ok(quote!(#value))
}
