//! The tasks of a master that subscribe to the bus or run at intervals.

use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::BlockingStore;
use brine_bus::{Bus, Filter, Start};
use brine_config::{InvalidOption, MasterConfig};
use brine_engines::Engine;
use brine_master_calls::{RunnerCalls, Services};
use brine_master_custom::files;
use brine_master_custom::stores::CacheDriver;
use brine_master_facts as facts;
use brine_master_jobs as jobs;
use brine_master_store::delivery::Queueing;
use brine_master_store::job_cache;
use brine_returners::Returner;
use brine_runtime::executors::Executors;
use brine_runtime::supervisor::{Background, Supervisor};
use brine_text::glob::GlobSet;
use tokio::sync::watch;

use crate::StartError;
use crate::cache_mirror;
use crate::engines;
use crate::file_events;
use crate::maintenance;
use crate::salt_clients;
use crate::schedule;

/// Starts the job cache.
pub(crate) fn start_job_cache(
    parts: &mut Supervisor,
    bus: &Bus,
    executors: &Executors,
    cache: job_cache::JobCache,
    progress: watch::Sender<u64>,
) -> Result<(), StartError> {
    // The cursor exists before the first event.
    job_cache::subscribe_jobs(bus)?;
    let (bus, disk, progress) = (bus.clone(), executors.disk.clone(), Arc::new(progress));
    parts.start_restarting("job cache", move |shutdown| {
        let (bus, disk, cache, progress) = (bus.clone(), disk.clone(), cache.clone(), Arc::clone(&progress));
        async move { job_cache::cache_jobs(&bus, cache, disk, progress, shutdown).await }
    });
    Ok(())
}

/// Starts storing jobs in `ext_job_cache`.
pub(crate) fn start_ext_job_cache(
    parts: &mut Supervisor,
    bus: &Bus,
    executors: &Executors,
    name: &str,
    returner: Arc<dyn Returner>,
) -> Result<(), StartError> {
    let (filter, cursor) = (Filter::prefix("salt/job/"), Start::Durable(format!("ext_job_cache/{name}")));
    bus.subscribe(filter.clone(), cursor.clone())?;
    let (bus, disk) = (bus.clone(), executors.disk.clone());
    parts.start_restarting(format!("external job cache {name}"), move |shutdown| {
        let (bus, disk, returner) = (bus.clone(), disk.clone(), Arc::clone(&returner));
        let (filter, cursor) = (filter.clone(), cursor.clone());
        async move {
            match bus.subscribe(filter, cursor) {
                Ok(events) => job_cache::cache_loads(&bus, events, returner, disk, shutdown).await,
                Err(error) => tracing::error!(%error, "subscribing the external job cache to the event bus failed"),
            }
        }
    });
    Ok(())
}

/// Starts an event returner (`event_return`).
pub(crate) fn start_event_returner(
    parts: &mut Supervisor,
    bus: &Bus,
    executors: &Executors,
    config: &MasterConfig,
    name: &str,
    returner: Arc<dyn Returner>,
) -> Result<(), StartError> {
    let (filter, deny) = event_return_filters(config)?;
    let seconds = Some(config.event_return_queue_max_seconds).filter(|seconds| *seconds > 0);
    let queueing = Queueing { events: config.event_return_queue, time: seconds.map(Duration::from_secs) };
    let cursor = Start::Durable(format!("event_return/{name}"));
    bus.subscribe(filter.clone(), cursor.clone())?;
    let (bus, disk) = (bus.clone(), executors.disk.clone());
    parts.start_restarting(format!("event returner {name}"), move |shutdown| {
        let (bus, disk, returner) = (bus.clone(), disk.clone(), Arc::clone(&returner));
        let (filter, deny, cursor) = (filter.clone(), deny.clone(), cursor.clone());
        async move {
            match bus.subscribe(filter, cursor) {
                Ok(events) => job_cache::return_events(&bus, events, returner, (deny, queueing), disk, shutdown).await,
                Err(error) => tracing::error!(%error, "subscribing an event returner to the event bus failed"),
            }
        }
    });
    Ok(())
}

/// Starts copying the minions' data to the driver of `cache`.
pub(crate) fn start_cache_mirror(
    parts: &mut Supervisor,
    calls: &Arc<RunnerCalls>,
    store: &BlockingStore,
    driver: &Arc<CacheDriver>,
) {
    let (services, store, driver) = (Arc::clone(&calls.services), store.clone(), Arc::clone(driver));
    parts.start_restarting("copies of minion data", move |shutdown| {
        cache_mirror::write_copies(Arc::clone(&services), store.clone(), Arc::clone(&driver), shutdown)
    });
}

/// Starts the tasks that need no resources other than the parts.
pub(crate) fn start_tasks(parts: &mut Supervisor, calls: &Arc<RunnerCalls>, background: &Background, has_git: bool) {
    let (services, config) = (Arc::clone(&calls.services), &calls.services.config);
    let of = |services: &Arc<Services>| Arc::clone(services);
    let shared = of(&services);
    parts.start_restarting("ended sessions", move |shutdown| maintenance::end_sessions(of(&shared), shutdown));
    let shared = of(&services);
    parts.start_restarting("maintenance", move |shutdown| maintenance::maintain(of(&shared), shutdown));
    if config.skip_disconnected {
        let facts = Arc::clone(&services.facts);
        parts.start_restarting("presence", move |shutdown| facts::presence::observe(Arc::clone(&facts), shutdown));
    }
    let jobs = Arc::clone(&services.jobs);
    parts.start_restarting("batches of salt", move |shutdown| jobs::batches::observe(Arc::clone(&jobs), shutdown));
    if !config.schedule.is_empty() {
        let (calls, background) = (Arc::clone(calls), background.clone());
        parts.start_restarting("schedule", move |shutdown| {
            schedule::run(Arc::clone(&calls), background.clone(), shutdown)
        });
    }
    if config.presence_events {
        let (facts, events, gate) = (Arc::clone(&services.facts), services.events.clone(), services.gate.clone());
        let interval = config.loop_interval.pause();
        parts.start_restarting("presence events", move |shutdown| {
            facts::presence::publish(Arc::clone(&facts), events.clone(), gate.clone(), interval, shutdown)
        });
    }
    let (configured, errors) = Engine::read(&config.engines);
    for error in errors {
        tracing::error!("option 'engines': {error}");
    }
    for engine in configured {
        let calls = Arc::clone(calls);
        parts.start_restarting(format!("engine {}", engine.name), move |shutdown| {
            let calls = Arc::clone(&calls);
            engine.clone().run(move |engine, stopping| engines::run(Arc::clone(&calls), engine, stopping), shutdown)
        });
    }
    if has_git {
        let shared = of(&services);
        parts.start_restarting("gitfs", move |shutdown| maintenance::fetch_repositories(of(&shared), shutdown));
    }
    for mirror in brine_fileserver::mirrors(&config.opts, &config.cachedir) {
        let (calls, render) = (Arc::clone(calls), calls.services.executors.render.clone());
        parts.start_restarting(format!("file server {}", mirror.name()), move |shutdown| {
            let (custom, config) = (Arc::clone(&calls.custom), Arc::clone(&calls.services.config));
            files::run(custom, config, render.clone(), mirror.clone(), shutdown)
        });
    }
    if config.salt_client_files {
        let shared = of(&services);
        parts.start_restarting("files for Salt's programs", move |shutdown| {
            salt_clients::write_files(of(&shared), shutdown)
        });
    }
    if config.fileserver_events {
        let (config, events) = (Arc::clone(config), services.events.clone());
        let disk = services.executors.disk.clone();
        parts.start_restarting("file server events", move |shutdown| {
            file_events::publish(Arc::clone(&config), events.clone(), disk.clone(), shutdown)
        });
    }
}

/// Returns the events that event returners receive: those that match a filter, except for those on a deny list.
pub(crate) fn event_return_filters(config: &MasterConfig) -> Result<(Filter, Option<GlobSet>), InvalidOption> {
    let globs = |option: &'static str, patterns: &[String]| {
        GlobSet::new(patterns).map_err(|error| InvalidOption { option, reason: error.to_string() })
    };
    let allow = match &config.event_return_whitelist[..] {
        [] => Filter::All,
        patterns => Filter::Globs(globs("event_return_whitelist", patterns)?),
    };
    let deny = match &config.event_return_blacklist[..] {
        [] => None,
        patterns => Some(globs("event_return_blacklist", patterns)?),
    };
    Ok((allow, deny))
}
