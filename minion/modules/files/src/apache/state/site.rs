//! `apache_site`: states of Apache sites on Debian.

use brine_context::StateContext;
use brine_function::{CallResult, Function, function, registry};

use super::module::Parts;

/// State functions of `apache_site`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("apache_site", [enabled, disabled]);

/// Ensure that an Apache site is enabled.
#[function]
pub fn enabled(context: &StateContext, name: String) -> CallResult {
    PARTS.set(context, &name, true)
}

/// Ensure that an Apache site is disabled.
#[function]
pub fn disabled(context: &StateContext, name: String) -> CallResult {
    PARTS.set(context, &name, false)
}

const PARTS: Parts = Parts { word: "site", short: "site" };
