//! Returners: storage of jobs, job returns and events, one file per backend.
//!
//! [`open`] opens a returner by its Salt name (`--return redis`, `master_job_cache`, `event_return`) with Salt's
//! options (`redis.host`, ...). A [`Returner`] is synchronous: masters and minions call it on threads that may block.
//! This crate does not depend on the bus, the master or the minion.
//!
//! Storing is idempotent: of several returns of one minion for one job the first is kept, as in Salt's job cache.
//! Events may therefore be stored again after a crash, and a minion cannot overwrite its return.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod amqp;
mod carbon;
mod chat;
mod connection;
mod couchdb;
mod elasticsearch;
mod encoding;
mod error;
mod etcd;
mod expiry;
mod highstate;
mod http;
mod influxdb;
mod job_outline;
mod kafka;
mod local;
mod local_cache;
mod mail;
mod mattermost;
mod memcache;
mod mongo;
mod multi_returner;
mod nats;
mod options;
mod rawfile_json;
mod redis;
mod slack;
mod slack_webhook;
mod smtp;
mod splunk;
mod sql;
mod sqlite3;
mod syslog;
mod telegram;
#[cfg(test)]
mod tests;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use brine_event::Event;
use brine_ids::{Jid, MinionId};
use brine_job::{Call, Load, Return};
use brine_text::nearest::nearest;
use brine_value::{Map, Value};

pub use error::ReturnerError;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use error::sql::SqlError;
pub use job_outline::JobOutline;
pub use options::Options;

/// Storage of jobs, returns and events. Operations that a backend does not implement return
/// [`ReturnerError::Unsupported`].
pub trait Returner: Send + Sync {
    /// Returns Salt's name of the returner.
    fn name(&self) -> &'static str;

    /// Creates missing tables and indexes, and upgrades existing ones in place. Idempotent.
    fn setup(&self) -> Result<(), ReturnerError> {
        Err(self.cannot("be set up: it needs no tables"))
    }

    /// Stores the load of a job, replacing an existing one with the same job id.
    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let _ = load;
        Err(self.cannot("store jobs"))
    }

    /// Stores returns, in one operation where the backend has one.
    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        let _ = returns;
        Err(self.cannot("store returns"))
    }

    /// Stores the return of a minion.
    fn returner(&self, job_return: &Return) -> Result<(), ReturnerError> {
        self.save_returns(std::slice::from_ref(job_return))
    }

    /// Stores calls of runner and wheel functions, each a job with one return. Damaged ones are logged and skipped.
    fn save_calls(&self, calls: &[Call]) -> Result<(), ReturnerError> {
        for call in calls {
            let job = call.job().map_err(|error| ReturnerError::damaged(self.name(), call.jid().as_str(), error));
            if let Some((load, job_return)) = error::readable(job) {
                self.save_load(&load)?;
                self.returner(&job_return)?;
            }
        }
        Ok(())
    }

    /// Waits until everything stored so far is on disk. Does nothing for backends whose operations wait by themselves.
    fn flush(&self) -> Result<(), ReturnerError> {
        Ok(())
    }

    /// Waits as [`Returner::flush`] does, for a caller that nobody waits for: backends that share the commits of others
    /// wait for one of these.
    fn flush_with_others(&self) -> Result<(), ReturnerError> {
        self.flush()
    }

    /// Adds minions to those expected to return for a job: the minions of later batches and of masters below this one.
    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        let _ = (jid, minions);
        Err(self.cannot("store the minions of a job"))
    }

    /// Stores the times of the last returns of jobs, in microseconds since 1970. Backends that cannot do that ignore them.
    fn save_end_times(&self, times: &BTreeMap<Jid, u64>) -> Result<(), ReturnerError> {
        let _ = times;
        Ok(())
    }

    /// Returns the stored time of the last return of a job, in microseconds since 1970.
    fn get_end_time(&self, jid: &Jid) -> Result<Option<u64>, ReturnerError> {
        let _ = jid;
        Ok(None)
    }

    /// Returns the load of a job with all minions expected to return, or `None` for an unknown job.
    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let _ = jid;
        Err(self.cannot("find jobs"))
    }

    /// Returns the returns of a job: a mapping of minion id, sorted, to those of `return`, `retcode`, `success` and
    /// `out` that the minion sent. Empty for an unknown job.
    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let _ = jid;
        Err(self.cannot("find returns"))
    }

    /// Returns the loads of at most `limit` jobs, newest first; [`Load::summary`] is the form that listings show. Loads may
    /// lack their minions. Damaged ones are logged and skipped.
    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        let _ = limit;
        Err(self.cannot("list jobs"))
    }

    /// Returns the loads of at most `limit` jobs whose outlines match `predicate`, newest first. Loads may lack their
    /// minions. Damaged ones are logged and skipped.
    fn find_jobs(
        &self,
        limit: Option<usize>,
        predicate: &dyn Fn(&JobOutline<'_>) -> bool,
    ) -> Result<Vec<Load>, ReturnerError> {
        let mut loads = self.get_jids(None)?;
        loads.sort_by(|one, other| other.jid().cmp(one.jid()));
        loads.retain(|load| predicate(&JobOutline::new(load.jid().as_str(), &job_outline::lines_of(load))));
        loads.truncate(limit.unwrap_or(usize::MAX));
        Ok(loads)
    }

    /// Returns each minion's newest return of a function, in the form of [`Returner::get_jid`].
    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let _ = fun;
        Err(self.cannot("find returns by function"))
    }

    /// Returns the ids of all minions with a stored return, sorted.
    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        Err(self.cannot("list minions"))
    }

    /// Whether [`Returner::save_load`] is implemented.
    fn stores_jobs(&self) -> bool {
        true
    }

    /// Whether [`Returner::event_return`] is implemented.
    fn stores_events(&self) -> bool {
        true
    }

    /// Whether events are stored in one operation, all or none. Otherwise callers pass one event at a time, so that a retry
    /// repeats none.
    fn stores_events_together(&self) -> bool {
        true
    }

    /// Stores events.
    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let _ = events;
        Err(self.cannot("store events"))
    }

    /// Removes jobs, returns and events older than `older_than`. Zero keeps everything, as `keep_jobs_seconds: 0` does.
    /// `local_cache` and the SQL databases keep a job while its newest return is younger.
    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let _ = older_than;
        Err(self.cannot("remove old jobs"))
    }

    /// Returns the error of an operation that this returner does not implement.
    #[doc(hidden)]
    fn cannot(&self, operation: &'static str) -> ReturnerError {
        ReturnerError::Unsupported { returner: self.name(), operation }
    }
}

/// Returns ids of minions, sorted, for [`Returner::get_minions`]; invalid ones are left out.
fn sorted_ids<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<MinionId> {
    let mut ids: Vec<MinionId> = ids.into_iter().filter_map(|id| id.parse().ok()).collect();
    ids.sort();
    ids
}

/// A backend: its name, its documentation and its constructor.
#[derive(Debug, Clone, Copy)]
pub struct Backend {
    /// Salt's name of the returner.
    pub name: &'static str,
    /// A description of the stored data and its location.
    pub doc: &'static str,
    /// The options that it reads.
    pub options: &'static [BackendOption],
    open: fn(&Options) -> Result<Box<dyn Returner>, ReturnerError>,
    /// Validates the options without opening or creating anything.
    check: fn(&Options) -> Result<(), ReturnerError>,
}

/// The documentation of one option of a backend.
#[derive(Debug, Clone, Copy)]
pub struct BackendOption {
    /// The full name, such as `redis.host`.
    pub name: &'static str,
    /// The default as written in YAML, or `None` for a required or unset option.
    pub default: Option<&'static str>,
    /// The meaning of the value, with its unit.
    pub doc: &'static str,
}

/// The option of all backends whose jobs expire.
const KEEP_JOBS_SECONDS: BackendOption = BackendOption {
    name: "keep_jobs_seconds",
    default: Some("86400"),
    doc: "The number of seconds for which a job is kept; 0 keeps it forever.",
};

/// All backends, sorted by name.
pub static BACKENDS: &[Backend] = &[
    amqp::BACKEND,
    carbon::BACKEND,
    couchdb::BACKEND,
    elasticsearch::BACKEND,
    etcd::BACKEND,
    highstate::BACKEND,
    influxdb::BACKEND,
    kafka::BACKEND,
    local::BACKEND,
    local_cache::BACKEND,
    mattermost::BACKEND,
    memcache::BACKEND,
    mongo::BACKEND,
    multi_returner::BACKEND,
    sql::MYSQL,
    nats::BACKEND,
    sql::PGJSONB,
    sql::POSTGRES,
    sql::POSTGRES_LOCAL_CACHE,
    rawfile_json::BACKEND,
    redis::BACKEND,
    slack::BACKEND,
    slack_webhook::BACKEND,
    smtp::BACKEND,
    splunk::BACKEND,
    sqlite3::BACKEND,
    syslog::BACKEND,
    telegram::BACKEND,
    webhook::BACKEND,
];

/// Opens the returner with this name.
pub fn open(name: &str, options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    if options.is_disabled(name) {
        let hint = "; the option disable_returners names it".to_owned();
        return Err(ReturnerError::Unknown { name: name.to_owned(), hint, known: known() });
    }
    match BACKENDS.iter().find(|backend| backend.name == name) {
        Some(backend) => (backend.open)(options),
        None => Err(unknown(name)),
    }
}

/// Splits a comma-separated list of names.
pub fn split(names: &str) -> impl Iterator<Item = &str> {
    names.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Stores a return with a returner, with these options, the grains of this minion, and the options of the return itself
/// (`ret_config`, `ret_kwargs`).
pub fn store(name: &str, opts: &Map, grains: &Arc<Map>, load: &Map) -> Result<(), ReturnerError> {
    let mut load = load.clone();
    // The name of the master's request is no part of a record; the arguments of a returner may be its credentials.
    load.shift_remove("cmd");
    let alternative = load.get("ret_config").cloned();
    let kwargs = load.shift_remove("ret_kwargs").and_then(|kwargs| kwargs.as_map().cloned()).unwrap_or_default();
    let options = Options::new(opts, None).for_job(alternative.as_ref().and_then(Value::as_str), &kwargs);
    let returner = open(name, &options.with_grains(Arc::clone(grains)))?;
    let invalid = |error: brine_job::InvalidJob| ReturnerError::damaged(returner.name(), "the return", error);
    returner.returner(&Return::from_map(load).map_err(invalid)?)
}

/// Stores a return with each of these returners, as by [`store`]. Logs and counts a failure, unless the server was not
/// reached. Returns the names of the returners whose servers were not reached.
pub fn try_store_in<'a>(
    names: impl IntoIterator<Item = &'a str>,
    opts: &Map,
    grains: &Arc<Map>,
    load: &Map,
) -> Vec<&'a str> {
    let mut unreachable = Vec::new();
    for name in names {
        match store(name, opts, grains, load) {
            Ok(()) => {}
            Err(error) if error.is_outage() => {
                tracing::warn!(returner = name, %error, "a returner is unreachable");
                unreachable.push(name);
            }
            Err(error) => {
                brine_job::metrics::RETURNS_LOST.add(1);
                let jid = load.get("jid").map(ToString::to_string).unwrap_or_default();
                tracing::error!(returner = name, jid, %error, "storing a return failed");
            }
        }
    }
    unreachable
}

/// Stores a return with each of these returners, separated by commas, as by [`store`]. Logs and counts a failure.
pub fn store_in(names: &str, opts: &Map, grains: &Arc<Map>, load: &Map) {
    for name in try_store_in(split(names), opts, grains, load) {
        brine_job::metrics::RETURNS_LOST.add(1);
        let jid = load.get("jid").map(ToString::to_string).unwrap_or_default();
        tracing::error!(returner = name, jid, "storing a return failed: the returner is unreachable");
    }
}

/// Validates the name of a returner and its options without opening or creating anything.
///
/// # Errors
/// The errors of [`open`] that follow from the name and the options alone.
pub fn check(name: &str, options: &Options) -> Result<(), ReturnerError> {
    match BACKENDS.iter().find(|backend| backend.name == name) {
        Some(backend) => (backend.check)(options),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> ReturnerError {
    let hint = if name == "hipchat" {
        "; the service HipChat is gone".to_owned()
    } else {
        let names = BACKENDS.iter().map(|backend| backend.name);
        nearest(name, names).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
    };
    ReturnerError::Unknown { name: name.to_owned(), hint, known: known() }
}

/// Returns the names of all returners, separated by commas.
fn known() -> String {
    BACKENDS.iter().map(|backend| backend.name).collect::<Vec<_>>().join(", ")
}
