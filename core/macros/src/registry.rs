//! `registry!`: the functions of one file as a list.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, LitStr, Result, Token, bracketed};

use crate::function;

/// Salt's name of the module, and the Rust names of its functions.
pub struct List {
    module: LitStr,
    functions: Vec<Ident>,
}

impl Parse for List {
    fn parse(input: ParseStream) -> Result<Self> {
        let module = input.parse()?;
        input.parse::<Token![,]>()?;
        let list;
        bracketed!(list in input);
        let functions = Punctuated::<Ident, Token![,]>::parse_terminated_with(&list, Ident::parse_any)?;
        input.parse::<Option<Token![,]>>()?;
        Ok(List { module, functions: functions.into_iter().collect() })
    }
}

/// Returns the expression of the list of functions.
pub fn expand(list: &List) -> Result<TokenStream> {
    let module = &list.module;
    let mut known = HashSet::new();
    if let Some(twice) = list.functions.iter().find(|function| !known.insert(function.unraw())) {
        return Err(Error::new(twice.span(), format!("`{twice}` is in this list twice")));
    }
    let constants = list.functions.iter().map(function::constant);
    Ok(quote!(&[#(#constants.of(#module)),*]))
}
