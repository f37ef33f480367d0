//! Writes jobs as files for Salt's Python clients (`LocalClient`), which treat a job without a file as nonexistent, and
//! read returns from files. The layout is that of Salt's `local_cache`.
//!
//! Without `salt_client_files` only jobs that such a client has published are written. All jobs are in the job cache as
//! well.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brine_digest::{Digest, hex};
use brine_ids::{Jid, MinionId};
use brine_system::files::{self, FileError};
use brine_value::{Map, Value, msgpack};
use parking_lot::Mutex;

/// The maximum number of jobs whose returns are written; returns of older jobs are not.
const MAX_JOBS: usize = 10_000;
/// The fields of a return that are written.
const RETURN_FIELDS: [&str; 3] = ["return", "retcode", "success"];

/// The job files of Salt's Python clients.
pub struct JobFiles {
    directory: PathBuf,
    digest: Digest,
    jobs: Mutex<(HashSet<Jid>, VecDeque<Jid>)>,
}

impl JobFiles {
    /// Creates the job files below `cachedir`, with the configured hash type (`hash_type`).
    pub fn new(cachedir: &Path, digest: Digest) -> Self {
        JobFiles { directory: cachedir.join("jobs"), digest, jobs: Mutex::default() }
    }

    /// Writes a job and its minions.
    pub fn write_job(&self, jid: &Jid, load: &Map, minions: &[String]) -> Result<(), FileError> {
        let directory = self.of(jid);
        files::create_private_dir(&directory)?;
        let minions: Value = minions.iter().map(String::as_str).collect();
        for (name, content) in [
            ("jid", jid.as_str().as_bytes().to_vec()),
            (".minions.p", msgpack::pack(&minions)),
            (".load.p", msgpack::pack_map(load)),
        ] {
            files::write_soon(directory.join(name), &content, 0o600)?;
        }
        let mut jobs = self.jobs.lock();
        let (jids, order) = &mut *jobs;
        if jids.insert(jid.clone()) {
            order.push_back(jid.clone());
        }
        if order.len() > MAX_JOBS
            && let Some(oldest) = order.pop_front()
        {
            jids.remove(&oldest);
        }
        Ok(())
    }

    /// Whether returns of this job are written.
    pub fn has(&self, jid: &Jid) -> bool {
        self.jobs.lock().0.contains(jid)
    }

    /// Whether the return of a minion has been written.
    pub fn has_return(&self, jid: &Jid, id: &MinionId) -> bool {
        self.of(jid).join(id.as_str()).join("return.p").exists()
    }

    /// Writes a return.
    pub fn write_return(&self, jid: &Jid, id: &MinionId, load: &Map) -> Result<(), FileError> {
        let directory = self.of(jid).join(id.as_str());
        files::create_private_dir(&directory)?;
        let fields = RETURN_FIELDS.iter().filter_map(|name| Some(((*name).into(), load.get(*name)?.clone())));
        files::write_soon(directory.join("return.p"), &msgpack::pack_map(&fields.collect()), 0o600)?;
        if let Some(out) = load.get("out") {
            files::write_soon(directory.join("out.p"), &msgpack::pack(out), 0o600)?;
        }
        Ok(())
    }

    /// Removes jobs older than `lifetime`.
    pub fn clean(&self, lifetime: Duration) {
        let Ok(groups) = std::fs::read_dir(&self.directory) else { return };
        let now = SystemTime::now();
        for group in groups.flatten() {
            for job in std::fs::read_dir(group.path()).into_iter().flatten().flatten() {
                let written = job.path().join("jid").metadata().and_then(|status| status.modified());
                let is_old = written.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > lifetime));
                if is_old && let Err(error) = std::fs::remove_dir_all(job.path()) {
                    tracing::error!(%error, path = %job.path().display(), "removing the files of an old job failed");
                }
            }
            // Fails if the directory still contains jobs.
            _ = std::fs::remove_dir(group.path());
        }
    }

    fn of(&self, jid: &Jid) -> PathBuf {
        let hash = hex(self.digest.of(jid.as_str()));
        let (group, rest) = hash.split_at(2);
        self.directory.join(group).join(rest)
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn jobs_have_salts_layout_and_are_cleaned() {
        let directory = tempfile::tempdir().unwrap();
        let files = JobFiles::new(directory.path(), Digest::Sha256);
        let (jid, other): (Jid, Jid) =
            ("20261123184000000001".parse().unwrap(), "20261123184000000002".parse().unwrap());
        let load = map! {"fun" => "test.ping", "tgt" => "*"};
        files.write_job(&jid, &load, &["web1".to_owned()]).unwrap();
        assert!(files.has(&jid) && !files.has(&other));
        let id: MinionId = "web1".parse().unwrap();
        files.write_return(&jid, &id, &map! {"return" => true, "retcode" => 0, "jid" => &jid, "out" => "txt"}).unwrap();
        // The SHA-256 digest of the jid.
        let job = files.of(&jid);
        let hash = hex(Digest::Sha256.of(jid.as_str()));
        assert_eq!(job, directory.path().join("jobs").join(&hash[..2]).join(&hash[2..]));
        let read = |name: &str| msgpack::unpack(&std::fs::read(job.join(name)).unwrap()).unwrap();
        assert_eq!(read(".load.p"), load.into());
        assert_eq!(read(".minions.p"), list!["web1"]);
        assert_eq!(read("web1/return.p"), map! {"return" => true, "retcode" => 0}.into());
        assert_eq!(read("web1/out.p"), "txt".into());

        files.clean(Duration::from_secs(3600));
        assert!(job.exists());
        files.clean(Duration::ZERO);
        assert!(!job.exists() && !job.parent().unwrap().exists());
    }
}
