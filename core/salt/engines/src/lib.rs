//! Engines: what runs as long as its daemon and publishes events. An engine that ends is restarted.
//!
//! | module | owns |
//! |---|---|
//! | `engine` | the option `engines`, and restarts: [`Engine`] |
//! | `built_in` | the engines of Brine by name: [`BuiltIn`] |
//! | `error` | why an engine ends, why an event is not published |
//! | `check` | the errors of the option before any engine runs |
//! | `publisher` | what an engine gets from its daemon: [`Publisher`] |
//! | `script` | `script`: events from the output of a program |
//! | `webhook` | `webhook`: events from HTTP requests |
//!
//! Engines of custom modules are functions in Python; `minion/context/src/custom` and `master/custom/src/modules.rs` call them.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod arguments;
mod built_in;
mod check;
mod engine;
mod error;
pub mod metrics;
mod publisher;
mod script;
mod webhook;

pub use built_in::BuiltIn;
pub use engine::Engine;
pub use error::{EngineError, PublishError};
pub use publisher::Publisher;
