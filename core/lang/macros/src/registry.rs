//! `registry!`: the functions of a module as a list.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, LitStr, Path, Result, Token, bracketed};

use crate::{function, runtime};

/// Salt's name of the module, and the Rust paths of its functions.
pub struct List {
    module: LitStr,
    functions: Vec<Path>,
}

impl Parse for List {
    fn parse(input: ParseStream) -> Result<Self> {
        let module = input.parse()?;
        input.parse::<Token![,]>()?;
        let list;
        bracketed!(list in input);
        let functions = Punctuated::<Path, Token![,]>::parse_terminated_with(&list, Path::parse_mod_style)?;
        input.parse::<Option<Token![,]>>()?;
        Ok(List { module, functions: functions.into_iter().collect() })
    }
}

/// Returns the expression of the list of functions.
pub fn expand(list: &List) -> Result<TokenStream> {
    let module = &list.module;
    let mut names = HashSet::new();
    if let Some(twice) = list.functions.iter().find(|function| !names.insert(function.to_token_stream().to_string())) {
        return Err(Error::new_spanned(twice, "this function is in the list twice"));
    }
    let (runtime, describe) = (runtime(), list.functions.iter().map(descriptor));
    Ok(quote!(#runtime::Functions::new(#module, |_of_list| { #(#describe(_of_list);)* })))
}

/// Returns the path of the function that describes a function.
fn descriptor(function: &Path) -> Path {
    let mut path = function.clone();
    if let Some(last) = path.segments.last_mut() {
        last.ident = function::descriptor(&last.ident);
    }
    path
}
