//! Beacons: what is watched on this host, and the events that tell of it.
//!
//! One file a beacon. [`Watch`] looks when it is time; what was seen goes onto the minion's own bus as
//! `__beacons_return`, and from there to the master, where each answer is an event
//! `salt/beacon/<id>/<name>/<tag of the answer>`. `manage.rs` holds the configuration, which the execution
//! module `beacons` changes while the minion runs.

mod btmp;
mod diskusage;
mod inotify;
mod load;
mod log;
mod manage;
mod memusage;
mod network_info;
mod pkg;
mod ps;
mod service;
mod settings;
mod sh;
mod status;
mod swapusage;
mod wtmp;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use brine_function::Args;
use brine_ids::Jid;
use brine_runtime::executors::Executor;
use brine_value::{Map, Value, map};
use jiff::Zoned;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::manage::{Configured, answer};
use self::settings::Settings;
use crate::context::{Context, Job, Minion};
use crate::ticks::Ticks;

/// The event that carries what beacons saw over the minion's own bus, in its field `beacons`.
pub(crate) const RETURN: &str = "__beacons_return";

/// What a beacon sees beside the host itself.
pub(crate) struct Moment<'a> {
    /// For the execution functions that it calls.
    pub context: &'a Context,
    /// The time.
    pub now: &'a Zoned,
}

/// A beacon that has been started. What it remembers is its own.
pub(crate) trait Look: Send {
    /// Looks, and tells what is worth an event: its fields, of which `tag` goes to the end of the event's tag.
    fn look(&mut self, moment: &Moment<'_>) -> Result<Vec<Map>, String>;
}

/// A beacon that there is.
struct Kind {
    name: &'static str,
    /// Whether this host has what it needs.
    is_available: fn() -> bool,
    /// Checks its options.
    start: fn(&Settings) -> Result<Box<dyn Look>, String>,
    /// The names of its own options; nothing if these are names of what it watches.
    options: Option<&'static [&'static str]>,
}

type Start = fn(&Settings) -> Result<Box<dyn Look>, String>;

const fn kind(name: &'static str, start: Start, options: &'static [&'static str]) -> Kind {
    Kind { name, is_available: || true, start, options: Some(options) }
}

/// The options of the beacons of logins.
const LOGINS: &[&str] = &["users", "groups", "defaults"];

/// All beacons: one line each.
static KINDS: &[Kind] = &[
    Kind { is_available: || Path::new(btmp::BTMP).is_file(), ..kind("btmp", btmp::start, LOGINS) },
    Kind { options: None, ..kind("diskusage", diskusage::start, &[]) },
    kind("inotify", inotify::start, &["files", "coalesce"]),
    kind("load", load::start, &["averages", "onchangeonly", "emitatstartup"]),
    kind("log", log::start, &["file", "tags"]),
    kind("memusage", memusage::start, &["percent"]),
    kind("network_info", network_info::start, &["interfaces"]),
    kind("pkg", pkg::start, &["pkgs", "refresh"]),
    kind("ps", ps::start, &["processes"]),
    kind("service", service::start, &["services"]),
    Kind { is_available: sh::is_available, ..kind("sh", sh::start, &[]) },
    Kind { options: None, ..kind("status", status::start, &[]) },
    kind("swapusage", swapusage::start, &["percent"]),
    Kind { is_available: || Path::new(wtmp::WTMP).is_file(), ..kind("wtmp", wtmp::start, LOGINS) },
];

/// The names of the beacons that can be used on this host.
pub(crate) fn available() -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter(|kind| (kind.is_available)()).map(|kind| kind.name)
}

/// Reads what is configured for a beacon and starts it; or says what is wrong.
fn start(name: &str, config: &Value) -> Result<(Settings, Box<dyn Look>), String> {
    let settings = Settings::read(name, config)?;
    let module = settings.module.as_str();
    let kind = KINDS.iter().find(|kind| kind.name == module).ok_or_else(|| {
        let known: Vec<_> = available().collect();
        format!("there is no beacon '{module}': use one of {}", known.join(", "))
    })?;
    if !(kind.is_available)() {
        return Err(format!("the beacon '{module}' needs what this host does not have"));
    }
    let look = (kind.start)(&settings)?;
    Ok((settings, look))
}

/// Returns what a beacon's configuration has beside its options, such as misspelt ones, a sentence each. Beacons ignore
/// them, as in Salt.
pub(crate) fn unknown_options(name: &str, config: &Value) -> Vec<String> {
    let Ok(settings) = Settings::read(name, config) else { return Vec::new() };
    let Some(kind) = KINDS.iter().find(|kind| kind.name == settings.module) else { return Vec::new() };
    let Some(known) = kind.options else { return Vec::new() };
    let unknown = settings.own.iter().map(|(name, _)| name).filter(|name| !known.contains(&name.as_str()));
    let all = || known.iter().chain(settings::COMMON).copied().collect::<Vec<_>>().join(", ");
    unknown.map(|name| format!("unknown option '{name}': expected one of {}", all())).collect()
}

/// Whether the configuration of a beacon can be used.
pub(crate) fn check(name: &str, config: &Value) -> Result<(), String> {
    start(name, config).map(|_| ())
}

/// Reads a file of the kernel's.
fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))
}

/// A configured beacon.
struct Started {
    config: Value,
    /// Nothing if the configuration is wrong, which was said when it came.
    beacon: Option<(Settings, Box<dyn Look>)>,
    /// When it looks next, since the start of the watch.
    due: Duration,
    /// What went wrong at the last look, so that it is not said every time.
    error: Option<String>,
}

/// Looks at what is watched, when it is time.
pub(crate) struct Watch {
    context: Context,
    started: HashMap<String, Started>,
}

impl Watch {
    /// A watch that has not looked yet.
    pub fn new(minion: &Arc<Minion>) -> Self {
        let job = Arc::new(Job::local(&Jid::new(), "beacons", &Args::default()));
        let context = Context::new(Arc::clone(minion), job);
        Watch { context, started: HashMap::new() }
    }

    /// Looks at all that is due at this time since the start; `slack` is how much too early a look may come.
    /// Gives the events: `tag`, `data` and `beacon_name` of each.
    pub fn turn(&mut self, since_start: Duration, slack: Duration, now: &Zoned) -> Vec<Value> {
        let minion = Arc::clone(&self.context.minion);
        let configured = minion.beacons.all(&minion.pillar.read());
        if configured.get("enabled").is_some_and(|enabled| !enabled.is_truthy()) {
            return Vec::new();
        }
        // A beacon whose configuration has changed begins anew.
        self.started.retain(|name, started| configured.get(name.as_str()) == Some(&started.config));
        let states_run = || minion.jobs.lock().values().any(|job| job.fun.starts_with("state."));
        let mut events = Vec::new();
        for (name, config) in configured.iter().filter(|(name, _)| name.as_str() != Some("enabled")) {
            let name = name.to_string();
            let started = self.started.entry(name.clone()).or_insert_with(|| Started::new(&name, config, since_start));
            let Some((settings, look)) = &mut started.beacon else { continue };
            if !settings.enabled || since_start + slack < started.due {
                continue;
            }
            if let Some(interval) = settings.interval {
                let next = started.due + interval;
                started.due = if next > since_start { next } else { since_start + interval };
            }
            if settings.rests_during_states && states_run() {
                continue;
            }
            let tag = |rest: &str| format!("salt/beacon/{}/{name}/{rest}", minion.id);
            let event = |tag: String, data: Map| map! {"tag" => tag, "data" => data, "beacon_name" => &settings.module};
            match look.look(&Moment { context: &self.context, now }) {
                Ok(told) => {
                    started.error = None;
                    events.extend(told.into_iter().map(|mut data| {
                        let rest = data.shift_remove("tag").map(|rest| rest.to_string()).unwrap_or_default();
                        data.entry("id".into()).or_insert_with(|| minion.id.as_str().into());
                        Value::from(event(tag(&rest), data))
                    }));
                    if settings.once {
                        // Also where it is in the pillar, which this does not change.
                        settings.enabled = false;
                        minion.beacons.set_enabled(&name, false);
                    }
                }
                Err(error) if started.error.as_ref() != Some(&error) => {
                    tracing::error!(beacon = name, error, "a beacon cannot look");
                    let mut told = event(tag(""), map! {"id" => &minion.id, "_error" => &error});
                    told.insert("error".into(), error.as_str().into());
                    events.push(told.into());
                    started.error = Some(error);
                }
                Err(_) => {}
            }
        }
        events
    }
}

impl Started {
    fn new(name: &str, config: &Value, since_start: Duration) -> Self {
        let beacon = start(name, config);
        if let Err(error) = &beacon {
            tracing::error!("beacon '{name}': {error}; it is left out");
        }
        for unknown in unknown_options(name, config) {
            tracing::warn!("beacon '{name}': {unknown}");
        }
        let beacon = beacon.ok();
        let wait = beacon.as_ref().and_then(|(settings, _)| settings.interval).unwrap_or_default();
        Started { config: config.clone(), beacon, due: since_start + wait, error: None }
    }
}

/// Looks every `loop_interval` once the minion is ready, or at once with `beacons_before_connect`.
pub(crate) async fn run(
    minion: Arc<Minion>,
    render: Executor,
    bus: Bus,
    ready: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    let (config, every) = (&minion.config, Duration::from_secs(minion.config.loop_interval.max(1)));
    let Some(mut ticks) = Ticks::begin(config.beacons_before_connect, ready, every, shutdown).await else { return };
    let start = Instant::now();
    let mut watch = Watch::new(&minion);
    while ticks.next().await {
        let looked = render.run(move |_| {
            let events = watch.turn(start.elapsed(), every / 2, &Zoned::now());
            (watch, events)
        });
        let events;
        (watch, events) = match looked.await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::error!(%error, "reading beacons failed; all start again");
                (Watch::new(&minion), Vec::new())
            }
        };
        if events.is_empty() {
            continue;
        }
        if let Err(error) = bus.fire(RETURN, &map! {"beacons" => events}).await {
            tracing::error!(%error, "what beacons saw could not be told");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use brine_value::list;

    use super::*;
    use crate::testing;

    /// What is wrong with a configuration.
    pub fn wrong(name: &str, config: &Value) -> String {
        check(name, config).unwrap_err()
    }

    /// What a beacon tells at its first look at this host.
    pub fn look_at(name: &str, config: &Value) -> Result<Vec<Map>, String> {
        let (_, mut beacon) = start(name, config)?;
        beacon.look(&Moment { context: &testing::context(&[]), now: &Zoned::now() })
    }

    fn watch(configured: Map, pillar: Map) -> Watch {
        let minion = testing::minion(&[]);
        minion.beacons.replace(configured);
        *minion.pillar.write() = Arc::new(map! {"beacons" => pillar});
        Watch::new(&minion)
    }

    /// The tags of what is told after so many seconds.
    fn tags(watch: &mut Watch, seconds: f64) -> Vec<String> {
        let events = watch.turn(Duration::from_secs_f64(seconds), Duration::from_millis(500), &Zoned::now());
        let mut tags: Vec<String> = events.iter().map(|event| event.get("tag").unwrap().to_string()).collect();
        tags.sort();
        tags
    }

    /// A process of this name never runs.
    fn stopped(more: Map) -> Value {
        list![map! {"processes" => map! {"no-such" => "stopped"}}, more]
    }

    macro_rules! ps {
        ($($option:literal => $value:expr),*) => { stopped(map! {"beacon_module" => "ps" $(, $option => $value)*}) };
    }

    #[test]
    fn beacons_look_when_it_is_time() {
        let configured =
            map! {"ps" => stopped(map! {}), "slow" => ps!("interval" => 3), "off" => ps!("enabled" => false)};
        let mut watch = watch(configured, map! {});
        let (fast, slow) = ("salt/beacon/test-minion/ps/".to_owned(), "salt/beacon/test-minion/slow/".to_owned());
        for (seconds, expected) in [
            (0.0, vec![&fast]),
            (1.0, vec![&fast]),
            // A little too early counts, or it would be late by a whole loop.
            (2.99, vec![&fast, &slow]),
            (4.0, vec![&fast]),
            (6.01, vec![&fast, &slow]),
            // Late: what was missed is not made up for.
            (20.0, vec![&fast, &slow]),
            (21.0, vec![&fast]),
            (23.0, vec![&fast, &slow]),
        ] {
            assert_eq!(tags(&mut watch, seconds).iter().collect::<Vec<_>>(), expected, "{seconds}");
        }
    }

    #[test]
    fn an_event_has_what_the_beacon_tells_and_the_minions_id() {
        let mut watch = watch(map! {"mine" => ps!()}, map! {});
        let events = watch.turn(Duration::ZERO, Duration::ZERO, &Zoned::now());
        let data = map! {"no-such" => "Stopped", "id" => "test-minion"};
        let event = map! {"tag" => "salt/beacon/test-minion/mine/", "data" => data, "beacon_name" => "ps"};
        assert_eq!(events, [Value::from(event)]);
    }

    #[test]
    fn a_wrong_beacon_does_not_hold_up_the_others() {
        let configured = map! {"none" => list![], "load" => 5, "ps" => stopped(map! {})};
        let mut watch = watch(configured, map! {"of_pillar" => ps!()});
        let expected = ["salt/beacon/test-minion/of_pillar/", "salt/beacon/test-minion/ps/"];
        assert_eq!(tags(&mut watch, 0.0), expected);
        let error = wrong("none", &list![]);
        assert!(error.starts_with("there is no beacon 'none': use one of "), "{error}");
    }

    #[test]
    fn what_cannot_be_looked_at_is_told_once() {
        let mut watch = watch(map! {"log" => list![map! {"file" => "/nonexistent/log"}]}, map! {});
        let events = watch.turn(Duration::ZERO, Duration::ZERO, &Zoned::now());
        let error = "/nonexistent/log cannot be read: No such file or directory (os error 2)";
        let data = map! {"id" => "test-minion", "_error" => error};
        let event =
            map! {"tag" => "salt/beacon/test-minion/log/", "data" => data, "beacon_name" => "log", "error" => error};
        assert_eq!(events, [Value::from(event)]);
        assert!(tags(&mut watch, 1.0).is_empty());
    }

    #[test]
    fn beacons_can_be_disabled_looked_with_once_and_rest_while_states_run() {
        let mut all_off = watch(map! {"ps" => stopped(map! {}), "enabled" => false}, map! {});
        assert!(tags(&mut all_off, 0.0).is_empty());
        let mut once = watch(map! {"ps" => stopped(map! {"run_once" => true})}, map! {});
        assert_eq!((tags(&mut once, 0.0).len(), tags(&mut once, 1.0).len()), (1, 0));
        let mut of_pillar = watch(map! {}, map! {"ps" => stopped(map! {"run_once" => true})});
        assert_eq!((tags(&mut of_pillar, 0.0).len(), tags(&mut of_pillar, 1.0).len()), (1, 0));
        let mut resting = watch(map! {"ps" => stopped(map! {"disable_during_state_run" => true})}, map! {});
        let job = Arc::new(Job::local(&Jid::new(), "state.apply", &Args::default()));
        resting.context.minion.jobs.lock().insert("1".into(), job);
        assert!(tags(&mut resting, 0.0).is_empty());
        resting.context.minion.jobs.lock().clear();
        assert_eq!(tags(&mut resting, 1.0).len(), 1);
    }
}
