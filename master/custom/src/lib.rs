//! Custom Python modules of a master, and the execution functions of its host.
//!
//! Custom runner and wheel modules (`modules`), token and cache stores (`stores`), file server backends (`files`) and
//! returners (`returners`). They call the master through [`MasterCalls`], so that nothing here depends on its parts.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod files;
mod host_functions;
mod kind;
mod modules;
pub mod returners;
pub mod stores;

pub use host_functions::{HostFunctions, Orchestrated, SshCall};
pub use kind::Kind;
pub use modules::{BuiltIn, CustomModules, MasterCalls, directory, has_file, may_have};
