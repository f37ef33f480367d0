//! Runner functions: what `salt-run` calls, one file a Salt module, each declared with
//! `brine_function::functions!`.
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

use brine_function::Function;
use brine_value::map;

use crate::Shared;
use crate::calls::Caller;
use crate::disk::Disk;

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
    pub(crate) master: Arc<Shared>,
    pub(crate) caller: Caller,
}

impl RunnerContext {
    /// Fires an event of the call itself: `salt/run/<jid>/progress`.
    pub(crate) fn progress(&self, message: &str) {
        let tag = format!("salt/run/{}/progress", self.caller.jid);
        self.wait(self.master.fire(&tag, &map! {"message" => message}));
    }

    /// The parts of the master that wait for a disk.
    pub(crate) fn disk(&self) -> &Disk {
        self.master.disk.get(&self.caller.thread)
    }

    /// Waits for something asynchronous.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.caller.thread.wait(future)
    }
}
