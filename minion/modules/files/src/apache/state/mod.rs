//! States of `apache`: one file per state module.

pub(crate) mod conf;
pub(crate) mod module;
pub(crate) mod site;
