//! Free space is returned to the disk while the store is in use.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::reclaim::Reclaim;
use super::*;

const THINGS: Table = Table("things");
const OTHERS: Table = Table("others");

fn open(path: &Path) -> BlockingStore {
    BlockingStore(Store::open(path, 1 << 20).unwrap().0)
}

fn key(number: u32) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

/// Stores rows of 1 KiB with the numbers of a range.
fn fill(store: &Store, table: Table, numbers: std::ops::Range<u32>) {
    for start in numbers.clone().step_by(1000) {
        let mut batch = Batch::new();
        for number in start..numbers.end.min(start + 1000) {
            batch.put(table, key(number), vec![number.to_be_bytes()[3]; 1024]);
        }
        store.write(batch).durable_blocking().unwrap();
    }
}

fn remove(store: &Store, table: Table, below: u32) {
    let mut batch = Batch::new();
    batch.delete_below(table, key(below));
    store.write(batch).durable_blocking().unwrap();
}

fn rows(store: &BlockingStore, table: Table) -> BTreeMap<Vec<u8>, Vec<u8>> {
    store.scan(table, b"", usize::MAX).unwrap().into_iter().collect()
}

#[test]
fn space_of_removed_rows_is_returned_to_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let store = open(&path);
    fill(&store, THINGS, 0..50_000);
    fill(&store, OTHERS, 0..3000);
    store.reclaim().durable_blocking().unwrap();
    let full = store.disk_bytes();
    assert!(full > 50 << 20, "{full}");
    remove(&store, THINGS, 48_000);
    store.reclaim().durable_blocking().unwrap();
    let bytes = store.disk_bytes();
    // 5,000 rows of 1 KiB.
    assert!(bytes < 10 << 20, "{bytes}");
    assert_eq!(rows(&store, THINGS).keys().next(), Some(&key(48_000)));
    fill(&store, THINGS, 50_000..50_100);
    assert!(!disk::copy_path(&path).exists());
    drop(store);
    let store = open(&path);
    assert_eq!((rows(&store, THINGS).len(), rows(&store, OTHERS).len()), (2100, 3000));
}

#[test]
fn reads_and_writes_continue_while_space_is_returned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let store = open(&path);
    fill(&store, OTHERS, 0..30_000);
    fill(&store, THINGS, 0..20_000);
    remove(&store, OTHERS, 30_000);
    let mut model = rows(&store, THINGS);
    let is_done = AtomicBool::new(false);
    let writes = std::thread::scope(|scope| {
        scope.spawn(|| {
            store.reclaim().durable_blocking().unwrap();
            is_done.store(true, Ordering::Release);
        });
        let (mut seed, mut writes) = (1u32, 0);
        while !is_done.load(Ordering::Acquire) {
            let mut batch = Batch::new();
            for _ in 0..20 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let number = (seed >> 8) % 25_000;
                let value = number.to_string().into_bytes();
                match seed >> 29 {
                    0 | 1 => {
                        batch.put(THINGS, key(number), value.clone());
                        model.insert(key(number), value);
                    }
                    2..=4 => {
                        batch.put_new(THINGS, key(number), value.clone());
                        model.entry(key(number)).or_insert(value);
                    }
                    5 => {
                        batch.delete(THINGS, key(number));
                        model.remove(&key(number));
                    }
                    6 => {
                        let prefix = &key(number)[..7];
                        batch.delete_prefix(THINGS, prefix);
                        model.retain(|key, _| !key.starts_with(prefix));
                    }
                    _ => {
                        batch.delete_first(THINGS, key(number)..key(number + 500), 7);
                        let first: Vec<_> =
                            model.range(key(number)..key(number + 500)).take(7).map(|(key, _)| key.clone()).collect();
                        model.retain(|key, _| !first.contains(key));
                    }
                }
            }
            store.write(batch).durable_blocking().unwrap();
            let (number, _) = model.last_key_value().unwrap();
            assert_eq!(store.last(THINGS).unwrap().unwrap().0, *number);
            writes += 1;
        }
        writes
    });
    assert!(writes > 20, "{writes}");
    assert!(rows(&store, THINGS) == model, "the copy differs");
    assert!(store.disk_bytes() < 40 << 20, "{}", store.disk_bytes());
    drop(store);
    assert!(rows(&open(&path), THINGS) == model, "the copy differs on disk");
}

#[test]
fn a_copy_that_fails_leaves_the_store_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let store = open(&path);
    fill(&store, THINGS, 0..30_000);
    remove(&store, THINGS, 29_000);
    let full = store.disk_bytes();
    // A directory is in the place of the copy.
    std::fs::create_dir(disk::copy_path(&path)).unwrap();
    let error = store.reclaim().durable_blocking().unwrap_err().to_string();
    assert!(error.contains("directory"), "{error}");
    fill(&store, THINGS, 30_000..30_010);
    assert_eq!(rows(&store, THINGS).len(), 1010);
    std::fs::remove_dir(disk::copy_path(&path)).unwrap();
    store.reclaim().durable_blocking().unwrap();
    assert!(store.disk_bytes() < full / 4);
    assert_eq!(rows(&store, THINGS).len(), 1010);
}

#[test]
fn a_disk_that_fills_up_during_a_copy_leaves_the_store_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, _, faults) = faults::open(&path, 1 << 20);
    let store = BlockingStore(store);
    fill(&store, THINGS, 0..30_000);
    remove(&store, THINGS, 29_000);
    // The first flush is that of the copy: nothing else writes.
    let stalled = faults.stall();
    let ticket = store.reclaim();
    faults.wait_for_stall();
    faults.set(faults::Errors { write: Some(28), ..faults::Errors::default() });
    drop(stalled);
    let error = ticket.durable_blocking().unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");
    faults.set(faults::Errors::default());
    assert!(!disk::copy_path(&path).exists());
    fill(&store, THINGS, 30_000..30_010);
    assert_eq!(rows(&store, THINGS).len(), 1010);
    store.reclaim().durable_blocking().unwrap();
    assert!(store.disk_bytes() < 16 << 20, "{}", store.disk_bytes());
    drop(store);
    assert_eq!(rows(&open(&path), THINGS).len(), 1010);
}

#[test]
fn nothing_acknowledged_is_lost_whichever_step_of_a_replacement_fails() {
    const EIO: i32 = 5;
    const EMFILE: i32 = 24;
    let none = faults::Errors::default();
    for (step, errors) in [
        ("opening the copy", faults::Errors { open: Some(EMFILE), ..none }),
        ("the rename", faults::Errors { rename: Some(EIO), ..none }),
        ("flushing the directory", faults::Errors { directory: Some(EMFILE), ..none }),
        ("the rename and all after it", faults::Errors { rename: Some(EIO), directory: Some(EIO), ..none }),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("brine.redb");
        let (store, _, faults) = faults::open(&path, 1 << 20);
        let store = BlockingStore(store);
        fill(&store, THINGS, 0..30_000);
        remove(&store, THINGS, 29_000);
        let mut health = store.health();
        // The first flush is that of the copy, which has been opened then.
        let stalled = faults.stall();
        let ticket = store.reclaim();
        faults.wait_for_stall();
        faults.set(errors);
        drop(stalled);
        let reclaimed = ticket.durable_blocking();
        // While the directory cannot be flushed, a crash may bring the old file back: nothing is acknowledged.
        let acknowledged: Vec<u32> = (30_000..30_050)
            .filter(|number| {
                let mut batch = Batch::new();
                batch.put(THINGS, key(*number), vec![1; 10]);
                store.write(batch).durable_blocking().is_ok()
            })
            .collect();
        if errors.rename.is_none() && errors.directory.is_some() {
            assert!(acknowledged.is_empty(), "{step}: {acknowledged:?} {reclaimed:?}");
            assert!(matches!(*health.borrow_and_update(), Health::Failed(_)), "{step}");
        } else {
            assert_eq!((reclaimed.is_err(), acknowledged.len()), (true, 50), "{step}");
        }
        faults.set(none);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let healthy = health.wait_for(|health| matches!(health, Health::Healthy));
            tokio::time::timeout(Duration::from_secs(60), healthy).await.unwrap().unwrap();
        });
        fill(&store, OTHERS, 0..10);
        drop((store, faults));
        let store = open(&path);
        let rows = rows(&store, THINGS);
        assert!(acknowledged.iter().all(|number| rows.contains_key(&key(*number))), "{step}");
        assert_eq!((rows.len(), store.scan(OTHERS, b"", 99).unwrap().len()), (1000 + acknowledged.len(), 10), "{step}");
    }
}

#[test]
fn a_request_during_a_check_has_a_check_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Box::new(FileDisk(directory.path().join("brine.redb")));
    let (engine, _) = Engine::open(disk, 1 << 20).map_err(|(error, _)| error).unwrap();
    check_schema(&engine).unwrap();
    let mut reclaim = Reclaim::new();
    let ([one, other], [mut first, mut second]) = {
        let ((one, first), (other, second)) = (oneshot::channel(), oneshot::channel());
        ([one, other], [first, second])
    };
    reclaim.request(vec![one]);
    reclaim.step(&engine);
    reclaim.request(vec![other]);
    while first.try_recv().is_err() {
        reclaim.step(&engine);
    }
    assert!(second.try_recv().is_err(), "its check has not begun");
    assert!(reclaim.next() <= std::time::Instant::now(), "its check is due");
}

#[test]
fn an_unfinished_copy_is_removed_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    std::fs::write(disk::copy_path(&path), b"half a copy").unwrap();
    let store = open(&path);
    fill(&store, THINGS, 0..1);
    assert!(!disk::copy_path(&path).exists());
}
