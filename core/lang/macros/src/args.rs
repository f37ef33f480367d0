//! `#[derive(Args)]`: a struct as the parameters of a function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

use crate::parameter::{self, Parameter};
use crate::runtime;

/// Returns the implementation of `Arguments` for a struct with named fields.
pub fn expand(item: DeriveInput) -> Result<TokenStream> {
    let name = &item.ident;
    let Data::Struct(data) = item.data else {
        return Err(Error::new_spanned(name, "#[derive(Args)] is for structs with named fields"));
    };
    let Fields::Named(fields) = data.fields else {
        return Err(Error::new_spanned(name, "#[derive(Args)] is for structs with named fields"));
    };
    let mut names = Vec::new();
    let mut parameters = Vec::new();
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        parameters.push(Parameter::new(&field.attrs, ident, &field.ty)?);
        names.push(ident);
    }
    let order = parameter::order(&parameters);
    let descriptions = parameters.iter().map(Parameter::description);
    let values = parameters.iter().map(Parameter::value);
    let runtime = runtime();
    Ok(quote! {
        #[automatically_derived]
        impl #runtime::Arguments for #name {
            const ORDER: #runtime::Order = #order;

            fn describe(params: &mut #runtime::ParamList) {
                #(#descriptions;)*
            }

            fn bind(bound: &mut #runtime::Binder) -> ::core::result::Result<Self, #runtime::CallError> {
                ::core::result::Result::Ok(#name { #(#names: #values),* })
            }
        }
    })
}
