//! The master's and the minion's configuration: typed, with defaults and documentation in one place.
//!
//! `master.rs` and `minion.rs` declare the options, `rendering.rs` those that both have; `load.rs` reads files and
//! drop-ins; `known.rs` lists what else Salt knows, so that a mistyped name is told from one that has no effect here;
//! `template_opts.rs` has what templates see.

mod known;
mod load;
mod master;
mod minion;
mod options;
mod rendering;
mod template_opts;

pub use load::{ConfigError, Loaded, Warning};
pub use master::MasterConfig;
pub use minion::MinionConfig;
pub use options::{OptionDoc, Roots};
pub use template_opts::template_opts;

/// Where configuration is looked for when nothing else is said.
pub const DEFAULT_DIRECTORY: &str = "/etc/salt";
