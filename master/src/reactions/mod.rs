//! The reactor in the master: where its reactions go (`dispatch.rs`), what its templates reach (`host.rs`),
//! and taking up changes of its configuration (`reload.rs`).

mod dispatch;
mod host;
mod reload;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use brine_bus::store::{BlockingStore, StoreError};
use brine_reactor::{DETACH, Entries, EntryError, Options, Reactor};
use brine_runtime::executors::MayBlock;
use brine_runtime::supervisor::Supervisor;
use brine_target::{Target, TargetKind};
use brine_value::Value;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::{Shared, StartError};
pub(crate) use dispatch::MasterDispatch;
pub(crate) use host::ReactorHost;

/// Who reactions are done for, as events name it.
pub(crate) const USER: &str = "Reactor";

/// The way to the running reactor. It is held by its task alone, so that the master's parts end with it.
#[derive(Default)]
pub(crate) struct MasterReactor(OnceLock<Weak<Reactor<MasterDispatch>>>);

impl MasterReactor {
    /// The reactor, while it runs.
    pub fn get(&self) -> Option<Arc<Reactor<MasterDispatch>>> {
        self.0.get().and_then(Weak::upgrade)
    }
}

/// How long the size of a node group is good for: looking it up reads the keys and data of all minions.
const GROUP_SIZE_FOR: Duration = Duration::from_secs(10);

/// The sizes of node groups, and when they were looked up.
type GroupSizes = HashMap<String, (Instant, Option<usize>)>;

/// Looks up how large node groups are.
fn group_size(shared: &Arc<Shared>) -> brine_reactor::GroupSize {
    let shared = Arc::clone(shared);
    let known: Arc<Mutex<GroupSizes>> = Arc::default();
    Arc::new(move |name| {
        let (shared, known, name) = (Arc::clone(&shared), Arc::clone(&known), name.to_owned());
        Box::pin(async move {
            if let Some((at, size)) = known.lock().get(&name)
                && at.elapsed() < GROUP_SIZE_FOR
            {
                return *size;
            }
            let target =
                Target::parse(TargetKind::Nodegroup, Value::from(&*name), ":", &shared.config.nodegroups).ok()?;
            let disk = shared.executors.disk.clone();
            let count = move |thread: &MayBlock| shared.resolve(shared.disk.get(thread), &target).ok();
            let size = disk.run(count).await.ok().flatten().map(|found| found.0.len());
            known.lock().insert(name, (Instant::now(), size));
            size
        })
    })
}

/// The error of a start with these entries.
pub(crate) fn wrong(error: &EntryError) -> StartError {
    StartError::Config { option: "reactor", reason: error.to_string() }
}

/// Starts the reactor. It runs also when nothing is bound: entries can be added while it runs.
pub(crate) async fn start(
    shared: &Arc<Shared>,
    store: BlockingStore,
    parts: &mut Supervisor,
) -> Result<(), StartError> {
    let config = &shared.config;
    let entries = Entries::from_opts(&config.opts).map_err(|error| wrong(&error))?;
    let functions = shared.functions.clone();
    // The reactor's workers are threads of its own.
    let thread = MayBlock::own_thread(Handle::current());
    let options = Options {
        workers: config.reactor_worker_threads,
        waiting: config.reactor_worker_hwm,
        detach: DETACH,
        deadline: Duration::from_secs(config.reactor_deadline.max(1)),
        retries: config.reactor_retries,
        strict_data: config.reactor_strict_data,
        max_depth: config.reactor_max_depth,
        user: USER,
        renderer: config.renderer.clone(),
        opts: Arc::new(config.opts.clone()),
        grains: Arc::new(move || functions.as_ref().map(|functions| functions.grains()).unwrap_or_default()),
        host: Arc::new(ReactorHost { shared: Arc::clone(shared), thread }),
        group_size: group_size(shared),
        store: Some(store),
        disk: shared.executors.disk.clone(),
    };
    let events = Reactor::<MasterDispatch>::subscribe(&shared.bus)?;
    let (dispatch, files) = (MasterDispatch(Arc::clone(shared)), config.reactor_rules.clone());
    let opened = shared.executors.render.run(move |_| -> Result<_, StoreError> {
        let reactor = Reactor::new(entries, options, dispatch)?;
        let errors = reactor.set_rules(&files)?;
        Ok((reactor, errors))
    });
    let (reactor, errors) = opened.await.unwrap_or(Err(StoreError::Closed))?;
    for error in errors {
        tracing::error!("a rule over time is left out: {error}");
    }
    // Set once: this is called once for a master.
    _ = shared.reactor.0.set(Arc::downgrade(&reactor));
    let (reloading, bus) = ((Arc::clone(shared), Arc::clone(&reactor)), shared.bus.clone());
    parts.start("reactor", |shutdown| reactor.run(bus, events, shutdown));
    parts.start_restarting("reactor configuration", move |shutdown| {
        let (shared, reactor) = reloading.clone();
        async move { reload::watch(shared, reactor, shutdown).await }
    });
    Ok(())
}
