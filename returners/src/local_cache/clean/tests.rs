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
    cache.save_end_times(&[(jid.clone(), 7)].into()).unwrap();
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
