//! The host that a minion runs on: what modules, states and the daemon share and is no Salt module.
//!
//! | module | owns |
//! |---|---|
//! | [`process`] | running programs |
//! | [`programs`] | finding programs, and running them word by word without a shell |
//! | [`environment`] | the environment of the programs that are run |
//! | [`accounts`] | users and groups |
//! | [`lines`] | lines such as `LANG=..` in small files |
//! | [`paths`] | paths as people write them |
//! | [`web`] | the HTTP client |
//! | [`grains`] | facts about the host |

#![warn(clippy::self_named_module_files)]

pub mod accounts;
pub mod environment;
pub mod grains;
pub mod lines;
pub mod paths;
pub mod process;
pub mod programs;
pub mod web;
