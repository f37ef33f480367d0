//! The host that a minion runs on: processes, accounts, programs and the HTTP client, which modules, states and daemon share.
//!
//! | module | owns |
//! |---|---|
//! | [`process`] | running programs |
//! | `programs` | programs word by word, without a shell |
//! | `accounts` | users and groups |
//! | `lines` | lines such as `LANG=..` in small files |
//! | `web` | the HTTP client |

pub(crate) mod accounts;
pub(crate) mod lines;
pub mod process;
pub(crate) mod programs;
pub(crate) mod web;
