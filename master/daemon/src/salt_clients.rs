//! Files for Salt's own programs on the master's host: the file that they expect before they connect and, with
//! `salt_client_files`, the jobs and grains that they read themselves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_bus::{Filter, Start};
use brine_event::{Event, FROM};
use brine_ids::{Jid, MinionId};
use brine_master_calls::Services;
use brine_master_calls::job_files::JobFiles;
use brine_master_store::storage::Storage;
use brine_system::files::{self, FileError};
use brine_value::{FromValue, Value, map, msgpack};
use tokio_util::sync::CancellationToken;

/// The socket of Salt's workers. Without it, Salt's `salt-api` assumes that the master is not running. It never
/// connects to the socket.
const WORKERS: &str = "workers.ipc";

/// Creates an empty file with the name of the socket of Salt's workers. Nothing listens on it. A socket that Salt's
/// master left behind is replaced.
pub(crate) fn create_worker_socket_marker(sock_dir: &Path) {
    if let Err(error) = files::write_soon(sock_dir.join(WORKERS), b"", 0o600) {
        tracing::warn!(%error, "creating the marker of Salt's worker socket failed: Salt's salt-api assumes that the master is stopped");
    }
}

/// Writes all jobs, returns and grains until `shutdown` (`salt_client_files`).
pub(crate) async fn write_files(services: Arc<Services>, shutdown: CancellationToken) {
    let prefixes = ["salt/job/", "minion/refresh/", "salt/key"].map(Into::into).into();
    let mut events = match services.bus.subscribe(Filter::Prefixes(prefixes), Start::Now) {
        Ok(events) => events,
        Err(error) => {
            return tracing::error!(%error, "subscribing to the event bus for the files of Salt's programs failed");
        }
    };
    let writer = Writer { jobs: Arc::clone(&services.job_files), cachedir: services.config.cachedir.clone() };
    let all = writer.clone();
    let written = services.storage.run(move |storage| {
        for id in storage.accepted().unwrap_or_default() {
            id.parse().map_or(Ok(()), |id| all.write_grains(storage, &id)).unwrap_or_else(|error| log(&error));
        }
    });
    _ = written.await;
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = shutdown.cancelled() => return,
        };
        let Some(event) = event else { return };
        // Events that a minion publishes with such a tag are not jobs.
        if event.data().contains_key(FROM) && !event.tag().contains("/ret/") {
            continue;
        }
        let writer = writer.clone();
        let written =
            services.storage.run(move |storage| writer.write(storage, &event).unwrap_or_else(|error| log(&error)));
        _ = written.await;
    }
}

fn log(error: &FileError) {
    tracing::error!(%error, "writing a file for Salt's programs failed");
}

#[derive(Clone)]
struct Writer {
    jobs: Arc<JobFiles>,
    cachedir: PathBuf,
}

impl Writer {
    fn write(&self, storage: &Storage, event: &Event) -> Result<(), FileError> {
        let data = event.data();
        let parts: Vec<&str> = event.tag().split('/').collect();
        match parts[..] {
            ["salt", "job", jid, "new"] => {
                let Some(jid) = jid.parse::<Jid>().ok().filter(|jid| !self.jobs.has(jid)) else { return Ok(()) };
                let minions = data.get("minions").and_then(Vec::<String>::from_value).unwrap_or_default();
                let load = data.iter().filter(|(name, _)| !name.as_str().is_some_and(|name| name.starts_with('_')));
                let load = load.map(|(name, value)| (name.clone(), value.clone())).collect();
                self.jobs.write_job(&jid, &load, &minions)
            }
            ["salt", "job", jid, "ret", id] => match (jid.parse(), id.parse()) {
                (Ok(jid), Ok(id)) if self.jobs.has(&jid) && !self.jobs.has_return(&jid, &id) => {
                    self.jobs.write_return(&jid, &id, &data)
                }
                _ => Ok(()),
            },
            ["minion", "refresh", id] => id.parse().map_or(Ok(()), |id| self.write_grains(storage, &id)),
            ["salt", "key"] if data.get("act").and_then(Value::as_str) == Some("delete") => {
                let id = data.get("id").and_then(Value::as_str).and_then(|id| id.parse::<MinionId>().ok());
                for (_, path) in id.iter().flat_map(|id| self.grain_files(id)) {
                    _ = std::fs::remove_file(path);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes the grains of a minion. Pillars are not written, to keep secrets off the disk.
    fn write_grains(&self, storage: &Storage, id: &MinionId) -> Result<(), FileError> {
        let Some(grains) = storage.minion_data.grains(id.as_str()) else { return Ok(()) };
        for (is_grains_only, path) in self.grain_files(id) {
            let content = if is_grains_only {
                grains.clone()
            } else {
                map! {"grains" => grains.clone(), "pillar" => Value::map()}
            };
            if let Some(directory) = path.parent() {
                files::create_private_dir(directory)?;
            }
            files::write_soon(path, &msgpack::pack_map(&content), 0o600)?;
        }
        Ok(())
    }

    /// Returns the paths of the files with a minion's grains, for Salt 3008 and for earlier releases. The flag is
    /// whether the file contains only the grains.
    fn grain_files(&self, id: &MinionId) -> [(bool, PathBuf); 2] {
        let below = |directory: &str| self.cachedir.join(directory);
        [(true, below("grains").join(format!("{id}.p"))), (false, below("minions").join(id.as_str()).join("data.p"))]
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn an_empty_file_marks_the_socket_of_salts_workers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(WORKERS);
        let _left_behind = UnixListener::bind(&path).unwrap();
        create_worker_socket_marker(directory.path());
        assert!(path.is_file());
        // A link is replaced and not followed.
        let other = directory.path().join("other");
        std::fs::write(&other, "text").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        create_worker_socket_marker(directory.path());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "text");
    }
}
