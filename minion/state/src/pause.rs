//! Pauses and ends runs between two states: `state.pause`, `state.resume` and `state.soft_kill`.
//!
//! As in Salt, the requests are files below `state_pause/` in the cache, so that they work from any process and also
//! before the run begins.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use brine_context::{Context, Minion};
use brine_system::files::{self, FileError};
use brine_value::{Map, Value, map, msgpack};

/// The key of requests that apply to any state.
const ALL: &str = "__all__";
/// The interval at which a paused run polls its file.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

fn path(minion: &Minion, jid: &str) -> PathBuf {
    // A job id has no separators; an invalid one matches no run.
    let safe: String = jid.chars().filter(char::is_ascii_alphanumeric).collect();
    minion.config.cachedir.join("state_pause").join(safe)
}

/// Returns the requests for a run, by state.
pub fn marks(minion: &Minion, jid: &str) -> Map {
    let bytes = std::fs::read(path(minion, jid)).unwrap_or_default();
    msgpack::unpack_map(&bytes).unwrap_or_default()
}

fn write(minion: &Minion, jid: &str, marks: &Map) -> Result<(), FileError> {
    let path = path(minion, jid);
    files::create_private_dir(path.parent().unwrap_or(&path))?;
    files::write_atomic(&path, &msgpack::pack_map(marks), 0o600)
}

fn mark(minion: &Minion, jid: &str, state: Option<&str>, mark: Map) -> Result<(), FileError> {
    let mut marks = marks(minion, jid);
    let of_state = marks.entry(state.unwrap_or(ALL).into()).or_insert_with(Value::map);
    if let Value::Map(of_state) = of_state {
        of_state.extend(mark);
    }
    write(minion, jid, &marks)
}

/// Pauses a run before a state, or before the next one, for this long or until it is resumed.
pub fn pause(minion: &Minion, jid: &str, state: Option<&str>, seconds: Option<f64>) -> Result<(), FileError> {
    mark(minion, jid, state, seconds.map_or_else(Map::new, |seconds| map! {"duration" => seconds}))
}

/// Ends a run before a state, or before the next one. Running states are completed.
pub fn soft_kill(minion: &Minion, jid: &str, state: Option<&str>) -> Result<(), FileError> {
    mark(minion, jid, state, map! {"kill" => true})
}

/// Resumes a run. Returns whether it was paused.
pub fn resume(minion: &Minion, jid: &str, state: Option<&str>) -> Result<bool, FileError> {
    let mut marks = marks(minion, jid);
    if marks.shift_remove(state.unwrap_or(ALL)).is_none() {
        return Ok(false);
    }
    if marks.is_empty() {
        forget(minion, jid);
        return Ok(true);
    }
    write(minion, jid, &marks)?;
    Ok(true)
}

/// Removes the requests for a run that has ended.
pub fn forget(minion: &Minion, jid: &str) {
    // Most runs have none.
    _ = std::fs::remove_file(path(minion, jid));
}

/// Removes the requests for all other runs.
pub fn forget_all_but(minion: &Minion, running: &[String]) {
    let files = std::fs::read_dir(minion.config.cachedir.join("state_pause")).into_iter().flatten().flatten();
    for file in files {
        if !running.iter().any(|jid| file.file_name().to_str() == Some(jid)) {
            _ = std::fs::remove_file(file.path());
        }
    }
}

/// Blocks while a run is paused before a state. Returns whether it continues.
pub(super) fn wait_while_paused(context: &Context, state: &str) -> bool {
    let (minion, jid, started) = (&context.minion, &context.job.jid, Instant::now());
    loop {
        if context.job.cancel.is_cancelled() {
            return false;
        }
        if !path(minion, jid).exists() {
            return true;
        }
        let marks = marks(minion, jid);
        let Some(mark) = marks.get(state).or_else(|| marks.get(ALL)) else { return true };
        let duration = mark.get("duration").and_then(Value::as_f64);
        if duration.is_some_and(|seconds| started.elapsed().as_secs_f64() > seconds) {
            return true;
        }
        if mark.get("kill").is_some() {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
