//! A parameter of a function, or a field of a struct of arguments.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, Meta, Path, Result, Type};

use crate::runtime;

/// A declared parameter.
pub struct Parameter {
    name: String,
    ty: Type,
    kind: Kind,
    doc: String,
}

/// The way in which a parameter takes values.
enum Kind {
    /// Required.
    Required,
    /// Optional, with its default.
    Optional(TokenStream),
    /// Takes all further positional values.
    Rest,
    /// Takes all further keyword values, which a function describes.
    Keywords(Option<Path>),
    /// The parameters that are the fields of its type.
    Group,
}

impl Parameter {
    /// Parses a parameter with its attributes.
    pub fn new(attributes: &[Attribute], name: &Ident, ty: &Type) -> Result<Self> {
        let mut kind = None;
        for attribute in attributes.iter().filter(|attribute| is_own(attribute)) {
            let path = attribute.path();
            let attribute_kind = if path.is_ident("default") {
                Kind::Optional(default(attribute)?)
            } else if path.is_ident("required") {
                attribute.meta.require_path_only()?;
                Kind::Required
            } else if path.is_ident("rest") {
                attribute.meta.require_path_only()?;
                Kind::Rest
            } else if path.is_ident("keywords") {
                Kind::Keywords(further(attribute)?)
            } else if path.is_ident("args") {
                attribute.meta.require_path_only()?;
                Kind::Group
            } else {
                continue;
            };
            if kind.replace(attribute_kind).is_some() {
                return Err(Error::new_spanned(attribute, "a parameter has one of these attributes at most"));
            }
        }
        Ok(Parameter {
            name: name.unraw().to_string(),
            ty: ty.clone(),
            kind: kind.unwrap_or_else(|| unmarked(ty)),
            doc: doc(attributes)?,
        })
    }

    /// Returns the expression that adds this parameter, or the parameters of a group, to a `ParamList` called `params`.
    pub fn description(&self) -> TokenStream {
        let Parameter { name, ty, kind, doc } = self;
        match kind {
            Kind::Group => {
                let runtime = runtime();
                quote!(<#ty as #runtime::Arguments>::describe(params))
            }
            Kind::Required => quote!(params.required::<#ty>(#name, #doc)),
            Kind::Optional(default) => quote! {
                params.optional::<#ty>(#name, #doc, || {
                    let default: #ty = #default;
                    ::core::convert::Into::into(default)
                })
            },
            Kind::Rest => quote!(params.rest(#name, #doc)),
            Kind::Keywords(None) => quote!(params.keywords(#name, #doc)),
            Kind::Keywords(Some(further)) => quote!({
                params.keywords(#name, #doc);
                #further(params);
            }),
        }
    }

    /// Returns the expression that takes the value of this parameter from a `Binder` called `bound`.
    pub fn value(&self) -> TokenStream {
        let Parameter { name, ty, kind, .. } = self;
        match kind {
            Kind::Required => quote!(bound.take::<#ty>(#name, ::core::option::Option::None)?),
            Kind::Optional(default) => quote!(bound.take::<#ty>(#name, ::core::option::Option::Some(#default))?),
            Kind::Rest => quote!(bound.rest()),
            Kind::Keywords(_) => quote!(bound.keywords()),
            Kind::Group => {
                let runtime = runtime();
                quote!(<#ty as #runtime::Arguments>::bind(bound)?)
            }
        }
    }
}

/// Returns the expression of the `Order` of these parameters. Parameters out of order do not compile.
pub fn order(parameters: &[Parameter]) -> TokenStream {
    let runtime = runtime();
    let parts = parameters.iter().map(|Parameter { kind, ty, .. }| match kind {
        Kind::Required | Kind::Optional(_) => quote!(#runtime::Order::NAMED),
        Kind::Rest => quote!(#runtime::Order::REST),
        Kind::Keywords(_) => quote!(#runtime::Order::KEYWORDS),
        Kind::Group => quote!(<#ty as #runtime::Arguments>::ORDER),
    });
    quote!(#runtime::Order::of(&[#(#parts),*]))
}

/// Returns the text of the doc comments among these attributes, without the leading blank of each line. It is one
/// string, because each part of a constant adds to the start-up time of every program.
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
        // A doc comment that is passed through a macro.
        Expr::Group(group) => text(&group.expr),
        other => Err(Error::new_spanned(other, "the documentation of a function is written as a comment")),
    }
}

/// Whether this attribute must be removed from a parameter before compilation.
pub fn is_own(attribute: &Attribute) -> bool {
    ["default", "required", "rest", "keywords", "args", "doc"].iter().any(|name| attribute.path().is_ident(name))
}

/// Returns the kind of a parameter without attributes: an `Option` is optional.
fn unmarked(ty: &Type) -> Kind {
    match ty {
        Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option") => {
            Kind::Optional(quote!(::core::option::Option::None))
        }
        _ => Kind::Required,
    }
}

/// Returns the function of `#[keywords(FUNCTION)]`.
fn further(attribute: &Attribute) -> Result<Option<Path>> {
    match attribute.meta {
        Meta::Path(_) => Ok(None),
        _ => attribute.parse_args().map(Some),
    }
}

/// Returns the value of `#[default]` or `#[default(EXPRESSION)]`.
fn default(attribute: &Attribute) -> Result<TokenStream> {
    if let Meta::Path(_) = attribute.meta {
        return Ok(quote!(::core::default::Default::default()));
    }
    let value: Expr = attribute.parse_args()?;
    Ok(quote!(#value))
}
