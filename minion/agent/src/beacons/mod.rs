//! Beacons: they poll this host and publish events.
//!
//! One file a beacon, one line in [`KINDS`]. [`Poller`] polls the configured beacons when they are due. The events go
//! over the minion's own bus as one `__beacons_return` and from there to the master, where each is published as
//! `salt/beacon/<id>/<name>/<remainder>`. `manage/` answers the execution module `beacons`, which changes
//! the configuration at run time.

mod btmp;
mod cert_info;
mod custom;
mod diskusage;
mod http_status;
mod inotify;
mod journald;
mod load;
mod log;
mod manage;
mod memusage;
mod network_info;
mod pkg;
mod ps;
mod salt_monitor;
mod service;
mod settings;
mod sh;
mod status;
mod swapusage;
mod watchdog;
mod wtmp;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brine_bus::Bus;
use brine_context::{Context, Job, Minion};
use brine_function::Args;
use brine_ids::Jid;
use brine_runtime::executors::Executor;
use brine_runtime::polling::PollInterval;
use brine_value::{Map, Value, map};
use jiff::Zoned;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::manage::answer;
pub use self::settings::COMMON_OPTIONS;
use self::settings::Settings;
use crate::leader::Leader;

/// The tag of the event that carries the events of one poll over the minion's own bus, in its field `beacons`.
pub(crate) const RETURN: &str = "__beacons_return";

/// The context of a poll.
pub(crate) struct PollContext<'a> {
    /// The context for execution functions.
    pub context: &'a Context,
    /// The time of the poll.
    pub now: &'a Zoned,
}

/// A configured beacon with its state.
pub(crate) trait Beacon: Send {
    /// Polls the host and returns the data of an event each; a field `tag` is appended to the event's tag.
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String>;
}

/// A kind of beacon: its documentation and its constructor.
pub struct Kind {
    /// Salt's name of the beacon.
    pub name: &'static str,
    /// The condition that it reports.
    pub doc: &'static str,
    /// The remainder of its events' tags; empty if they have none.
    pub tag: &'static str,
    /// Its own options, in addition to [`COMMON_OPTIONS`].
    pub options: Options,
    /// The fields of its events, in addition to `id`.
    pub fields: &'static [Entry],
    /// Returns whether the host has everything that the beacon needs.
    is_available: fn() -> bool,
    /// Validates the options and creates the beacon.
    start: fn(&Settings) -> Result<Box<dyn Beacon>, String>,
}

impl Kind {
    /// A beacon without options and fields whose events' tags end with its name, and which every host has.
    const DEFAULT: Kind = Kind {
        name: "",
        doc: "",
        tag: "",
        options: Options::Named(&[]),
        fields: &[],
        is_available: || true,
        start: |_| Err("the beacon has no implementation".into()),
    };
}

/// The own options of a beacon.
pub enum Options {
    /// A fixed set of names.
    Named(&'static [Entry]),
    /// Any names: those of the watched objects.
    Keyed(Entry),
}

/// The documentation of an option or a field.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, and the default of an option in parentheses.
    pub doc: &'static str,
}

const fn entry(name: &'static str, doc: &'static str) -> Entry {
    Entry { name, doc }
}

/// All beacons, sorted by name.
pub static KINDS: &[Kind] = &[
    btmp::KIND,
    cert_info::KIND,
    diskusage::KIND,
    http_status::KIND,
    inotify::KIND,
    journald::KIND,
    load::KIND,
    log::KIND,
    memusage::KIND,
    network_info::KIND,
    pkg::KIND,
    ps::KIND,
    salt_monitor::KIND,
    service::KIND,
    sh::KIND,
    status::KIND,
    swapusage::KIND,
    watchdog::KIND,
    wtmp::KIND,
];

/// Returns the names of the beacons that are available on this host.
pub(crate) fn available() -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter(|kind| (kind.is_available)()).map(|kind| kind.name)
}

/// Creates a beacon from its configuration. Custom beacons are only found with `own`, the context of their calls.
fn start(name: &str, config: &Value, own: Option<&Context>) -> Result<(Settings, Box<dyn Beacon>), String> {
    let settings = Settings::read(name, config)?;
    let module = settings.module.as_str();
    // As in Salt, custom beacons take precedence.
    if let Some(context) = own {
        if custom::exists(&context.minion, module) {
            let beacon = custom::start(context, &settings, config)?;
            return Ok((settings, beacon));
        }
        if let Some(failure) = custom::failure(&context.minion, module) {
            return Err(failure);
        }
    }
    let kind = KINDS.iter().find(|kind| kind.name == module).ok_or_else(|| {
        let names: Vec<_> = available().collect();
        format!("unknown beacon '{module}': expected one of {}", names.join(", "))
    })?;
    if !(kind.is_available)() {
        return Err(format!("beacon '{module}' is not available on this host: {}", kind.doc));
    }
    let beacon = (kind.start)(&settings)?;
    Ok((settings, beacon))
}

/// Returns a message for each unknown option in a beacon's configuration. Beacons ignore them, as in Salt.
pub(crate) fn unknown_options(name: &str, config: &Value) -> Vec<String> {
    let Ok(settings) = Settings::read(name, config) else { return Vec::new() };
    let Some(kind) = KINDS.iter().find(|kind| kind.name == settings.module) else { return Vec::new() };
    let Options::Named(own) = kind.options else { return Vec::new() };
    let unknown =
        settings.own.iter().map(|(name, _)| name).filter(|name| !own.iter().any(|option| option.name == **name));
    let all = || own.iter().chain(COMMON_OPTIONS).map(|option| option.name).collect::<Vec<_>>().join(", ");
    unknown.map(|name| format!("unknown option '{name}': expected one of {}", all())).collect()
}

/// Validates the configuration of a built-in beacon, before the minion starts.
pub(crate) fn check(name: &str, config: &Value) -> Result<(), String> {
    start(name, config, None).map(|_| ())
}

/// Validates the configuration of a beacon of a running minion.
pub(crate) fn check_on(minion: &Arc<Minion>, name: &str, config: &Value) -> Result<(), String> {
    start(name, config, Some(&custom::context(minion))).map(|_| ())
}

/// Returns whether a configured beacon is a custom one.
fn is_custom(minion: &Minion, name: &str, config: &Value) -> bool {
    custom::exists(minion, &module(name, config))
}

/// Returns the module of a configured beacon: `beacon_module`, or its name.
pub(crate) fn module(name: &str, config: &Value) -> String {
    Settings::read(name, config).map_or_else(|_| name.to_owned(), |settings| settings.module)
}

/// Reads a file of procfs.
fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("reading {path} failed: {error}"))
}

/// A configured beacon.
struct StartedBeacon {
    config: Value,
    /// Whether it is a custom beacon: these appear and disappear with `saltutil.sync_beacons`.
    is_custom: bool,
    /// `None` if the configuration is invalid, which was logged when it was read.
    beacon: Option<(Settings, Box<dyn Beacon>)>,
    /// The time of the next poll, since the start of the poller.
    due: Duration,
    /// The error of the last poll, so that a repeated one is not reported again.
    error: Option<String>,
}

/// Polls the configured beacons when they are due.
pub(crate) struct Poller {
    context: Context,
    started: HashMap<String, StartedBeacon>,
}

impl Poller {
    /// Creates a poller; the first poll starts the beacons.
    pub fn new(minion: &Arc<Minion>) -> Self {
        let job = Arc::new(Job::local(&Jid::new(), "beacons", &Args::default()));
        let context = Context::new(Arc::clone(minion), job);
        Poller { context, started: HashMap::new() }
    }

    /// Polls the beacons that are due at this time since the start, or within `slack` after it. Returns the events:
    /// `tag`, `data` and `beacon_name` of each.
    pub fn poll(&mut self, since_start: Duration, slack: Duration, now: &Zoned) -> Vec<Value> {
        let minion = Arc::clone(&self.context.minion);
        let configured = minion.beacons.all(&minion.pillar.read());
        if configured.get("enabled").is_some_and(|enabled| !enabled.is_truthy()) {
            return Vec::new();
        }
        // A beacon with a changed configuration is started again.
        self.started.retain(|name, started| {
            configured.get(name.as_str()) == Some(&started.config)
                && is_custom(&minion, name, &started.config) == started.is_custom
        });
        let states_run = || {
            minion.jobs.lock().values().any(|job| job.fun.starts_with("state.") && !job.is_held.load(Ordering::Relaxed))
        };
        let mut events = Vec::new();
        for (name, config) in configured.iter().filter(|(name, _)| name.as_str() != Some("enabled")) {
            let name = name.to_string();
            let started = self
                .started
                .entry(name.clone())
                .or_insert_with(|| StartedBeacon::new(&self.context, &name, config, since_start));
            let Some((settings, beacon)) = &mut started.beacon else { continue };
            if !settings.enabled || since_start + slack < started.due {
                continue;
            }
            if let Some(interval) = settings.interval {
                let next = started.due + interval;
                started.due = if next > since_start { next } else { since_start + interval };
            }
            if settings.is_paused_during_states && states_run() {
                continue;
            }
            let tag = |rest: &str| format!("salt/beacon/{}/{name}/{rest}", minion.id);
            let event = |tag: String, data: Map| map! {"tag" => tag, "data" => data, "beacon_name" => &settings.module};
            match beacon.poll(&PollContext { context: &self.context, now }) {
                Ok(report) => {
                    started.error = None;
                    events.extend(report.into_iter().map(|mut data| {
                        let rest = data.shift_remove("tag").map(|rest| rest.to_string()).unwrap_or_default();
                        data.entry("id".into()).or_insert_with(|| minion.id.as_str().into());
                        Value::from(event(tag(&rest), data))
                    }));
                    if settings.once {
                        // A beacon of the pillar is disabled only here.
                        settings.enabled = false;
                        minion.beacons.set_enabled(&name, false);
                    }
                }
                Err(error) if started.error.as_ref() != Some(&error) => {
                    tracing::error!(beacon = name, error, "polling a beacon failed");
                    let mut report = event(tag(""), map! {"id" => &minion.id, "_error" => &error});
                    report.insert("error".into(), error.as_str().into());
                    events.push(report.into());
                    started.error = Some(error);
                }
                Err(_) => {}
            }
        }
        events
    }
}

impl StartedBeacon {
    fn new(context: &Context, name: &str, config: &Value, since_start: Duration) -> Self {
        let beacon = start(name, config, Some(context));
        if let Err(error) = &beacon {
            tracing::error!("beacon '{name}' is invalid: {error}; ignoring it");
        }
        for unknown in unknown_options(name, config) {
            tracing::warn!("beacon '{name}': {unknown}");
        }
        let (beacon, is_custom) = (beacon.ok(), is_custom(&context.minion, name, config));
        let wait = beacon.as_ref().and_then(|(settings, _)| settings.interval).unwrap_or_default();
        StartedBeacon { config: config.clone(), is_custom, beacon, due: since_start + wait, error: None }
    }
}

/// Polls every `loop_interval` seconds once the minion is ready, or from the start with `beacons_before_connect`.
pub(crate) async fn run(
    leader: Leader,
    render: Executor,
    bus: Bus,
    ready: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    let minion = leader.minion();
    let (config, every) = (&minion.config, minion.config.loop_interval.pause());
    let Some(mut ticks) = PollInterval::begin(config.beacons_before_connect, ready, every, shutdown).await else {
        return;
    };
    let start = Instant::now();
    let mut poller = Poller::new(&minion);
    while ticks.next().await {
        poller.context.minion = leader.minion();
        let polled = render.run(move |_| {
            let events = poller.poll(start.elapsed(), every / 2, &brine_clock::now());
            (poller, events)
        });
        let events;
        (poller, events) = match polled.await {
            Ok(polled) => polled,
            Err(error) => {
                tracing::error!(%error, "polling beacons failed; restarting all");
                (Poller::new(&minion), Vec::new())
            }
        };
        if events.is_empty() {
            continue;
        }
        if let Err(error) = bus.fire(RETURN, &map! {"beacons" => events}).await {
            tracing::error!(%error, "publishing events of beacons failed");
        }
    }
}

#[cfg(test)]
mod tests;
