//! The store from its callers' view, also on failing disks.

use super::*;

const THINGS: Table = Table("things");

fn open(path: &Path) -> (BlockingStore, Opened) {
    open_with(path, 1 << 20)
}

fn open_with(path: &Path, cache: usize) -> (BlockingStore, Opened) {
    let (store, opened) = Store::open(path, cache).unwrap();
    (BlockingStore(store), opened)
}

fn put(store: &Store, pairs: &[(&str, &str)]) {
    let mut batch = Batch::new();
    for (key, value) in pairs {
        batch.put(THINGS, key.as_bytes(), value.as_bytes().to_vec());
    }
    store.write(batch).durable_blocking().unwrap();
}

fn keys(pairs: Vec<Pair>) -> Vec<String> {
    pairs.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

#[test]
fn writes_survive_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, opened) = open(&path);
    assert_eq!(opened, Opened::New);
    assert_eq!(store.get(THINGS, b"a").unwrap(), None);
    put(&store, &[("a", "1"), ("b", "2")]);
    drop(store);
    let (store, opened) = open(&path);
    assert_eq!(opened, Opened::Clean);
    assert_eq!(store.get(THINGS, b"a").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn keys_are_scanned_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory.path().join("brine.redb"));
    put(&store, &[("b/1", "x"), ("a", "x"), ("b/2", "x"), ("c", "x")]);
    assert_eq!(keys(store.scan(THINGS, b"b", 2).unwrap()), ["b/1", "b/2"]);
    assert_eq!(keys(store.scan_prefix(THINGS, b"b/").unwrap()), ["b/1", "b/2"]);
    assert_eq!(keys(store.scan_back(THINGS, 2).unwrap()), ["c", "b/2"]);
    assert_eq!(store.last(THINGS).unwrap().unwrap().0, b"c");
    assert_eq!(store.at_or_before(THINGS, b"b/9").unwrap().unwrap().0, b"b/2");
    let mut batch = Batch::new();
    batch.delete_below(THINGS, *b"b").delete_prefix(THINGS, *b"b/").delete(THINGS, *b"nothing");
    store.write(batch).durable_blocking().unwrap();
    assert_eq!(keys(store.scan(THINGS, b"", 9).unwrap()), ["c"]);
}

#[test]
fn put_new_keeps_the_value_of_an_existing_key() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory.path().join("brine.redb"));
    let mut batch = Batch::new();
    batch.put_new(THINGS, *b"a", &b"1"[..]).put_new(THINGS, *b"a", &b"2"[..]).put_new(THINGS, *b"b", &b"3"[..]);
    store.write(batch).durable_blocking().unwrap();
    assert_eq!(store.get(THINGS, b"a").unwrap(), Some(b"1".to_vec()));
    assert_eq!(store.get(THINGS, b"b").unwrap(), Some(b"3".to_vec()));
}

#[test]
fn a_store_that_is_open_is_not_opened_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (_store, _) = open(&path);
    assert!(matches!(Store::open(&path, 1 << 20), Err(StoreError::InUse(_))));
}

#[test]
fn a_file_that_is_not_a_store_is_moved_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    std::fs::write(&path, vec![0x55; 100_000]).unwrap();
    let (store, opened) = open(&path);
    assert_eq!(opened, Opened::Replaced);
    put(&store, &[("a", "1")]);
    assert!(directory.path().join("brine.redb.damaged").exists());
}

#[test]
fn a_missing_directory_is_named() {
    let error = Store::open(Path::new("/nonexistent/brine.redb"), 1 << 20).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/brine.redb"), "{error}");
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

fn one(key: &str, value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(THINGS, key.as_bytes(), value.to_vec());
    batch
}

/// Waits until the store's health is [`Health::Healthy`] or not, by `healthy`.
fn wait_for_health(store: &Store, healthy: bool) {
    let mut health = store.health();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let changed = health.wait_for(|health| matches!(health, Health::Healthy) == healthy);
        tokio::time::timeout(Duration::from_secs(60), changed).await.unwrap().unwrap();
    });
}

#[test]
fn a_store_recovers_with_its_disk_without_a_restart() {
    let none = faults::Errors::default();
    for (name, errors) in [
        ("full", faults::Errors { write: Some(ENOSPC), ..none }),
        ("read-only", faults::Errors { write: Some(EROFS), ..none }),
        ("broken when flushed", faults::Errors { sync: Some(EIO), ..none }),
        ("broken", faults::Errors { write: Some(EIO), sync: Some(EIO), ..none }),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("brine.redb");
        let (store, _, faults) = faults::open(&path, 1 << 20);
        let store = BlockingStore(store);
        put(&store, &[("before", "1")]);
        faults.set(errors);
        let error = store.write(one("refused", b"1")).durable_blocking().unwrap_err();
        assert!(matches!(error, StoreError::Write { .. }), "{name}: {error}");
        wait_for_health(&store, false);
        // Refused at once, without touching the disk.
        store.write(one("refused too", b"1")).durable_blocking().unwrap_err();
        faults.set(none);
        wait_for_health(&store, true);
        put(&store, &[("after", "1")]);
        assert!(store.get(THINGS, b"before").unwrap().is_some(), "{name}");
        assert_eq!(store.get(THINGS, b"refused too").unwrap(), None, "{name}");
        drop((store, faults));
        let (store, opened) = open(&path);
        assert_eq!(opened, Opened::Clean, "{name}");
        for key in ["before", "after"] {
            assert!(store.get(THINGS, key.as_bytes()).unwrap().is_some(), "{name}: {key}");
        }
    }
}

#[test]
fn a_full_store_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _, faults) = faults::open(&directory.path().join("brine.redb"), 1 << 20);
    let store = BlockingStore(store);
    put(&store, &[("a", "1")]);
    faults.set(faults::Errors { write: Some(ENOSPC), ..faults::Errors::default() });
    store.write(one("b", b"1")).durable_blocking().unwrap_err();
    // Reopening writes to the file, too. A full disk allows that if the file does not grow; this disk does not.
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let mut errors = 0;
    while let Err(error) = store.get(THINGS, b"a") {
        assert!(matches!(error, StoreError::Read(_) | StoreError::Unavailable { .. }), "{error}");
        errors += 1;
        if std::time::Instant::now() > deadline {
            break;
        }
        std::thread::yield_now();
    }
    faults.set(faults::Errors::default());
    wait_for_health(&store, true);
    assert_eq!(store.get(THINGS, b"a").unwrap(), Some(b"1".to_vec()), "{errors}");
}

#[test]
fn a_read_error_reopens_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, _) = open(&path);
    for n in 0..200 {
        put(&store, &[(&format!("{n:05}"), &"x".repeat(4000))]);
    }
    drop(store);
    let (store, _, faults) = faults::open(&path, 0);
    let store = BlockingStore(store);
    faults.set(faults::Errors { read: Some(EIO), ..faults::Errors::default() });
    let error = store.scan(THINGS, b"", 1000).unwrap_err();
    assert!(matches!(error, StoreError::Read(_) | StoreError::Unavailable { .. }), "{error}");
    wait_for_health(&store, false);
    faults.set(faults::Errors::default());
    wait_for_health(&store, true);
    assert_eq!(store.scan(THINGS, b"", 1000).unwrap().len(), 200);
}

#[test]
fn the_queue_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _, faults) = faults::open_with(&directory.path().join("brine.redb"), 1 << 20, 4);
    let store = BlockingStore(store);
    // The disk is slow while the writer holds the first batch.
    let stalled = faults.stall();
    let mut tickets = vec![store.write(one("first", b"1"))];
    faults.wait_for_stall();
    tickets.extend((0..4).map(|n| store.write(one(&n.to_string(), b"1"))));
    let error = store.write(one("more", b"1")).durable_blocking().unwrap_err();
    assert!(matches!(error, StoreError::Busy), "{error}");
    // Threads that may block wait for room.
    let blocked = store.clone();
    let waiting = std::thread::spawn(move || blocked.write_blocking(one("blocked", b"1")).durable_blocking());
    let later = store.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut room = std::pin::pin!(store.write_when_room(one("later", b"1")));
    let polled = runtime.block_on(async { futures::poll!(room.as_mut()).is_ready() });
    assert!(!polled);
    drop(stalled);
    runtime.block_on(async { room.await.durable().await }).unwrap();
    waiting.join().unwrap().unwrap();
    for ticket in tickets {
        ticket.durable_blocking().unwrap();
    }
    assert_eq!(keys(later.scan(THINGS, b"", 99).unwrap()), ["0", "1", "2", "3", "blocked", "first", "later"]);
}

/// Returns a store with 200 rows of a page each, its file, and its directory.
fn with_large_rows() -> (tempfile::TempDir, PathBuf, BlockingStore) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, _) = open_with(&path, 0);
    for n in 0..200 {
        put(&store, &[(&format!("{n:05}"), &format!("<{n:05}>").repeat(500))]);
    }
    (directory, path, store)
}

#[test]
fn a_damaged_page_is_an_error_and_the_rest_can_be_read() {
    let (_folder, path, store) = with_large_rows();
    // Debug builds of redb check all pages when they open a file, so the file is damaged after it was opened.
    damage(&path, "<00100>".repeat(50).as_bytes());
    let before = crate::metrics::STORE_DAMAGED.get();
    let error = store.scan(THINGS, b"", 1000).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(crate::metrics::STORE_DAMAGED.get() > before);
    assert_eq!(store.scan(THINGS, b"", 50).unwrap().len(), 50);
    assert_eq!(store.scan(THINGS, b"00110", 1000).unwrap().len(), 90);
    put(&store, &[("more", "1")]);
}

#[test]
fn a_write_that_meets_a_damaged_page_has_the_file_moved_aside() {
    let (directory, path, store) = with_large_rows();
    damage(&path, "<00100>".repeat(50).as_bytes());
    let (mut health, before) = (store.health(), crate::metrics::STORE_REPLACED.get());
    let error = store.write(one("00100", &[b'x'; 3500])).durable_blocking().unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let replaced = runtime.block_on(async {
        let replaced = health.wait_for(|health| matches!(health, Health::Replaced(_)));
        tokio::time::timeout(Duration::from_secs(60), replaced).await.unwrap().unwrap().clone()
    });
    let Health::Replaced(aside) = replaced else { unreachable!() };
    assert_eq!(aside, directory.path().join("brine.redb.damaged"));
    assert!(aside.exists() && store.replaced() == 1 && crate::metrics::STORE_REPLACED.get() > before);
    assert!(store.scan(THINGS, b"", 1000).unwrap().is_empty());
    put(&store, &[("new", "1")]);
    drop(store);
    let (store, opened) = open(&path);
    assert_eq!((opened, keys(store.scan(THINGS, b"", 9).unwrap())), (Opened::Clean, vec!["new".to_owned()]));
}

/// Overwrites the beginning of each page that contains these bytes.
pub(crate) fn damage(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let content = std::fs::read(path).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let finder = |at: &usize| content[*at..].starts_with(bytes);
    let offsets: Vec<usize> =
        (0..content.len()).step_by(4096).filter_map(|page| (page..page + 4096).find(finder)).collect();
    assert!(!offsets.is_empty());
    for at in offsets {
        file.write_all_at(&[0xff; 64], at as u64 / 4096 * 4096).unwrap();
    }
}

#[test]
fn at_most_five_damaged_stores_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    for n in 0..7u8 {
        std::fs::write(&path, vec![n; 10_000]).unwrap();
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000 + u64::from(n));
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(open(&path).1, Opened::Replaced);
    }
    let mut first: Vec<(String, u8)> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name() != "brine.redb")
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()[0]))
        .collect();
    first.sort();
    let expected = [("", 5), (".1", 6), (".2", 2), (".3", 3), (".4", 4)];
    assert_eq!(first, expected.map(|(name, n)| (format!("brine.redb.damaged{name}"), n)));
}

#[test]
fn the_file_is_accessible_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    drop(open(&path));
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&path));
    assert_eq!(mode(), 0o600);
}

#[test]
fn an_empty_file_is_counted_as_a_loss_and_becomes_a_new_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    std::fs::write(&path, b"").unwrap();
    let before = crate::metrics::STORE_REPLACED.get();
    let (store, opened) = open(&path);
    assert_eq!(opened, Opened::Emptied);
    assert!(crate::metrics::STORE_REPLACED.get() > before);
    put(&store, &[("a", "1")]);
    drop(store);
    assert_eq!(open(&path).1, Opened::Clean);
}

#[test]
fn a_store_is_closed_cleanly_although_clones_exist() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, _) = open(&path);
    let clone = store.clone();
    let queued: Vec<Ticket> = (0..100).map(|n| store.write(one(&n.to_string(), b"1"))).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(store.close());
    for ticket in queued {
        ticket.durable_blocking().unwrap();
    }
    // A closed store neither blocks nor accepts anything.
    runtime.block_on(async {
        clone.close().await;
        let write = clone.write_when_room(one("late", b"1")).await;
        assert!(matches!(write.durable().await, Err(StoreError::Closed)));
    });
    let errors = [
        clone.write(one("late", b"1")).durable_blocking(),
        clone.write_blocking(one("late", b"1")).durable_blocking(),
        clone.reclaim().durable_blocking(),
        clone.get(THINGS, b"1").map(drop),
    ];
    assert!(errors.iter().all(|error| matches!(error, Err(StoreError::Closed))), "{errors:?}");
    let before = crate::metrics::STORE_UNCHECKED.get();
    clone.write_unchecked(one("late", b"1"), "a write of a test");
    assert!(crate::metrics::STORE_UNCHECKED.get() > before);
    let (reopened, opened) = open(&path);
    assert_eq!((opened, reopened.scan(THINGS, b"", 1000).unwrap().len()), (Opened::Clean, 100));
}

#[test]
fn a_panic_of_the_stores_thread_is_a_failure_from_which_it_recovers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine.redb");
    let (store, _) = open(&path);
    put(&store, &[("before", "1")]);
    let (panics, mut health) = (crate::metrics::STORE_PANICS.get(), store.health());
    let mut batch = Batch::new();
    batch.put(writer::PANICS, *b"now", &b"1"[..]);
    let error = store.write(batch).durable_blocking().unwrap_err();
    assert!(matches!(error, StoreError::Interrupted), "{error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let failed = runtime.block_on(async {
        let failed = health.wait_for(|health| matches!(health, Health::Failed(_)));
        tokio::time::timeout(Duration::from_secs(60), failed).await.unwrap().unwrap().clone()
    });
    let Health::Failed(error) = failed else { unreachable!() };
    assert!(error.to_string().contains("panicked: requested by the test"), "{error}");
    assert!(crate::metrics::STORE_PANICS.get() > panics);
    wait_for_health(&store, true);
    put(&store, &[("after", "1")]);
    store.reclaim().durable_blocking().unwrap();
    drop(store);
    let (store, opened) = open(&path);
    assert_eq!((opened, store.scan(THINGS, b"", 9).unwrap().len()), (Opened::Clean, 2));
}

#[test]
fn refused_writes_without_a_waiting_caller_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _, faults) = faults::open(&directory.path().join("brine.redb"), 1 << 20);
    faults.set(faults::Errors { write: Some(ENOSPC), ..faults::Errors::default() });
    store.write(one("a", b"1")).durable_blocking().unwrap_err();
    for refused in [&(|| store.write_unchecked(one("b", b"1"), "a write of a test")) as &dyn Fn(), &|| {
        drop(store.write(one("c", b"1")));
    }] {
        let before = crate::metrics::STORE_UNCHECKED.get();
        refused();
        store.write(one("d", b"1")).durable_blocking().unwrap_err();
        assert!(crate::metrics::STORE_UNCHECKED.get() > before);
    }
}

#[test]
fn ranges_without_keys_and_limits_of_zero_remove_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory.path().join("brine.redb"));
    put(&store, &[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]);
    for (range, limit, left) in [
        ("a".."z", 0, 4),
        ("z".."a", 9, 4),
        ("b".."b", 9, 4),
        ("e".."z", 9, 4),
        ("b".."z", 1, 3),
        ("a".."d", 9, 1),
        ("a".."z", usize::MAX, 0),
    ] {
        let mut batch = Batch::new();
        batch.delete_first(THINGS, range.start..range.end, limit);
        store.write(batch).durable_blocking().unwrap();
        assert_eq!(store.scan(THINGS, b"", 9).unwrap().len(), left, "{range:?} {limit}");
    }
    for prefix in ["", "x"] {
        let mut batch = Batch::new();
        batch.delete_prefix(THINGS, prefix).delete_below(THINGS, prefix);
        store.write(batch).durable_blocking().unwrap();
    }
}

#[test]
fn pages_are_bounded_by_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory.path().join("brine.redb"));
    put(&store, &[("a", &"x".repeat(99)), ("b", &"x".repeat(99)), ("c", &"x".repeat(999)), ("d", "x")]);
    for (start, limit, bytes, expected, more) in [
        ("", 9, 250, &["a", "b"][..], true),
        ("", 1, 250, &["a"], true),
        ("c", 9, 10, &["c"], true),
        ("d", 9, 10, &["d"], false),
        ("", 9, 10_000, &["a", "b", "c", "d"], false),
        ("e", 9, 10, &[], false),
    ] {
        let (pairs, rest) = store.scan_page(THINGS, start.as_bytes(), limit, bytes).unwrap();
        assert_eq!((keys(pairs), rest), (expected.iter().map(ToString::to_string).collect(), more), "{start}");
    }
}

#[test]
fn an_invalid_write_is_refused_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _, faults) = faults::open(&directory.path().join("brine.redb"), 1 << 20);
    let store = BlockingStore(store);
    // All of them wait for one commit.
    let stalled = faults.stall();
    let first = store.write(one("first", b"1"));
    faults.wait_for_stall();
    let mut invalid = Batch::new();
    invalid.put(writer::REFUSED, *b"x", &b"1"[..]);
    let tickets = [store.write(one("a", b"1")), store.write(invalid), store.write(one("b", b"1"))];
    drop(stalled);
    first.durable_blocking().unwrap();
    let results = tickets.map(|ticket| ticket.durable_blocking().is_ok());
    assert_eq!(results, [true, false, true]);
    assert_eq!(keys(store.scan(THINGS, b"", 9).unwrap()), ["a", "b", "first"]);
    assert!(matches!(*store.health().borrow(), Health::Healthy));
}

#[test]
fn a_snapshot_has_the_rows_of_its_moment() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory.path().join("brine.redb"));
    for group in 0..20 {
        let pairs: Vec<(String, String)> =
            (0..20).map(|number| (format!("{group:02}/{number:02}"), "x".repeat(50_000))).collect();
        put(&store, &pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>());
    }
    let copy = directory.path().join("copy.redb");
    store.write_snapshot(&copy).unwrap();
    put(&store, &[("later", "x")]);
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&copy).unwrap()) & 0o777, 0o600);
    assert!(store.write_snapshot(&copy).unwrap_err().to_string().contains("the file exists"));
    let before = keys(store.scan(THINGS, b"", usize::MAX).unwrap());
    drop(store);
    let (copied, opened) = open(&copy);
    assert_eq!(opened, Opened::Clean);
    assert_eq!(keys(copied.scan(THINGS, b"", usize::MAX).unwrap()), before[..400]);
    assert_eq!(copied.get(THINGS, b"19/19").unwrap().unwrap().len(), 50_000);
}

#[test]
fn a_snapshot_that_fails_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open(&directory.path().join("brine.redb"));
    put(&store, &[("a", "1")]);
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(store.close());
    let copy = directory.path().join("copy.redb");
    assert!(store.write_snapshot(&copy).is_err());
    assert!(!copy.exists());
}
