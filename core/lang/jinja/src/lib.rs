//! Jinja as in Salt, implemented with minijinja: strict about undefined values, with Python's methods and printing,
//! mutable lists and mappings, `salt['mod.fun'](...)`.
//!
//! | module | owns |
//! |---|---|
//! | `template`, `context` | compiled templates, their variables |
//! | `environment` | the filters, tests and functions that all templates share |
//! | `syntax` | the parser, the rewriting to minijinja's language with a source map, and the static [`view`] for tools |
//! | `import`, `cache` | templates that others import, compiled once |
//! | `host`, `salt` | the functions and files that templates reach, in layers; the variable `salt` |
//! | `behaviour` | the properties of host functions that the engine depends on |
//! | `guard` | keeps untrusted text out of the structure of a template's output |
//! | `data` | data in templates: Python's types, their conversion and their text |
//! | `operators`, `methods`, `filters`, `call`, `formatting` | Python's operators and methods, Salt's filters |
//! | `limits` | steps, memory, output and time of a render |
//! | `error`, `cause`, `signatures`, `diagnose` | errors in Salt's wording |
//! | `messages` | the beginnings of complete messages, which errors keep |
//! | [`view`] | templates as authors' tools see them: names, branches and skeletons, without a render |
//! | [`coverage`] | counts of the rendered parts of templates, for tests |
//! | `lines` | the map from lines of rendered text to lines of the template |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod behaviour;
mod cache;
mod call;
mod cause;
mod context;
pub mod coverage;
mod data;
mod diagnose;
mod environment;
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
pub mod view;

pub use behaviour::{Behaviour, MayBeUndefined, Origin, Role};
pub use cache::{Blocks, ImportCache};
pub use context::Context;
pub use data::Tree;
pub use error::JinjaError;
pub use guard::Variables;
pub use host::{CustomCall, Files, FilesError, Functions, Host, HostedFile, InThread, Panicked};
pub use limits::{Cancel, LimitExceeded, Limits};
pub use lines::SourceLines;
pub use template::{GuardedError, Template};
