//! `reactor`: what the reactor is bound to.

use brine_core::functions;

use super::RunnerContext;

functions! {
    module "reactor", context RunnerContext;

    /// The tags that the reactor is bound to, each with its SLS files.
    ///
    /// CLI Example:
    ///
    ///     salt-run reactor.list
    fn list(context) {
        Ok(context.master.config.reactor.clone())
    }
}
