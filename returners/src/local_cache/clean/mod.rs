//! Removes old jobs, in steps between which other writes are committed. A job is old if it began long ago and its
//! newest return is old, too. For this, the time of returns that arrive long after the start of their job is recorded.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use brine_bus::store::{Batch, Table};
use brine_ids::{Jid, MinionId};
use brine_job::oldest_kept;

use super::{CALLS, END_TIMES, INDEX, LOADS, LocalCache, MINIONS, RETURNS, key};
use crate::ReturnerError;

/// The time of the newest late return, as the first digits of a job id, by job id.
const LATE_RETURNS: Table = Table("jobs_late");
/// The tables whose keys begin with a job id.
const TABLES: [Table; 7] = [LOADS, RETURNS, CALLS, MINIONS, INDEX, LATE_RETURNS, END_TIMES];
/// The age of a job, in seconds, from which on its returns are late. Jobs are kept this much longer.
const LATE_AFTER: u64 = 60;
/// The number of digits of a job id up to its seconds.
const SECONDS_DIGITS: usize = 14;
/// The number of rows that one step removes.
const ROWS_PER_STEP: usize = 2000;

impl LocalCache {
    /// Adds the records of late returns among rows of [`RETURNS`] or [`CALLS`]. A row that already exists does not
    /// count: a minion that returns again and again could keep a job forever.
    pub(super) fn record_late<'a>(
        &self,
        table: Table,
        rows: impl Iterator<Item = (&'a Jid, &'a MinionId)>,
        batch: &mut Batch,
    ) -> Result<(), ReturnerError> {
        let now = brine_clock::now();
        let Some(prompt) = oldest_kept(&now, LATE_AFTER) else { return Ok(()) };
        let mut late = BTreeSet::new();
        for (jid, id) in rows.filter(|(jid, _)| **jid < prompt) {
            if self.settle()?.get(table, &key(jid, id.as_str()))?.is_none() {
                late.insert(jid);
            }
        }
        for jid in late {
            batch.put(LATE_RETURNS, jid.as_str(), now.strftime("%Y%m%d%H%M%S").to_string().into_bytes());
        }
        Ok(())
    }

    /// Removes the jobs that are older than `older_than` and have no younger return.
    pub(super) fn remove_old(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let now = brine_clock::now_for_age(older_than);
        let of = |seconds| oldest_kept(&now, seconds);
        let Some((young, end)) = of(older_than.as_secs()).zip(of(older_than.as_secs().saturating_add(LATE_AFTER)))
        else {
            return Ok(());
        };
        let (mut start, mut is_removed) = (Vec::new(), false);
        for key in self.kept(&young, &end)? {
            // Behind all keys `<jid>/<minion id>`.
            let next = [&key[..], b"0"].concat();
            is_removed |= self.remove(start..key)?;
            start = next;
        }
        if self.remove(start..end.as_str().into())? || is_removed {
            self.settle()?.reclaim_soon();
        }
        Ok(())
    }

    /// Returns the jobs before `end` that have a return since the time of `young`.
    fn kept(&self, young: &Jid, end: &Jid) -> Result<Vec<Vec<u8>>, ReturnerError> {
        let since = young.as_str().as_bytes().get(..SECONDS_DIGITS).unwrap_or_default();
        let mut keys = Vec::new();
        self.each(LATE_RETURNS, |jid, time| {
            if jid < end.as_str().as_bytes() && time >= since {
                keys.push(jid.to_vec());
            }
        })?;
        Ok(keys)
    }

    /// Removes the jobs of a range of job ids. Returns whether there were some.
    fn remove(&self, range: Range<Vec<u8>>) -> Result<bool, ReturnerError> {
        let mut is_removed = false;
        for table in TABLES {
            while self.settle()?.scan(table, &range.start, 1)?.iter().any(|(key, _)| *key < range.end) {
                let mut batch = Batch::new();
                batch.delete_first(table, range.clone(), ROWS_PER_STEP);
                self.write(batch)?;
                is_removed = true;
            }
        }
        Ok(is_removed)
    }
}

#[cfg(test)]
mod tests;
