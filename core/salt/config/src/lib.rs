//! The configuration of the master and the minion: types, defaults and documentation of every option in one place.
//!
//! `master.rs` and `minion/` declare the options of the daemons, `shared.rs` the options of both, `rest.rs` those of
//! the REST API, and `module_options.rs` those of modules. Each is declared once, with its type, default and
//! documentation, and read as a field of the configuration or, from `opts`, by the function of its name in [`opts`].
//! `load/` reads the files and drop-ins. `known.rs` lists Salt's other options, to distinguish options without effect
//! from misspelt ones. `template_opts.rs` adds the defaults that templates see in `opts`. `optional_parts.rs` lists what
//! a build can leave out. The pages
//! docs/reference/master.md and minion.md are generated from here.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod known;
mod load;
mod master;
mod master_paths;
mod minion;
mod module_options;
mod number;
mod optional_parts;
mod options;
mod rest;
mod shared;
mod template_opts;
mod transport;
mod unknown_arguments;

pub use known::{Status, ignored_options};
pub use load::{ConfigError, Loaded, Mistake, Warning, examine};
pub use master::{MasterConfig, job_lifetime};
pub use minion::MinionConfig;
pub use module_options::{ModuleOption, module_options};
pub use number::Number;
pub use optional_parts::{OPTIONAL_PARTS, OptionalPart, remedy_of_missing};
pub use options::{ANY_ENVIRONMENT, BadOption, InvalidOption, OptionDoc, Roots, in_environment};
pub use rest::{REST_SECTIONS, RestConfig, RestOptionError};
pub use template_opts::{master_template_opts, template_opts};
pub use transport::Transport;
pub use unknown_arguments::UnknownArguments;

/// Functions that read single options from `opts`: the options by name that templates see and masters send to minions.
/// An option that is not set, or whose value has another type, has its default.
pub mod opts {
    pub use crate::master::opts as master;
    pub use crate::minion::opts as minion;
    pub use crate::module_options::opts as modules;
    pub use crate::shared::opts as shared;
}

/// The version of Brine.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Salt that Brine emulates: templates and formulas compare it.
pub const SALT_VERSION: &str = "3008.3";

/// The default configuration directory.
pub const DEFAULT_DIRECTORY: &str = "/etc/salt";
