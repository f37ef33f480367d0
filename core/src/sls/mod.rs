//! SLS: from text to data to what is run.
//!
//! `yaml` reads and writes YAML as Salt does; `jinja` renders templates; `render` is the pipe through
//! both; `arguments` reads the words of a command line.

pub mod arguments;
pub mod jinja;
pub mod render;
pub mod yaml;
