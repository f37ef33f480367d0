//! States of `apache`: one file a state module.

pub(crate) mod conf;
pub(crate) mod module;
pub(crate) mod site;
