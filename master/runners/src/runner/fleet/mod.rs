//! `fleet`: views of the fleet for the console and other programs that show many minions and jobs at once. They contact
//! no minion, and what they read is bounded: counts come from the [activity](brine_master_jobs::activity) of the last
//! day. `lists.rs` has the lists of minions and jobs.

mod lists;

use std::collections::{BTreeMap, HashMap};

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_master_jobs::activity::{JobOutcome, State, System};
use brine_master_store::keys::KeyState;
use brine_value::{Map, Value, map};

use super::RunnerContext;

/// Runner functions of `fleet`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("fleet", [overview, lists::minions, lists::jobs]);

/// The time after the last return from which a job that lacks returns no longer counts as running, in microseconds.
const SILENCE: u64 = 300_000_000;
/// The number of jobs, states and ids that an overview names.
const NAMED: usize = 10;
/// The number of minutes of the event rate.
const MINUTES: u64 = 60;
/// The number of different versions and systems that are counted; the rest is summed up.
const KINDS: usize = 20;

/// Return the state of the fleet in numbers: minions, keys, jobs, failed states, dead letters, events, the store, and
/// versions and systems of minions. Jobs, states and events are those of the last day; as long as `complete` is false,
/// the master still counts them.
///
/// CLI Example:
///
///     salt-run fleet.overview
#[function]
pub fn overview(context: &RunnerContext) -> CallResult {
    let now = now();
    let accepted = context.storage().accepted().map_err(CallError::execution)?;
    let present = context.master.facts.present_addresses();
    let up: std::collections::HashSet<&str> = present.keys().map(brine_ids::MinionId::as_str).collect();
    let mut keys = Map::new();
    for (name, state) in
        [("pending", KeyState::Pending), ("rejected", KeyState::Rejected), ("denied", KeyState::Denied)]
    {
        let ids = context.storage().keys.list(state).map_err(CallError::execution)?;
        keys.insert(name.into(), ids.len().into());
        if state == KeyState::Pending {
            keys.insert("pending_ids".into(), ids.into_iter().take(NAMED).collect::<Vec<_>>().into());
        }
    }
    let (mut versions, mut systems) = (BTreeMap::new(), BTreeMap::new());
    let by_minion: HashMap<String, System> = {
        let mut systems = context.master.activity.systems.lock();
        systems.of(&context.storage().minion_data, &accepted).clone()
    };
    for system in accepted.iter().filter_map(|id| by_minion.get(id)) {
        *versions.entry(system.version.as_str()).or_insert(0u64) += 1;
        *systems.entry(system.os.as_str()).or_insert(0u64) += 1;
    }
    let state = activity(context, now)?;
    let never =
        |id: &&String| !up.contains(id.as_str()) && !by_minion.contains_key(*id) && state.tally.minion(id).is_none();
    let connected = accepted.iter().filter(|id| up.contains(id.as_str())).count();
    let never = accepted.iter().filter(never).count();
    let minions = map! {
        "accepted" => accepted.len(),
        "up" => connected,
        "down" => accepted.len() - connected - never,
        "never" => never,
    };
    Ok(map! {
        "complete" => state.is_complete,
        "time" => now,
        "minions" => minions,
        "keys" => keys,
        "jobs" => jobs_in_numbers(&state, now),
        "states" => states_in_numbers(&state),
        "dead_letters" => super::reactor::reactor(context).map_or(0, |reactor| reactor.dead_letter_count()),
        "events" => events_in_numbers(context, &state, now),
        "versions" => most(versions),
        "systems" => most(systems),
        "master" => map! {"id" => &context.master.id, "version" => brine_config::VERSION},
    }
    .into())
}

/// Returns the time in microseconds since 1970.
fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or(0)
}

fn activity(context: &RunnerContext, now: u64) -> Result<impl std::ops::Deref<Target = State> + '_, CallError> {
    let activity = &context.master.activity;
    activity.read(&context.caller.thread, &context.master.bus, now).map_err(CallError::execution)
}

/// Whether returns of a job may still arrive.
fn is_running(job: &JobOutcome, now: u64) -> bool {
    job.missing() > 0 && now.saturating_sub(job.started.max(job.last)) < SILENCE
}

/// Returns the name of a job's outcome: `failed` if a minion failed, `running`, `missing` if minions did not return, or
/// `done`.
fn outcome(job: &JobOutcome, now: u64) -> &'static str {
    match (job.failed > 0, job.missing() > 0) {
        (true, _) => "failed",
        (false, true) if is_running(job, now) => "running",
        (false, true) => "missing",
        (false, false) => "done",
    }
}

fn outcome_in_numbers(job: &JobOutcome, now: u64) -> Map {
    let mut numbers = map! {
        "outcome" => outcome(job, now),
        "running" => is_running(job, now),
        "started" => job.started,
        "asked" => job.asked,
        "done" => job.done,
        "failed" => job.failed,
    };
    if job.last > 0 {
        numbers.insert("last".into(), job.last.into());
    }
    numbers
}

fn jobs_in_numbers(state: &State, now: u64) -> Map {
    let mut counts = BTreeMap::from([("done", 0u64), ("failed", 0), ("missing", 0), ("running", 0)]);
    let mut bad = Vec::new();
    for (jid, job) in state.tally.jobs().iter().rev() {
        let outcome = outcome(job, now);
        *counts.entry(outcome).or_default() += 1;
        if matches!(outcome, "failed" | "missing") && bad.len() < NAMED {
            let mut entry = map! {"jid" => jid.as_str(), "fun" => job.function.as_str(), "tgt" => job.target.as_str()};
            entry.extend(outcome_in_numbers(job, now));
            bad.push(Value::from(entry));
        }
    }
    let mut numbers: Map = counts.into_iter().map(|(name, number)| (name.into(), number.into())).collect();
    numbers.insert("total".into(), state.tally.jobs().len().into());
    numbers.insert("newest".into(), bad.into());
    numbers
}

fn states_in_numbers(state: &State) -> Map {
    let failed = state.tally.failed_states();
    let entries = failed.iter().take(NAMED).map(|one| {
        map! {
            "id" => one.id.as_str(),
            "fun" => one.function.as_str(),
            "sls" => one.sls.as_str(),
            "comment" => one.comment.as_str(),
            "jid" => one.jid.as_str(),
            "minion" => one.minion.as_str(),
            "minions" => one.minions,
            "time" => one.last,
        }
    });
    map! {"failed" => failed.len(), "newest" => entries.map(Value::from).collect::<Vec<_>>()}
}

fn events_in_numbers(context: &RunnerContext, state: &State, now: u64) -> Map {
    context.master.bus.measure(&context.caller.thread);
    let minute = now / 60_000_000;
    let first = minute.saturating_sub(MINUTES - 1);
    let mut rate = vec![0u64; usize::try_from(MINUTES).unwrap_or_default()];
    let mut day = 0;
    for one in state.tally.minutes() {
        day += one.events;
        let place = one.minute.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        if let Some(number) = place.and_then(|place| rate.get_mut(place)) {
            *number += one.events;
        }
    }
    let mut numbers = map! {
        "last_seq" => context.master.bus.last_seq(),
        "day" => day,
        "minutes" => rate.into_iter().map(Value::from).collect::<Vec<_>>(),
    };
    // The gauges of the store have no labels.
    for (name, text) in brine_metrics::pairs() {
        let key = match name.as_str() {
            "brine_store_bytes" => "store_bytes",
            "brine_store_failed" => "store_failed",
            "brine_journal_bytes" => "journal_bytes",
            "brine_journal_events" => "journal_events",
            _ => continue,
        };
        numbers.insert(key.into(), text.parse::<i64>().map_or(Value::Nil, Value::Int));
    }
    numbers
}

/// Returns the most frequent names with their numbers, most frequent first.
fn most(counts: BTreeMap<&str, u64>) -> Map {
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let rest: u64 = counts.iter().skip(KINDS).map(|(_, number)| number).sum();
    let mut entries: Map = counts.into_iter().take(KINDS).map(|(name, number)| (name.into(), number.into())).collect();
    if rest > 0 {
        entries.insert("".into(), rest.into());
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_put_failures_first() {
        let job = |asked, done, failed, last| JobOutcome { asked, done, failed, last, ..JobOutcome::default() };
        for (job, expected) in [
            (job(3, 1, 1, 0), "failed"),
            (job(3, 3, 0, 0), "done"),
            (job(3, 2, 0, 10 * SILENCE - 1), "running"),
            (job(3, 2, 0, 8 * SILENCE), "missing"),
        ] {
            assert_eq!(outcome(&job, 10 * SILENCE), expected, "{job:?}");
        }
    }

    #[test]
    fn rare_names_are_summed_up() {
        let names: Vec<String> = (0..30).map(|n| format!("v{n:02}")).collect();
        let counts = names.iter().enumerate().map(|(n, name)| (name.as_str(), n as u64)).collect();
        let entries = most(counts);
        assert_eq!(entries.len(), KINDS + 1);
        assert_eq!(entries.get_index(0), Some((&"v29".into(), &29u64.into())));
        assert_eq!(entries.get(""), Some(&45u64.into()));
    }
}
