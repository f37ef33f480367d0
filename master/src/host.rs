//! What templates on the master reach of the host that it runs on.

use std::sync::Arc;

use brine_core::function::Args;
use brine_core::{Map, Value};

/// Execution functions and grains of the master's host. A master knows no minion's code: who starts it
/// brings them.
pub trait HostFunctions: Send + Sync {
    /// Calls an execution function by its full name. An error is told in words.
    fn call(&self, function: &str, args: Args) -> Result<Value, String>;

    /// Whether there is such a function.
    fn has(&self, function: &str) -> bool;

    /// The host's grains.
    fn grains(&self) -> Arc<Map>;
}
