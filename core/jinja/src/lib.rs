//! Jinja as in Salt, implemented with minijinja: strict about undefined values, with Python's methods and printing,
//! mutable lists and mappings, `salt['mod.fun'](...)`.
//!
//! | module | owns |
//! |---|---|
//! | `template`, `context` | compiled templates, their variables |
//! | `syntax` | the parser, and the rewriting to minijinja's language with a source map |
//! | `import`, `cache` | templates that others import, compiled once |
//! | `host`, `salt` | the functions and files that templates reach, in layers; the variable `salt` |
//! | `behaviour` | the properties of host functions that the engine depends on |
//! | `guard` | keeps untrusted text out of the structure of a template's output |
//! | `data` | data in templates: Python's types, their conversion and their text |
//! | `operators`, `methods`, `filters`, `call`, `formatting` | Python's operators and methods, Salt's filters |
//! | `limits` | steps, memory, output and time of a render |
//! | `error`, `cause`, `signatures`, `diagnose` | errors in Salt's wording |
//! | `messages` | the beginnings of complete messages, which errors keep |
//! | `lines` | the map from lines of rendered text to lines of the template |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod behaviour;
mod cache;
mod call;
mod cause;
mod context;
mod data;
mod diagnose;
mod error;
mod filters;
mod formatting;
mod guard;
mod host;
mod import;
pub mod limits;
mod lines;
mod messages;
mod methods;
pub mod metrics;
mod operators;
pub mod reference;
mod salt;
mod signatures;
mod syntax;
mod template;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

pub use behaviour::{Behaviour, MayBeUndefined, Origin, Role};
pub use cache::{Blocks, ImportCache};
pub use context::Context;
pub use data::Tree;
pub use error::JinjaError;
pub use guard::Variables;
pub use host::{CustomCall, Files, Functions, Host, HostedFile, InThread};
pub use limits::{Cancel, LimitExceeded, Limits};
pub use lines::SourceLines;
pub use template::{GuardedError, Template};

/// The filters, tests and globals that all templates share. A copy is a few reference counts.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

fn syntax_config(trim_blocks: bool, lstrip_blocks: bool) -> SyntaxConfig {
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(trim_blocks).lstrip_blocks(lstrip_blocks);
    // The only part that can fail to build is the delimiters, and these are the usual ones.
    syntax.build().unwrap_or_default()
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(syntax_config(false, false));
    environment.set_unknown_method_callback(methods::call);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(data::format);
    // Errors include the undefined expression and its location.
    environment.set_debug(true);
    filters::add_to(&mut environment);
    data::add_to(&mut environment);
    call::add_to(&mut environment);
    operators::add_to(&mut environment);
    import::add_to(&mut environment);
    guard::add_to(&mut environment);
    environment
}
