//! The host of a minion: code that modules, states and the daemon share and that is not a Salt module.
//!
//! | module | owns |
//! |---|---|
//! | [`process`] | child processes |
//! | [`programs`] | lookup of programs, and running them by argument lists without a shell |
//! | [`environment`] | the environment of child processes |
//! | [`accounts`] | users and groups |
//! | [`passwords`] | hashes of passwords |
//! | [`lines`] | lines such as `LANG=..` in small files |
//! | [`paths`] | paths as users write them |
//! | [`web`] | the HTTP client |
//! | [`grains`] | facts about the host |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub mod accounts;
pub mod environment;
pub mod grains;
pub mod lines;
pub mod passwords;
pub mod paths;
pub mod process;
pub mod programs;
pub mod web;
