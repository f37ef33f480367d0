//! Removes old jobs, in steps between which other writes are committed. A job is old if it began long ago and its
//! newest return is old, too. For this, the time of returns that arrive long after the start of their job is recorded.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use brine_bus::store::{Batch, Table};
use brine_ids::{Jid, MinionId};
use brine_job::oldest_kept;

use super::{CALLS, INDEX, LOADS, LocalCache, MINIONS, RETURNS, key};
use crate::ReturnerError;

/// The time of the newest late return, as the first digits of a job id, by job id.
const LATE_RETURNS: Table = Table("jobs_late");
/// The tables whose keys begin with a job id.
const TABLES: [Table; 6] = [LOADS, RETURNS, CALLS, MINIONS, INDEX, LATE_RETURNS];
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
        let now = brine_clock::now();
        let of = |seconds| oldest_kept(&now, seconds);
        let Some((young, end)) = of(older_than.as_secs()).zip(of(older_than.as_secs().saturating_add(LATE_AFTER)))
        else {
            return Ok(());
        };
        let (mut start, mut is_removed) = (Vec::new(), false);
        for kept in self.kept(&young, &end)? {
            // Behind all keys `<jid>/<minion id>`.
            let next = [&kept[..], b"0"].concat();
            is_removed |= self.remove(start..kept)?;
            start = next;
        }
        if self.remove(start..end.as_str().into())? || is_removed {
            // The store logs a failure, and no caller waits for the end.
            drop(self.settle()?.reclaim());
        }
        Ok(())
    }

    /// Returns the jobs before `end` that have a return since the time of `young`.
    fn kept(&self, young: &Jid, end: &Jid) -> Result<Vec<Vec<u8>>, ReturnerError> {
        let since = young.as_str().as_bytes().get(..SECONDS_DIGITS).unwrap_or_default();
        let mut kept = Vec::new();
        self.each(LATE_RETURNS, |jid, time| {
            if jid < end.as_str().as_bytes() && time >= since {
                kept.push(jid.to_vec());
            }
        })?;
        Ok(kept)
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
mod tests {
    use brine_value::map;

    use super::super::tests::{cache, returned};
    use super::*;
    use crate::Returner;

    const DAY: Duration = Duration::from_secs(86400);

    fn jid(text: &str) -> Jid {
        text.parse().unwrap()
    }

    /// Stores a job with returns of two minions, as if they had arrived at once.
    fn store_job(cache: &LocalCache, jid: &Jid) {
        cache.save_load(&brine_job::Load::from_map(map! {"jid" => jid, "fun" => "test.ping"}).unwrap()).unwrap();
        cache.save_minions(jid, &["a".parse().unwrap()]).unwrap();
        let mut batch = Batch::new();
        for id in ["a", "b"] {
            batch.put(RETURNS, key(jid, id), brine_value::msgpack::pack_map(returned(jid, id).map()));
        }
        cache.write(batch).unwrap();
    }

    fn jobs(cache: &LocalCache) -> Vec<String> {
        cache.get_jids(None).unwrap().iter().rev().map(|load| load.jid().to_string()).collect()
    }

    #[test]
    fn a_job_stays_while_its_newest_return_is_young() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        let ids = ["20200101000000000000", "20200101000000000000_7", "20200102000000000000", "20200103000000000000"];
        let new = Jid::new();
        for id in ids.iter().map(|id| jid(id)).chain([new.clone()]) {
            store_job(&cache, &id);
        }
        // A second return of a minion does not count; a return of another minion does.
        cache.returner(&returned(&jid(ids[0]), "a")).unwrap();
        cache.returner(&returned(&jid(ids[2]), "c")).unwrap();
        cache.clean_old_jobs(Duration::ZERO).unwrap();
        assert_eq!(jobs(&cache).len(), 5, "zero keeps everything");
        cache.clean_old_jobs(DAY).unwrap();
        assert_eq!(jobs(&cache), [ids[2], new.as_str()]);
        assert_eq!(cache.get_jid(&jid(ids[2])).unwrap().len(), 3);
        for id in [ids[0], ids[1], ids[3]] {
            assert!(cache.get_jid(&jid(id)).unwrap().is_empty(), "{id}");
        }
        // Its newest return was two days ago.
        let mut batch = Batch::new();
        let ago = oldest_kept(&brine_clock::now(), 2 * 86400).unwrap();
        batch.put(LATE_RETURNS, ids[2], ago.as_str().as_bytes()[..SECONDS_DIGITS].to_vec());
        cache.write(batch).unwrap();
        cache.clean_old_jobs(DAY).unwrap();
        assert_eq!(jobs(&cache), [new.as_str()]);
        for table in TABLES {
            assert!(
                cache
                    .settle()
                    .unwrap()
                    .scan(table, b"", 9)
                    .unwrap()
                    .iter()
                    .all(|(key, _)| key.starts_with(new.as_str().as_bytes()))
            );
        }
    }

    #[test]
    fn the_space_of_removed_jobs_is_given_back() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        for number in 0..300 {
            let old = jid(&format!("2020010100{:02}{:02}000000", number / 60, number % 60));
            let mut batch = Batch::new();
            for minion in 0..100 {
                batch.put(RETURNS, key(&old, &format!("m{minion}")), vec![7; 1500]);
            }
            cache.write(batch).unwrap();
        }
        let store = cache.settle().unwrap();
        let full = store.disk_bytes();
        assert!(full > 45_000_000, "{full}");
        cache.clean_old_jobs(DAY).unwrap();
        // The next check begins after the one that the removal has requested.
        store.reclaim().durable_blocking().unwrap();
        assert!(store.disk_bytes() < 2 << 20, "{}", store.disk_bytes());
    }

    #[test]
    fn many_jobs_are_removed_in_steps() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        let old = jid("20200101000000000000");
        let mut batch = Batch::new();
        let count = ROWS_PER_STEP * 2 + 10;
        for number in 0..count {
            batch.put(RETURNS, key(&old, &format!("m{number}")), Vec::new());
        }
        cache.write(batch).unwrap();
        cache.settle().unwrap();
        // Between two steps, the remaining rows exist.
        let mut batch = Batch::new();
        batch.delete_first(RETURNS, Vec::new()..b"3".to_vec(), ROWS_PER_STEP);
        cache.write(batch).unwrap();
        assert_eq!(cache.settle().unwrap().scan(RETURNS, b"", count).unwrap().len(), ROWS_PER_STEP + 10);
        cache.clean_old_jobs(DAY).unwrap();
        assert!(cache.settle().unwrap().scan(RETURNS, b"", 1).unwrap().is_empty());
    }
}
