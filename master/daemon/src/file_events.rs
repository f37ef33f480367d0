//! Publishes changes below `file_roots` as `salt/fileserver/roots/update`, so that a reactor can apply states when their
//! files change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_config::MasterConfig;
use brine_master_store::events::Events;
use brine_runtime::executors::Executor;
use brine_system::files;
use brine_value::{Map, Value, map, msgpack};
use tokio_util::sync::CancellationToken;

/// The file in `cachedir` with the last state, so that changes while the master is down are published as well.
const SEEN: &str = "roots_mtimes.msgpack";

/// The modification time of each path, in nanoseconds since 1970.
type Times = BTreeMap<String, i64>;

/// Polls every `roots_update_interval` until `shutdown`, and publishes an event each time, as in Salt.
pub(crate) async fn publish(config: Arc<MasterConfig>, events: Events, disk: Executor, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(config.roots_update_interval.pause());
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let polled = Arc::clone(&config);
        if let Ok(body) = disk.run(move |_| poll(&polled)).await {
            events.fire("salt/fileserver/roots/update", &body).await;
        }
    }
}

/// Returns the body of an event, and stores the state for the next one.
fn poll(config: &MasterConfig) -> Map {
    let path = config.cachedir.join(SEEN);
    let before = seen(&path);
    let mut now = Times::new();
    for root in config.file_roots.values().flatten() {
        walk(root, &mut now);
    }
    if before != now {
        let packed: Map = now.iter().map(|(path, time)| (path.into(), Value::from(*time))).collect();
        if let Err(error) = files::write_atomic(&path, &msgpack::pack_map(&packed), 0o600) {
            tracing::warn!(%error, "storing the state of the file server failed: all files count as new after the next start");
        }
    }
    difference(&before, &now)
}

fn difference(before: &Times, now: &Times) -> Map {
    let missing_in = |other: &Times, of: &Times| -> Value {
        of.keys().filter(|path| !other.contains_key(*path)).map(String::as_str).collect()
    };
    let changed = |(path, time): &(&String, &i64)| now.get(*path).is_some_and(|now| now != *time);
    map! {
        "backend" => "roots",
        "changed" => before != now,
        "files" => map! {
            "changed" => before.iter().filter(changed).map(|(path, _)| path.as_str()).collect::<Value>(),
            "added" => missing_in(before, now),
            "removed" => missing_in(now, before),
        },
    }
}

fn seen(path: &Path) -> Times {
    let Ok(packed) = std::fs::read(path) else { return Times::new() };
    let map = msgpack::unpack_map(&packed).unwrap_or_default();
    map.into_iter().filter_map(|(path, time)| Some((path.to_string(), time.as_i64()?))).collect()
}

/// Adds the files below a directory. Symbolic links to directories are not followed, since they could form a loop.
fn walk(directory: &Path, times: &mut Times) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let (path, kind): (PathBuf, _) = (entry.path(), entry.file_type());
        if kind.is_ok_and(|kind| kind.is_dir()) {
            walk(&path, times);
        } else if let Ok(changed) = std::fs::metadata(&path).and_then(|stat| stat.modified()) {
            let since = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            times.insert(path.to_string_lossy().into_owned(), i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    fn times(entries: &[(&str, i64)]) -> Times {
        entries.iter().map(|(path, time)| ((*path).to_owned(), *time)).collect()
    }

    #[test]
    fn files_are_added_changed_and_removed() {
        let (before, now) = (times(&[("a", 1), ("b", 1), ("c", 1)]), times(&[("a", 1), ("b", 2), ("d", 1)]));
        let body = difference(&before, &now);
        assert_eq!(body.get("changed"), Some(&true.into()));
        let files = map! {"changed" => list!["b"], "added" => list!["d"], "removed" => list!["c"]};
        assert_eq!(body.get("files"), Some(&files.into()));
        assert_eq!(difference(&now, &now).get("changed"), Some(&false.into()));
    }

    #[test]
    fn files_in_subdirectories_are_found() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        for name in ["one", "sub/two"] {
            std::fs::write(directory.path().join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(directory.path(), directory.path().join("round")).unwrap();
        let mut times = Times::new();
        walk(directory.path(), &mut times);
        let names: Vec<_> = times.keys().filter_map(|path| path.rsplit('/').next()).collect();
        assert_eq!(names, ["one", "round", "two"]);
    }
}
