//! Engines: what runs as long as its daemon and publishes events. An engine that ends is restarted.
//!
//! | module | owns |
//! |---|---|
//! | `engine` | the option `engines`, and restarts: [`Engine`] |
//! | `built_in` | the engines of Brine by name: [`BuiltIn`] |
//! | `script` | `script`: events from the output of a program |
//! | `webhook` | `webhook`: events from HTTP requests |
//!
//! Engines of custom modules are functions in Python; `minion/context/src/custom` and `master/src/custom.rs` call them.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod built_in;
mod engine;
pub mod metrics;
mod script;
mod webhook;

pub use built_in::{BuiltIn, Publisher};
pub use engine::Engine;
