//! `local_cache`: the default job cache, in the master's store.

use std::time::Duration;

use brine_core::job::{Load, Return};
use brine_core::store::{Batch, Store, Table};
use brine_core::value::msgpack;
use brine_core::{Jid, Map, Value};

use crate::{Options, Returner, ReturnerError, oldest_jid};

/// Salt's name of it.
pub(crate) const NAME: &str = "local_cache";

/// By jid: what was asked.
const LOADS: Table = Table("job_loads");
/// By jid and minion, a zero between: what was returned.
const RETURNS: Table = Table("job_returns");

pub(crate) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let store = options.store().ok_or_else(|| ReturnerError::Option {
        option: NAME.into(),
        reason: "it is in the master's store: a minion cannot return to it".into(),
    })?;
    Ok(Box::new(LocalCache { store: store.clone() }))
}

struct LocalCache {
    store: Store,
}

fn key(jid: &Jid, id: &str) -> Vec<u8> {
    [jid.as_str().as_bytes(), b"\0", id.as_bytes()].concat()
}

fn returns_of(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> impl Iterator<Item = Return> {
    pairs.into_iter().filter_map(|(_, packed)| Return::from_map(msgpack::unpack_map(&packed).ok()?).ok())
}

impl Returner for LocalCache {
    fn name(&self) -> &'static str {
        NAME
    }

    // The journal has the event already and the cursor behind it moves when this returns, so neither
    // write is waited for: after a crash the event comes again.

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let mut batch = Batch::new();
        batch.put(LOADS, load.jid().as_str().as_bytes(), msgpack::pack_map(load.map()));
        drop(self.store.write(batch));
        Ok(())
    }

    fn returner(&self, job_return: &Return) -> Result<(), ReturnerError> {
        let mut batch = Batch::new();
        batch.put(RETURNS, key(job_return.jid(), job_return.id().as_str()), msgpack::pack_map(job_return.map()));
        drop(self.store.write(batch));
        Ok(())
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        self.flush()?;
        let packed = self.store.get(LOADS, jid.as_str().as_bytes())?;
        Ok(packed.and_then(|packed| Load::from_map(msgpack::unpack_map(&packed).ok()?).ok()))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        self.flush()?;
        let found = returns_of(self.store.scan_prefix(RETURNS, &key(jid, ""))?);
        Ok(found.map(|one| (Value::from(one.id()), one.summary().into())).collect())
    }

    fn get_jids(&self) -> Result<Vec<Load>, ReturnerError> {
        self.flush()?;
        let pairs = self.store.scan(LOADS, b"", usize::MAX)?;
        Ok(pairs
            .into_iter()
            .filter_map(|(_, packed)| Load::from_map(msgpack::unpack_map(&packed).ok()?).ok())
            .collect())
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        self.flush()?;
        // By rising jid: later ones replace earlier ones.
        let all = returns_of(self.store.scan(RETURNS, b"", usize::MAX)?);
        Ok(all.filter(|one| one.fun() == fun).map(|one| (Value::from(one.id()), one.value().clone())).collect())
    }

    fn get_minions(&self) -> Result<Vec<String>, ReturnerError> {
        self.flush()?;
        let all = returns_of(self.store.scan(RETURNS, b"", usize::MAX)?);
        let mut minions: Vec<_> = all.map(|one| one.id().to_string()).collect();
        minions.sort();
        minions.dedup();
        Ok(minions)
    }

    fn clean_old_jobs(&self, lifetime: Duration) -> Result<(), ReturnerError> {
        let oldest = oldest_jid(lifetime);
        let mut batch = Batch::new();
        batch.delete_below(LOADS, oldest.as_bytes()).delete_below(RETURNS, oldest.as_bytes());
        self.store.write(batch).durable_blocking()?;
        Ok(())
    }
}

impl LocalCache {
    /// Waits until what was written before can be read.
    fn flush(&self) -> Result<(), ReturnerError> {
        self.store.write(Batch::new()).durable_blocking()?;
        Ok(())
    }
}
