//! SLS: from text to data to low chunks.
//!
//! | module | owns |
//! |---|---|
//! | [`render`] | the renderers of a source, one after the other |
//! | [`compile`] | rendered data to low chunks in order |
//! | [`top`] | top files |
//! | [`pillar`] | a minion's pillar, put together from SLS files and external sources |
//! | [`gpg`] | values that are sealed with PGP |

pub mod compile;
pub mod gpg;
#[cfg(test)]
mod guarded_tests;
pub mod pillar;
pub mod render;
mod toml;
pub mod top;
