//! Runner functions: what `salt-run` calls, one file a Salt module, each declared with
//! `brine_core::functions!`.
//!
//! They run in the master, which owns the job cache and the bus. Like execution functions they are
//! synchronous and have a thread of their own while they run.

mod auth;
mod batch;
mod doc;
mod event;
mod event_bus;
mod fileserver;
mod jobs;
mod manage;
mod metrics;
mod pillar;
mod reactor;
mod state;
mod test;

use std::future::Future;
use std::sync::Arc;

use brine_core::function::Function;
use brine_core::map;

use crate::runner_calls::{Caller, RunnerCalls, Services};
use crate::storage::Storage;

/// All runner functions: one line a module.
pub static MODULES: &[&[Function<RunnerContext>]] = &[
    auth::FUNCTIONS,
    batch::FUNCTIONS,
    doc::FUNCTIONS,
    event::FUNCTIONS,
    event_bus::FUNCTIONS,
    fileserver::FUNCTIONS,
    jobs::FUNCTIONS,
    manage::FUNCTIONS,
    metrics::FUNCTIONS,
    pillar::FUNCTIONS,
    reactor::FUNCTIONS,
    state::FUNCTIONS,
    test::FUNCTIONS,
];

/// The context of runner functions.
pub struct RunnerContext {
    pub(crate) master: Arc<Services>,
    pub(crate) calls: Arc<RunnerCalls>,
    pub(crate) caller: Caller,
}

impl RunnerContext {
    /// Publishes an event of the call itself: `salt/run/<jid>/progress`.
    pub(crate) fn progress(&self, message: &str) {
        let tag = format!("salt/run/{}/progress", self.caller.jid);
        self.wait(self.master.events.fire(&tag, &map! {"message" => message}));
    }

    /// Returns the storage of the master.
    pub(crate) fn storage(&self) -> &Storage {
        self.master.storage.get(&self.caller.thread)
    }

    /// Blocks on a future.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.caller.thread.wait(future)
    }
}
