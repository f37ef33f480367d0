//! SLS files: rendered to data, compiled to low chunks.
//!
//! | module | owns |
//! |---|---|
//! | [`render`] | the render pipe: the renderers of a source, in order |
//! | [`compile`] | the compiler: rendered data to ordered low chunks |
//! | [`top`] | top files |
//! | [`lines`] | the lines of states and arguments in the text of an SLS file |
//! | [`master_tops`] | the SLS files that `master_tops` modules assign in addition to top files |
//! | [`pillar`] | a minion's pillar, merged from SLS files and external sources |
//! | [`gpg`] | values that are encrypted with PGP |
//! | [`toml`] | TOML, read and written |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod compile;
pub mod gpg;
#[cfg(test)]
mod guarded_tests;
mod includes;
pub mod lines;
pub mod master_tops;
pub mod pillar;
pub mod render;
pub mod toml;
pub mod top;
