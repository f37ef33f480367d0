//! `apache_conf`: states of Apache configurations on Debian.

use brine_context::StateContext;
use brine_function::{CallResult, Function, function, registry};

use super::module::Parts;

/// State functions of `apache_conf`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("apache_conf", [enabled, disabled]);

/// Ensure that an Apache configuration is enabled.
#[function]
pub fn enabled(context: &StateContext, name: String) -> CallResult {
    PARTS.set(context, &name, true)
}

/// Ensure that an Apache configuration is disabled.
#[function]
pub fn disabled(context: &StateContext, name: String) -> CallResult {
    PARTS.set(context, &name, false)
}

const PARTS: Parts = Parts { word: "conf", short: "conf" };
