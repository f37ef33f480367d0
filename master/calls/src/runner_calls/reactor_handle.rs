//! The running reactor, for runner functions.

use std::sync::{Arc, OnceLock, Weak};

use brine_reactor::Reactor;

/// A weak handle to the running reactor, which is owned by its task, so that the master's parts are dropped with it.
#[derive(Default)]
pub struct ReactorHandle(OnceLock<Weak<Reactor>>);

impl ReactorHandle {
    /// Sets the reactor, once.
    pub fn set(&self, reactor: &Arc<Reactor>) {
        _ = self.0.set(Arc::downgrade(reactor));
    }

    /// Returns the reactor, while it runs.
    pub fn get(&self) -> Option<Arc<Reactor>> {
        self.0.get().and_then(Weak::upgrade)
    }
}
