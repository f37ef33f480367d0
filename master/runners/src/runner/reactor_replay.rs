//! `reactor.replay`: recorded events against another configuration of the reactor.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_bus::TimeOrSeq;
use brine_event::Event;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_reactor::{Configured, Replay, ReplayLimits};
use brine_value::{FromValue, Map, Value};

use super::RunnerContext;
use super::event_bus::{each_event, position};
use super::reactor::reactor;

/// Further runner functions of `reactor`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("reactor", [replay]);

/// The time between two progress events.
const PROGRESS: Duration = Duration::from_secs(5);
/// The maximum number of seconds of a replay.
const TIMEOUT: u64 = 3_600;
/// The maximum number of examples.
const EXAMPLES: usize = 100;
/// The maximum size of a file with a configuration or events.
const SIZE: u64 = 64 << 20;

/// Replay the events of the journal against another configuration of the reactor, in their own time and without
/// dispatching anything, and return which reactions would be added, lost or changed, counted by entry, with examples.
/// Rules over time begin without state. Limits of entries are ignored. Templates may call functions that only read data
/// of the master; others are refused and named.
///
/// Files of the master may be named by callers with the master's own key alone, as `salt-run` on the master has it;
/// others use `salt://` paths and give configurations and events as data.
///
/// CLI Example:
///
///     salt-run reactor.replay since=1d config=/srv/new/reactor.yml
///     salt-run reactor.replay since=1d tree=/srv/new
///     salt-run reactor.replay config=salt://new/a.yml against=salt://new/b.yml since=1000
///     salt-run reactor.replay config=/srv/new/reactor.yml event=/tmp/event.json
#[function]
pub fn replay(
    context: &RunnerContext,
    /// The first event: a time span ago such as `1d`, a sequence number, or a time.
    #[default("1d".into())]
    since: Value,
    /// The new configuration: a YAML file with `reactor` and `reactor_rules`, or with the entries alone; or these as
    /// data. By default that of the running reactor.
    config: Option<Value>,
    /// A directory that the new configuration's files are searched in first: `salt://` paths as in the file server's
    /// roots, other paths below it.
    tree: Option<String>,
    /// The configuration to compare with; by default that of the running reactor.
    against: Option<Value>,
    /// An event to replay in place of the journal: a JSON or YAML file with `tag` and `data` or a list of them, or this
    /// as data.
    event: Option<Value>,
    /// The event at which the replay ends: as `since`; by default the newest one.
    until: Option<Value>,
    /// The number of examples for each entry and kind of difference.
    #[default(3)]
    examples: u32,
    /// The number of seconds after which the replay ends, with a report of what it has seen.
    #[default(300)]
    timeout: u64,
) -> CallResult {
    if config.is_none() && tree.is_none() && against.is_none() {
        return Err(CallError::execution("name a new configuration by config=, or a directory of files by tree="));
    }
    if let Some(tree) = tree.as_ref().filter(|_| !context.caller.has_master_key) {
        return Err(refused("tree", tree));
    }
    let mut after = configured(context, "config", config)?;
    after.tree = tree.map(PathBuf::from);
    let before = configured(context, "against", against)?;
    let limits = ReplayLimits {
        time: Duration::from_secs(timeout.clamp(1, TIMEOUT)),
        examples: (examples as usize).min(EXAMPLES),
        any_file: context.caller.has_master_key,
    };
    let reactor = reactor(context)?;
    let mut replay = context.wait(reactor.replay(&before, &after, limits)).map_err(CallError::execution)?;
    match event {
        Some(event) => {
            for event in events_of(context, event)? {
                if !replay.event(&event) {
                    break;
                }
            }
        }
        None => of_journal(context, &mut replay, &since, until.as_ref())?,
    }
    Ok(replay.finish())
}

/// Replays the events of the journal.
fn of_journal(
    context: &RunnerContext,
    replay: &mut Replay<'_>,
    since: &Value,
    until: Option<&Value>,
) -> Result<(), CallError> {
    let last = match until {
        None => TimeOrSeq::Seq(context.master.bus.last_seq()),
        Some(until) => position_or_span(until)?,
    };
    let mut reported = Instant::now();
    let mut newest = 0;
    each_event(context, position_or_span(since)?, last, |event| {
        if !replay.event(event) {
            return Ok(false);
        }
        newest = event.time().unwrap_or(newest);
        if reported.elapsed() >= PROGRESS {
            reported = Instant::now();
            context.progress(&format!("{} events replayed", replay.events()));
        }
        Ok(true)
    })?;
    // Timers that were due when the last event was published have fired before it.
    replay.advance(newest);
    Ok(())
}

/// Reads a configuration: the name of a file, or data.
fn configured(context: &RunnerContext, argument: &str, source: Option<Value>) -> Result<Configured, CallError> {
    let data = match source {
        None | Some(Value::Nil) => return Ok(Configured::default()),
        Some(Value::Str(path)) => read(context, argument, &path)?,
        Some(data) => data,
    };
    let Value::Map(options) = &data else { return Ok(Configured { entries: Some(data), ..Configured::default() }) };
    let names = ["reactor", "reactor_rules"];
    if !names.iter().any(|name| options.contains_key(*name)) {
        return Ok(Configured { entries: Some(data), ..Configured::default() });
    }
    let rules = options.get("reactor_rules").filter(|rules| !rules.is_nil());
    let wrong = || CallError::execution(format!("reactor_rules of {argument} is invalid: expected a list of paths"));
    let rules = rules.map(|rules| Vec::<String>::from_value(rules).ok_or_else(wrong)).transpose()?;
    // A file with one of the options alone leaves out the other one.
    Ok(Configured {
        entries: Some(options.get("reactor").cloned().unwrap_or_default()),
        rules: Some(rules.unwrap_or_default()),
        tree: None,
    })
}

/// Reads events: a file, or data.
fn events_of(context: &RunnerContext, source: Value) -> Result<Vec<Event>, CallError> {
    let data = match source {
        Value::Str(path) => read(context, "event", &path)?,
        data => data,
    };
    let listed = match &data {
        Value::List(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let one = |event: &Value| {
        let wrong =
            || CallError::execution("event is invalid: expected a mapping with tag and data, or a list of them");
        let tag = event.get("tag").and_then(Value::as_str).ok_or_else(wrong)?;
        let data = match event.get("data") {
            None | Some(Value::Nil) => Map::new(),
            Some(data) => data.as_map().cloned().ok_or_else(wrong)?,
        };
        // Events of a journal, which may be an old one.
        Event::from_trusted_map(tag, &data).map_err(CallError::execution)
    };
    listed.iter().map(one).collect()
}

/// Reads a YAML or JSON file: below `salt://`, or for callers with the master's key any.
fn read(context: &RunnerContext, argument: &str, path: &str) -> Result<Value, CallError> {
    let failed = |reason: String| CallError::execution(format!("reading {argument}={path} failed: {reason}"));
    let file = match path.strip_prefix("salt://") {
        Some(rest) => {
            let (below, saltenv) = rest.split_once("?saltenv=").unwrap_or((rest, "base"));
            let file = context.storage().files.find(below, saltenv);
            file.ok_or_else(|| failed("the master's file server has no such file".to_owned()))?.path
        }
        None if !context.caller.has_master_key => return Err(refused(argument, path)),
        None if !Path::new(path).is_absolute() => {
            return Err(failed("expected an absolute path: the master reads the file".to_owned()));
        }
        None => PathBuf::from(path),
    };
    let status = std::fs::metadata(&file).map_err(|error| failed(error.to_string()))?;
    if !status.is_file() || status.len() > SIZE {
        return Err(failed(format!("expected a file of at most {SIZE} bytes")));
    }
    let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    brine_yaml::load(&text).map_err(|error| failed(format!("line {}: {}", error.line, error.message)))
}

fn refused(argument: &str, path: &str) -> CallError {
    CallError::execution(format!(
        "{argument}={path} is refused: only callers with the master's own key, such as root's salt-run, may name files of \
         the master; use a salt:// path"
    ))
}

/// Reads a position: a span of time ago, or what `event_bus.since` accepts.
fn position_or_span(value: &Value) -> Result<TimeOrSeq, CallError> {
    let text = value.to_string();
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 86_400,
        Some('w') => 7 * 86_400,
        _ => return position(value),
    };
    match text[..text.len() - 1].parse::<u64>() {
        Ok(number) => {
            let now = u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or(0);
            Ok(TimeOrSeq::Time(now.saturating_sub(number.saturating_mul(unit).saturating_mul(1_000_000))))
        }
        Err(_) => position(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_spans_numbers_and_times() {
        let now = u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap();
        for (text, seconds) in [("10s", 10), ("5m", 300), ("2h", 7_200), ("1d", 86_400), ("1w", 604_800)] {
            let Ok(TimeOrSeq::Time(time)) = position_or_span(&text.into()) else { panic!("{text}") };
            assert!((now - time).abs_diff(seconds * 1_000_000) < 60_000_000, "{text}");
        }
        assert_eq!(position_or_span(&7.into()), Ok(TimeOrSeq::Seq(7)));
        assert!(position_or_span(&"d".into()).is_err());
    }
}
