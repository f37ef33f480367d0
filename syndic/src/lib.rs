//! The syndic (`salt-syndic`) connects a master to upstream masters. Upstream it acts as a minion that receives every
//! job. On its own host it publishes these jobs through the local master, and forwards that master's returns and
//! events.
//!
//! | module | owns |
//! |---|---|
//! | `settings` | the upstream masters, and the syndic's identity |
//! | `upstream_master` | the session with one upstream master |
//! | `publish` | jobs of upstream masters, published by the local master |
//! | `forward` | returns and events of the local master, sent upstream in order |
//! | `bundle` | the selection of returns and events, and the message formats |
//! | `position` | the last event that an upstream master has stored |
//!
//! Each upstream master has its own subscription to the local bus. An event counts as forwarded when that master has
//! stored it. While an upstream master is away, its subscription waits: nothing is lost as long as the event is in the
//! local journal.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

mod bundle;
mod forward;
mod metrics;
mod position;
mod publish;
mod settings;
mod upstream_master;

use std::sync::Arc;
use std::time::Duration;

use brine_client::MasterClient;
use brine_runtime::executors::Executors;
use brine_runtime::supervisor::Supervisor;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

pub use self::settings::{Settings, SyndicError};
use publish::Publisher;
use upstream_master::UpstreamMaster;

/// The time that tasks have to stop at shutdown.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of threads that decrypt and read key files.
const THREADS: usize = 2;

/// Runs a syndic until `shutdown`.
///
/// # Errors
/// A key or directory cannot be used, or an essential task has ended.
pub fn run(settings: Settings, shutdown: CancellationToken) -> BoxFuture<'static, Result<(), SyndicError>> {
    // Boxed, because the code of a future is compiled by the crate that polls it.
    Box::pin(run_tasks(settings, shutdown))
}

async fn run_tasks(settings: Settings, shutdown: CancellationToken) -> Result<(), SyndicError> {
    metrics::register();
    let settings = Arc::new(settings);
    let executors = Executors::new(THREADS);
    let all: Vec<Arc<UpstreamMaster>> = {
        let (settings, crypto) = (Arc::clone(&settings), executors.crypto.clone());
        let opened = executors.disk.run(move |_| UpstreamMaster::open_all(&settings, &crypto));
        opened.await??.into_iter().map(Arc::new).collect()
    };
    let client = Arc::new(MasterClient::new(&settings.master));
    let publisher = Arc::new(Publisher::new(Arc::clone(&settings), Arc::clone(&client), executors.disk.clone()));
    let mut tasks = Supervisor::new();
    for upstream in &all {
        let (one, publisher) = (Arc::clone(upstream), Arc::clone(&publisher));
        tasks.start_restarting("session with an upstream master", move |stopping| {
            Arc::clone(&publisher).run(Arc::clone(&one), stopping)
        });
        let (one, all, client, settings) =
            (Arc::clone(upstream), all.clone(), Arc::clone(&client), Arc::clone(&settings));
        let disk = executors.disk.clone();
        tasks.start_restarting("events for an upstream master", move |stopping| {
            let forwarder = forward::Forwarder {
                upstream: Arc::clone(&one),
                all: all.clone(),
                client: Arc::clone(&client),
                settings: Arc::clone(&settings),
                disk: disk.clone(),
            };
            forwarder.run(stopping)
        });
    }
    let failed = tasks.failed();
    let result = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        () = failed.cancelled() => Err(SyndicError::TaskFailed),
    };
    shutdown.cancel();
    tasks.stop(STOP_TIMEOUT).await;
    executors.stop();
    result
}
