//! The handlers of the resources, one file for each group.

pub(crate) mod app;
pub(crate) mod commands;
pub(crate) mod console;
pub(crate) mod events;
pub(crate) mod formatted;
pub(crate) mod hook;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod login;
pub(crate) mod web_socket;
