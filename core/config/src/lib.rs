//! The configuration of the master and the minion: types, defaults and documentation of every option in one place.
//!
//! `master.rs` and `minion.rs` declare the options, `rendering.rs` those that both have. `load.rs` reads the files and
//! drop-ins. `rest.rs` has the options of the REST API. `module_options.rs` documents the options that modules read by name. `known.rs` lists Salt's other
//! options, so that an option without effect is told from a misspelt one. `template_opts.rs` adds the defaults that
//! templates see in `opts`. The pages docs/reference/master.md and minion.md are generated from here.

mod known;
mod load;
mod master;
mod minion;
mod module_options;
mod options;
mod rendering;
mod rest;
mod template_opts;

pub use known::{FIXED_OPTIONS, ignored_options};
pub use load::{ConfigError, Loaded, Warning};
pub use master::MasterConfig;
pub use minion::MinionConfig;
pub use module_options::{MODULE_OPTIONS, ModuleOption};
pub use options::{OptionDoc, Roots};
pub use rest::{REST_SECTIONS, RestConfig, RestOptionError};
pub use template_opts::template_opts;

/// The version of Brine.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Salt that Brine behaves as: what templates and formulas compare.
pub const SALT_VERSION: &str = "3008.3";

/// The default configuration directory.
pub const DEFAULT_DIRECTORY: &str = "/etc/salt";
