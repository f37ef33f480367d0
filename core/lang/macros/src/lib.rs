//! The macros that declare callable functions. `brine_function` re-exports them and shows how they are used.
//!
//! | module | owns |
//! |---|---|
//! | `function` | `#[function]`: a second function that describes the function |
//! | `args` | `#[derive(Args)]`: a struct as the parameters of a function |
//! | `parameter` | one parameter or field: its attributes, description and value |
//! | `registry` | `registry!`: the functions of a module as a list |

mod args;
mod function;
mod parameter;
mod registry;

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, ItemFn, parse_macro_input};

/// Makes a plain function callable by name: `#[function]`, `#[function(name = "list", out = "highstate")]`.
///
/// `name` is the name for callers, if it differs from the Rust name; a raw identifier needs none (`r#match` is called
/// `match`). `out` is the outputter of the result. `secret` declares that the result is one, such as a private key: the
/// master returns it to the caller alone. The doc comment becomes the documentation in `sys.doc`.
///
/// The first parameter is a reference to the context. Every other one is an argument, and may have a doc comment and
/// one of these attributes:
///
/// - `#[default]` or `#[default(EXPRESSION)]`: optional, as is an `Option` without attribute,
/// - `#[required]`: an `Option` that must be given, and may be `None`,
/// - `#[rest]`: all further positional values, a `Vec<Value>`,
/// - `#[keywords]`: all further keyword values, a `Map`; `#[keywords(FUNCTION)]` names the function that describes those
///   that are known in a `ParamList`,
/// - `#[args]`: a struct with `#[derive(Args)]`, whose fields become parameters.
///
/// Named parameters come first, then at most one `#[rest]`, then at most one `#[keywords]`; another order does not
/// compile.
///
/// The macro leaves the function as it is and adds one beside it, `describe_<name>`, for `registry!`. A function that no
/// `registry!` lists does not compile: "function `describe_<name>` is never used".
#[proc_macro_attribute]
pub fn function(options: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemFn);
    function::expand(options.into(), item).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct the parameters of a function, for functions with many of them.
///
/// Each field is a parameter. Its doc comment describes the argument in `sys.doc`. It may have the attributes of
/// parameters: `#[default]`, `#[default(EXPRESSION)]`, `#[required]`, `#[rest]`, `#[keywords]`, and `#[args]` for a
/// struct of arguments that several functions share.
#[proc_macro_derive(Args, attributes(default, required, rest, keywords, args))]
pub fn args(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    args::expand(item).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Lists the functions of a module: `registry!("file", [directory_exists, find::find])`.
///
/// The string is Salt's name of the module; the list contains the paths of the Rust functions. A function that is
/// listed twice, or that has no `#[function]`, does not compile.
#[proc_macro]
pub fn registry(list: TokenStream) -> TokenStream {
    let list = parse_macro_input!(list as registry::List);
    registry::expand(&list).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Returns the path of the crate that generated code refers to.
fn runtime() -> proc_macro2::TokenStream {
    quote!(::brine_function)
}
