//! SLS: from text to data to what is run.
//!
//! `yaml` reads and writes YAML as Salt does; `arguments` reads the words of a command line.

pub mod arguments;
pub mod compile;
pub mod gpg;
pub mod jinja;
pub mod pillar;
pub mod render;
mod toml;
pub mod top;
pub mod untrusted;
pub mod yaml;
