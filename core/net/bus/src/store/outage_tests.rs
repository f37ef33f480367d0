//! Reads after an I/O error, until the database is reopened.

use super::faults::Errors;
use super::*;

const THINGS: Table = Table("things");
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

fn batch(key: &str, size: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(THINGS, key.as_bytes(), vec![b'x'; size]);
    batch
}

/// Opens a store with one row whose next write of a megabyte fails with these errors.
fn failing(directory: &tempfile::TempDir, errors: Errors) -> (BlockingStore, faults::Faults) {
    let (store, _, disk) = faults::open(&directory.path().join("brine.redb"), 0);
    let store = BlockingStore(store);
    store.write(batch("a", 1)).durable_blocking().unwrap();
    disk.set(errors);
    let error = store.write(batch("b", 4 << 20)).durable_blocking().unwrap_err();
    assert!(matches!(error, StoreError::Write { .. }), "{error}");
    (store, disk)
}

#[test]
fn a_read_after_a_failed_write_waits_until_the_store_is_reopened() {
    let directory = tempfile::tempdir().unwrap();
    let (store, disk) = failing(&directory, Errors { grow: Some(ENOSPC), ..Errors::default() });
    assert_eq!(store.get(THINGS, b"a").unwrap(), Some(b"x".to_vec()));
    assert_eq!(store.scan(THINGS, b"", 9).unwrap().len(), 1);
    let mut visited = 0;
    store.each_from(THINGS, b"", |_, _| std::mem::replace(&mut visited, 1) == 0).unwrap();
    assert_eq!(visited, 1);
    disk.set(Errors::default());
}

#[test]
fn a_read_while_the_store_stays_unusable_names_the_first_error() {
    for (errors, expected) in [
        (Errors { grow: Some(ENOSPC), open: Some(EIO), ..Errors::default() }, "No space left on device"),
        (Errors { sync: Some(EIO), open: Some(ENOSPC), ..Errors::default() }, "Input/output error"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (store, disk) = failing(&directory, errors);
        // The first read waits; the later ones fail at once.
        for _ in 0..3 {
            let error = store.get(THINGS, b"a").unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("brine.redb"), "{error}");
        }
        // The end of the store ends the wait.
        store.inner.queue.close();
        disk.set(Errors::default());
    }
}

#[test]
fn a_read_that_waits_ends_with_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _disk) = failing(&directory, Errors { sync: Some(EIO), open: Some(EIO), ..Errors::default() });
    let other = store.clone();
    let reading = std::thread::spawn(move || other.get(THINGS, b"a"));
    store.inner.queue.close();
    let error = reading.join().unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Closed | StoreError::Unavailable { .. }), "{error}");
}
