//! The reactor in the master: carries out its reactions (`dispatch.rs`) and reloads its configuration (`reload.rs`).

mod dispatch;
mod reload;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_bus::store::{BlockingStore, StoreError};
use brine_config::{InvalidOption, master_template_opts};
use brine_master_calls::{REACTOR, RunnerCalls};
use brine_master_facts::Facts;
use brine_reactor::{DETACH, Entries, EntryError, Options, Reactor};
use brine_runtime::executors::MayBlock;
use brine_runtime::supervisor::Supervisor;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::StartError;
use dispatch::MasterDispatch;

/// The time for which the size of a node group is cached: resolving it reads the keys and data of all minions.
const GROUP_SIZE_TTL: Duration = Duration::from_secs(10);

/// The sizes of node groups, each with the time of its resolution.
type GroupSizes = HashMap<String, (Instant, Option<usize>)>;

/// Returns the function that resolves the size of a nodegroup.
fn group_size(facts: &Arc<Facts>) -> brine_reactor::GroupSize {
    let facts = Arc::clone(facts);
    let sizes: Arc<Mutex<GroupSizes>> = Arc::default();
    Arc::new(move |name| {
        let (facts, sizes, name) = (Arc::clone(&facts), Arc::clone(&sizes), name.to_owned());
        Box::pin(async move {
            if let Some((at, size)) = sizes.lock().get(&name)
                && at.elapsed() < GROUP_SIZE_TTL
            {
                return *size;
            }
            let size = facts.group_size(&name).await;
            sizes.lock().insert(name, (Instant::now(), size));
            size
        })
    })
}

/// Returns the startup error for invalid reactor entries.
pub(crate) fn invalid_entries(error: &EntryError) -> InvalidOption {
    InvalidOption { option: "reactor", reason: error.to_string() }
}

/// Starts the reactor. It starts without entries as well, since they can be added at runtime.
pub(crate) async fn start(
    calls: &Arc<RunnerCalls>,
    store: BlockingStore,
    parts: &mut Supervisor,
) -> Result<(), StartError> {
    let services = &calls.services;
    let gate = services.gate.clone();
    let config = &services.config;
    // An invalid entry costs its own reactions only; the check of the configuration has logged it.
    let (entries, _) = Entries::usable(&config.opts).map_err(|error| invalid_entries(&error))?;
    let functions = services.functions.clone();
    // The reactor's workers run on dedicated threads.
    let thread = MayBlock::on_dedicated_thread(Handle::current());
    let options = Options {
        workers: config.reactor_worker_threads,
        waiting: config.reactor_worker_hwm,
        detach: DETACH,
        deadline: Duration::from_secs(config.reactor_deadline.max(1)),
        retries: config.reactor_retries,
        strict_data: config.reactor_strict_data,
        max_depth: config.reactor_max_depth,
        user: REACTOR,
        renderer: config.renderer.clone(),
        opts: Arc::new(master_template_opts(config)),
        grains: Arc::new(move || functions.as_ref().map(|functions| functions.grains()).unwrap_or_default()),
        host: calls.template_host()(&thread),
        group_size: group_size(&services.facts),
        store: Some(store),
        dead_letter_bytes: config.reactor_dead_letters_size << 20,
        disk: services.executors.disk.clone(),
        gate,
    };
    let events = Reactor::subscribe(&services.bus)?;
    let dispatch = MasterDispatch { jobs: Arc::clone(&services.jobs), calls: Arc::clone(calls) };
    let files = config.reactor_rules.clone();
    let opened = services.executors.render.run(move |_| -> Result<_, StoreError> {
        let reactor = Reactor::new(entries, options, dispatch)?;
        let errors = reactor.set_rules(&files)?;
        Ok((reactor, errors))
    });
    let (reactor, errors) = opened.await.unwrap_or(Err(StoreError::Closed))?;
    for error in errors {
        tracing::error!("a rule over time is skipped: {error}");
    }
    services.reactor.set(&reactor);
    let (reloading, bus) = ((Arc::clone(services), Arc::clone(&reactor)), services.bus.clone());
    parts.start("reactor", |shutdown| reactor.run(bus, events, shutdown));
    parts.start_restarting("reactor configuration", move |shutdown| {
        let (services, reactor) = reloading.clone();
        async move { reload::watch(services, reactor, shutdown).await }
    });
    Ok(())
}
