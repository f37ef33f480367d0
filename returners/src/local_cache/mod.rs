//! `local_cache`: the default job cache, stored in the master's store. `clean` removes old jobs.

mod clean;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use brine_bus::store::{Batch, BlockingStore, Table, Ticket};
use brine_ids::{Jid, MinionId};
use brine_job::{Call, Load, Return};
use brine_value::{Map, Value, msgpack};
use parking_lot::Mutex;

use crate::error::readable;
use crate::job_outline::{self, JobOutline};
use crate::{Backend, KEEP_JOBS_SECONDS, Options, Returner, ReturnerError};

const NAME: &str = "local_cache";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "The default of `master_job_cache`: jobs and returns in the master's store (`brine.redb`). Only the master can use \
          it, and it does not store events, which are in the journal.",
    options: &[KEEP_JOBS_SECONDS],
    open,
    check: |options| options.keep_jobs_seconds().map(|_| ()),
};

/// Loads by job id.
const LOADS: Table = Table("jobs_load");
/// Returns by `<jid>/<minion id>`. Minion ids contain no `/`.
const RETURNS: Table = Table("jobs_return");
/// Packed bodies of the events of calls, by `<jid>/<master id>`.
const CALLS: Table = Table("jobs_call");
/// Keys `<jid>/<minion id>` of minions expected to return in addition to those in the load.
const MINIONS: Table = Table("jobs_minions");
/// The time of each job's last return, in microseconds since 1970 as eight bytes, by job id.
const END_TIMES: Table = Table("jobs_endtime");
/// The data that listings show of each job, by job id: the length of the job's outline in four bytes, the outline, and
/// the load without minions. A listing therefore reads neither minions nor the results of calls.
const INDEX: Table = Table("jobs_index");
/// Contains the key [`COMPLETE`] once all older jobs are in the index.
const INDEX_STATE: Table = Table("jobs_index_state");
const COMPLETE: &[u8] = b"complete";

/// The number of uncommitted writes of a thread from which on a new write blocks until the oldest one is committed.
const MAX_IN_FLIGHT: usize = 1024;
/// The number of rows that a full scan reads at a time.
const PAGE: usize = 1000;

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let store = options.store().ok_or(ReturnerError::NoStore)?.clone();
    Ok(Box::new(LocalCache { store, in_flight: Mutex::default(), is_indexed: AtomicBool::default() }))
}

/// The job cache. Writes are queued in the store in order and share its commits: they wait for those of others, until
/// somebody waits for them. So a failed write is reported by a
/// later call of the same thread, at the latest by `flush`. Other threads neither wait for it nor receive its error:
/// they could not repeat the write. After a crash nothing is missing: the subscriber that writes here commits its cursor
/// after these writes in the same store, and receives the same events again.
struct LocalCache {
    store: BlockingStore,
    /// The uncommitted writes of each thread.
    in_flight: Mutex<HashMap<ThreadId, VecDeque<Ticket>>>,
    /// Whether all jobs are known to be in the index.
    is_indexed: AtomicBool,
}

impl LocalCache {
    fn write(&self, batch: Batch) -> Result<(), ReturnerError> {
        let oldest = {
            let ticket = self.store.write_soon(batch);
            let mut in_flight = self.in_flight.lock();
            let own = in_flight.entry(std::thread::current().id()).or_default();
            own.push_back(ticket);
            if own.len() > MAX_IN_FLIGHT { own.pop_front() } else { None }
        };
        let Some(oldest) = oldest else { return Ok(()) };
        let _hurry = self.store.hurry();
        Ok(oldest.durable_blocking()?)
    }

    /// Waits for all queued writes of this thread, which are committed at once, and returns the store for reading.
    fn settle(&self) -> Result<&BlockingStore, ReturnerError> {
        let own = self.take_in_flight();
        if !own.is_empty() {
            let _hurry = self.store.hurry();
            wait_for(own)?;
        }
        Ok(&self.store)
    }

    fn take_in_flight(&self) -> VecDeque<Ticket> {
        self.in_flight.lock().remove(&std::thread::current().id()).unwrap_or_default()
    }

    /// Adds jobs to the index that an earlier version has stored without it. The first listing does this, not the start
    /// of the master.
    fn complete_index(&self) -> Result<(), ReturnerError> {
        if self.is_indexed.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.store.get(INDEX_STATE, COMPLETE)?.is_some() {
            self.is_indexed.store(true, Ordering::Relaxed);
            return Ok(());
        }
        for table in [LOADS, CALLS] {
            self.try_each(table, |key, packed| {
                let load = if table == LOADS { load_of(key, packed) } else { load_of_call(key, packed.to_vec()) };
                let Some(load) = readable(load) else { return Ok(()) };
                let mut batch = Batch::new();
                batch.put_new(INDEX, load.jid().as_str(), index_of(&load));
                self.write(batch)
            })?;
        }
        let mut batch = Batch::new();
        batch.put(INDEX_STATE, COMPLETE, Vec::new());
        self.write(batch)?;
        self.flush()?;
        self.is_indexed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Calls `visit` with each row of a table, oldest first.
    fn each(&self, table: Table, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), ReturnerError> {
        self.try_each(table, |key, value| {
            visit(key, value);
            Ok(())
        })
    }

    /// Calls `visit` as [`LocalCache::each`] does, until it fails.
    fn try_each(
        &self,
        table: Table,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), ReturnerError>,
    ) -> Result<(), ReturnerError> {
        let store = self.settle()?;
        let mut start = Vec::new();
        loop {
            let page = store.scan(table, &start, PAGE)?;
            for (key, packed) in &page {
                visit(key, packed)?;
            }
            match page.into_iter().nth(PAGE - 1) {
                Some((key, _)) => start = [&key[..], b"\0"].concat(),
                None => return Ok(()),
            }
        }
    }
}

/// Waits for all of these writes. Returns the first error.
fn wait_for(writes: VecDeque<Ticket>) -> Result<(), ReturnerError> {
    let results: Vec<_> = writes.into_iter().map(Ticket::durable_blocking).collect();
    Ok(results.into_iter().collect::<Result<(), _>>()?)
}

/// Encodes a row of [`INDEX`].
fn index_of(load: &Load) -> Vec<u8> {
    let outline = job_outline::lines_of(load);
    let mut fields = load.map().clone();
    for name in ["minions", "Minions", "missing"] {
        fields.shift_remove(name);
    }
    let length = u32::try_from(outline.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], outline.as_bytes(), &msgpack::pack_map(&fields)].concat()
}

/// Splits a row of [`INDEX`] into its outline and the packed load.
fn split_index(row: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = row.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (outline, packed) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(outline).ok()?, packed))
}

fn key(jid: &Jid, id: &str) -> Vec<u8> {
    format!("{jid}/{id}").into_bytes()
}

/// Decodes a row of [`CALLS`].
fn call_of(key: &[u8], body: Vec<u8>) -> Result<Call, ReturnerError> {
    let parts = std::str::from_utf8(key).ok().and_then(|key| key.split_once('/'));
    let (jid, id) = parts.ok_or_else(|| damaged(key, "expected a key of job id and master id"))?;
    let invalid = |error: &dyn std::fmt::Display| damaged(key, error);
    Ok(Call::new(
        id.parse().map_err(|error| invalid(&error))?,
        jid.parse().map_err(|error| invalid(&error))?,
        body.into(),
    ))
}

fn load_of_call(key: &[u8], body: Vec<u8>) -> Result<Load, ReturnerError> {
    call_of(key, body)?.load().map_err(|error| damaged(key, error))
}

fn return_of_call(key: &[u8], body: Vec<u8>) -> Result<Return, ReturnerError> {
    call_of(key, body)?.job_return().map_err(|error| damaged(key, error))
}

/// Returns the minion id of a key.
fn id_of(key: &[u8]) -> Option<MinionId> {
    std::str::from_utf8(key).ok()?.split_once('/')?.1.parse().ok()
}

fn damaged(key: &[u8], reason: impl ToString) -> ReturnerError {
    ReturnerError::damaged(NAME, &String::from_utf8_lossy(key), reason)
}

fn load_of(key: &[u8], packed: &[u8]) -> Result<Load, ReturnerError> {
    let map = msgpack::unpack_map(packed).map_err(|error| damaged(key, error))?;
    Load::from_map(map).map_err(|error| damaged(key, error))
}

fn return_of(key: &[u8], packed: &[u8]) -> Result<Return, ReturnerError> {
    let map = msgpack::unpack_map(packed).map_err(|error| damaged(key, error))?;
    Return::from_map(map).map_err(|error| damaged(key, error))
}

impl Returner for LocalCache {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_events(&self) -> bool {
        false
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let mut batch = Batch::new();
        batch.put(LOADS, load.jid().as_str(), msgpack::pack_map(load.map()));
        batch.put(INDEX, load.jid().as_str(), index_of(load));
        self.write(batch)
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        let mut batch = Batch::new();
        for one in returns {
            batch.put_new(RETURNS, key(one.jid(), one.id().as_str()), msgpack::pack_map(one.map()));
        }
        self.record_late(RETURNS, returns.iter().map(|one| (one.jid(), one.id())), &mut batch)?;
        self.write(batch)
    }

    fn save_calls(&self, calls: &[Call]) -> Result<(), ReturnerError> {
        let mut batch = Batch::new();
        for call in calls {
            batch.put_new(CALLS, key(call.jid(), call.id().as_str()), call.body().clone());
            if let Some(load) = readable(call.load().map_err(|error| damaged(call.jid().as_str().as_bytes(), error))) {
                batch.put_new(INDEX, call.jid().as_str(), index_of(&load));
            }
        }
        self.record_late(CALLS, calls.iter().map(|call| (call.jid(), call.id())), &mut batch)?;
        self.write(batch)
    }

    fn flush(&self) -> Result<(), ReturnerError> {
        self.settle().map(drop)
    }

    fn flush_with_others(&self) -> Result<(), ReturnerError> {
        wait_for(self.take_in_flight())
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        let mut batch = Batch::new();
        for id in minions {
            batch.put(MINIONS, key(jid, id.as_str()), Vec::new());
        }
        self.write(batch)
    }

    fn save_end_times(&self, times: &BTreeMap<Jid, u64>) -> Result<(), ReturnerError> {
        let mut batch = Batch::new();
        for (jid, time) in times {
            batch.put(END_TIMES, jid.as_str(), time.to_be_bytes().to_vec());
        }
        self.write(batch)
    }

    fn get_end_time(&self, jid: &Jid) -> Result<Option<u64>, ReturnerError> {
        let row = self.settle()?.get(END_TIMES, jid.as_str().as_bytes())?;
        Ok(row.and_then(|row| Some(u64::from_be_bytes(row[..].try_into().ok()?))))
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let store = self.settle()?;
        let Some(packed) = store.get(LOADS, jid.as_str().as_bytes())? else {
            let call = store.scan_prefix(CALLS, &key(jid, ""))?.into_iter().next();
            return call.map(|(key, body)| load_of_call(&key, body)).transpose();
        };
        let more = store.scan_prefix(MINIONS, &key(jid, ""))?;
        let load = load_of(jid.as_str().as_bytes(), &packed)?;
        Ok(Some(load.with_minions(more.iter().filter_map(|(key, _)| id_of(key)))))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let store = self.settle()?;
        let pairs = store.scan_prefix(RETURNS, &key(jid, ""))?;
        let returns = pairs.iter().filter_map(|(key, packed)| readable(return_of(key, packed)));
        let calls = store.scan_prefix(CALLS, &key(jid, ""))?;
        let calls = calls.into_iter().filter_map(|(key, body)| readable(return_of_call(&key, body)));
        Ok(returns.chain(calls).map(|one| (Value::from(one.id()), one.summary().into())).collect())
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        self.find_jobs(limit, &|_| true)
    }

    fn find_jobs(
        &self,
        limit: Option<usize>,
        predicate: &dyn Fn(&JobOutline<'_>) -> bool,
    ) -> Result<Vec<Load>, ReturnerError> {
        self.complete_index()?;
        let limit = limit.unwrap_or(usize::MAX);
        let mut loads = Vec::new();
        self.settle()?.each_back(INDEX, |key, row| {
            if loads.len() >= limit {
                return false;
            }
            let parts = std::str::from_utf8(key).ok().zip(split_index(row));
            let Some((jid, (outline, packed))) = parts else {
                loads.extend(readable(Err(damaged(key, "expected an outline and a load"))));
                return true;
            };
            if predicate(&JobOutline::new(jid, outline)) {
                loads.extend(readable(load_of(key, packed)));
            }
            true
        })?;
        Ok(loads)
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let mut newest = Map::new();
        let mut look = |one: Option<Return>| {
            if let Some(one) = one.filter(|one| one.fun() == fun) {
                newest.insert(one.id().into(), one.summary().into());
            }
        };
        self.each(RETURNS, |key, packed| look(readable(return_of(key, packed))))?;
        self.each(CALLS, |key, body| look(readable(return_of_call(key, body.to_vec()))))?;
        newest.sort_by(|one, _, other, _| one.as_str().cmp(&other.as_str()));
        Ok(newest)
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let mut minions = std::collections::BTreeSet::new();
        self.each(RETURNS, |key, _| minions.extend(id_of(key)))?;
        self.each(CALLS, |key, _| minions.extend(id_of(key)))?;
        Ok(minions.into_iter().collect())
    }

    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        self.remove_old(older_than)
    }
}
