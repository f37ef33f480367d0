//! A parameter of a function, or a field of a struct of arguments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, Meta, Result, Type};

use crate::runtime;

/// A declared parameter.
pub struct Parameter {
    name: String,
    ty: Type,
    kind: Kind,
    doc: String,
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
    /// The parameters that are the fields of its type.
    Group,
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
            } else if path.is_ident("args") {
                attribute.meta.require_path_only()?;
                Kind::Group
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
            doc: doc(attributes)?,
        })
    }

    /// Returns the expression of the `Param`s that describe this parameter: one, or those of a group.
    fn descriptions(&self) -> TokenStream {
        let Parameter { name, ty, kind, doc } = self;
        let runtime = runtime();
        let description = match kind {
            Kind::Group => return quote!(<#ty as #runtime::Arguments>::PARAMS),
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
        };
        quote!(&[#description])
    }

    /// Returns the expression that takes the value of this parameter from a `Binder` called `bound`.
    pub fn value(&self) -> TokenStream {
        let Parameter { name, ty, kind, .. } = self;
        match kind {
            Kind::Required => quote!(bound.take::<#ty>(#name, ::core::option::Option::None)?),
            Kind::Optional(default) => quote!(bound.take::<#ty>(#name, ::core::option::Option::Some(#default))?),
            Kind::Rest => quote!(bound.rest()),
            Kind::Keywords => quote!(bound.keywords()),
            Kind::Group => {
                let runtime = runtime();
                quote!(<#ty as #runtime::Arguments>::bind(bound)?)
            }
        }
    }
}

/// Returns the expression of the list of the `Param`s of these parameters. Parameters out of order do not compile.
pub fn descriptions(parameters: &[Parameter]) -> TokenStream {
    let runtime = runtime();
    let parts = parameters.iter().map(Parameter::descriptions);
    quote! {
        {
            const PARTS: &[&[#runtime::Param]] = &[#(#parts),*];
            const ALL: [#runtime::Param; #runtime::count(PARTS)] = #runtime::joined(PARTS);
            &ALL
        }
    }
}

/// Returns the text of the documentation comments among these attributes, without the blank that `///` leaves in front of
/// each line. One text, because each part of a constant costs the start of every program.
pub fn doc(attributes: &[Attribute]) -> Result<String> {
    let comments = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let lines = comments.filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) => Some(text(&pair.value)),
        _ => None,
    });
    let lines: Vec<String> = lines.collect::<Result<_>>()?;
    Ok(lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n"))
}

fn text(value: &Expr) -> Result<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
        // A comment that a macro passes on.
        Expr::Group(group) => text(&group.expr),
        other => Err(Error::new_spanned(other, "the documentation of a function is written as a comment")),
    }
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
