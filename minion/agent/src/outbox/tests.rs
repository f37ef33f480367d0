//! Tests of the queue for the master.

use std::collections::VecDeque;
use std::sync::Arc;

use brine_runtime::executors::Executor;
use brine_value::map;

use super::*;

static LOST: &Counter = &brine_job::metrics::RETURNS_LOST;

fn bounds(count: usize, bytes: usize) -> Bounds {
    Bounds { count, bytes, age: Duration::from_secs(3600) }
}

fn load(n: i64) -> Map {
    map! {"jid" => format!("{n:020}"), "return" => n}
}

fn files(path: &Path) -> usize {
    std::fs::read_dir(path).map_or(0, Iterator::count)
}

/// Runs a queue against a master with these results, until it is empty. Returns the received loads.
async fn delivered(outbox: Outbox, answers: &[SendResult]) -> Vec<i64> {
    let outbox = Arc::new(outbox);
    let (answers, got) = (Mutex::new(VecDeque::from(answers.to_vec())), Mutex::new(Vec::new()));
    let send = |load: Map| {
        got.lock().push(load.get("return").and_then(Value::as_i64).unwrap());
        std::future::ready(answers.lock().pop_front().unwrap_or(SendResult::Accepted))
    };
    let (_ready, is_ready) = watch::channel(true);
    let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(2));
    let disk = Executor::new("disk", 1, 10);
    tokio::select! {
        () = Arc::clone(&outbox).run(send, is_ready, backoff, disk, CancellationToken::new()) => {}
        () = async {
            while outbox.len() > 0 {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    got.into_inner()
}

#[tokio::test]
async fn loads_are_retried_and_do_not_block_others() {
    let outbox = Outbox::in_memory("test", bounds(10, 1000), LOST);
    (1..=3).for_each(|n| outbox.push("x", &load(n)));
    let answers =
        [SendResult::Later, SendResult::Accepted, SendResult::Accepted, SendResult::Later, SendResult::Accepted];
    assert_eq!(delivered(outbox, &answers).await, [1, 2, 3, 1, 1]);
    let outbox = Outbox::in_memory("test", bounds(10, 1000), LOST);
    (1..=2).for_each(|n| outbox.push("x", &load(n)));
    assert_eq!(delivered(outbox, &[SendResult::Refused, SendResult::Accepted]).await, [1, 2]);
}

#[tokio::test]
async fn loads_of_a_returner_keep_their_order() {
    let outbox = Outbox::in_memory("test", bounds(10, 1000), LOST).of_returner("redis");
    (1..=3).for_each(|n| outbox.push("x", &load(n)));
    let answers = [SendResult::Later, SendResult::Later, SendResult::Accepted, SendResult::Later];
    assert_eq!(delivered(outbox, &answers).await, [1, 1, 1, 2, 2, 3]);
}

#[tokio::test]
async fn returns_survive_a_restart_until_they_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("returns");
    let open = || Outbox::open("test", bounds(10, 10_000), LOST, &path);
    let outbox = open();
    let (first, second) = (outbox.add("1", &load(1)), outbox.add("2", &load(2)));
    outbox.add("3", &load(3));
    outbox.finish(first, SendResult::Accepted);
    outbox.finish(second, SendResult::Later);
    drop(outbox);
    assert_eq!(files(&path), 2);
    assert_eq!(delivered(open(), &[]).await, [2, 3]);
    assert_eq!((files(&path), open().len()), (0, 0));
}

#[test]
fn bounds_hold_and_the_oldest_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let outbox = Outbox::open("test", bounds(2, 10_000), LOST, directory.path());
    let lost = LOST.get();
    let tickets: Vec<QueuedLoad> = (1..=4).map(|n| outbox.add("x", &load(n))).collect();
    assert_eq!(outbox.len(), 4, "what is being sent is not dropped");
    for ticket in tickets {
        outbox.finish(ticket, SendResult::Later);
    }
    outbox.push("x", &load(5));
    assert_eq!((outbox.len(), files(directory.path())), (2, 2));
    assert!(LOST.get() >= lost + 3);
    let size = msgpack::pack_map(&load(1)).len();
    let outbox = Outbox::in_memory("test", bounds(10, 2 * size), LOST);
    (1..=3).for_each(|n| outbox.push("x", &load(n)));
    assert_eq!(outbox.len(), 2);
    assert_eq!(outbox.next().unwrap().2.unwrap(), load(2));
}

#[test]
fn old_loads_are_dropped() {
    let outbox = Outbox::in_memory("test", Bounds { age: Duration::ZERO, ..bounds(2, 1000) }, LOST);
    let ticket = outbox.add("x", &load(1));
    outbox.finish(ticket, SendResult::Later);
    assert_eq!(outbox.len(), 0);
}

#[test]
fn without_a_writable_directory_loads_stay_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let outbox = Outbox::open("test", bounds(2, 1000), LOST, &file.join("below"));
    outbox.push("x", &load(1));
    assert_eq!(outbox.next().unwrap().2.unwrap(), load(1));
}

#[tokio::test(start_paused = true)]
async fn a_load_that_cannot_be_read_now_is_sent_later() {
    let directory = tempfile::tempdir().unwrap();
    let outbox = Arc::new(Outbox::open("test", bounds(9, 1000), LOST, directory.path()));
    outbox.push("x", &load(1));
    let path = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    // A read fails, but not because the file is gone: a link to itself is in its place.
    let other_directory = tempfile::tempdir().unwrap();
    let elsewhere = other_directory.path().join("load");
    std::fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let (sender, mut sent) = tokio::sync::mpsc::unbounded_channel();
    let (_session, ready) = watch::channel(true);
    let stop = CancellationToken::new();
    let send = move |load: Map| {
        sender.send(load).unwrap();
        std::future::ready(SendResult::Accepted)
    };
    let (backoff, disk) = (Backoff::new(RESCAN_INTERVAL, RESCAN_INTERVAL), Executor::new("disk", 1, 10));
    let running = tokio::spawn(Arc::clone(&outbox).run(send, ready, backoff, disk, stop.clone()));
    tokio::time::sleep(5 * RESCAN_INTERVAL).await;
    assert_eq!(outbox.len(), 1);
    std::fs::rename(&elsewhere, &path).unwrap();
    assert_eq!(sent.recv().await.unwrap(), load(1));
    stop.cancel();
    running.await.unwrap();
}

#[test]
fn only_what_is_gone_or_damaged_is_given_up() {
    use std::io::{Error, ErrorKind};
    assert!(LoadError::Read(ErrorKind::NotFound.into()).is_final());
    assert!(LoadSource::Memory(b"damaged".to_vec()).read().unwrap_err().is_final());
    // EMFILE, EIO, ENOMEM, EACCES
    for errno in [24, 5, 12, 13] {
        assert!(!LoadError::Read(Error::from_raw_os_error(errno)).is_final(), "{errno}");
    }
}

#[tokio::test]
async fn loads_of_other_processes_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Outbox::open("test", bounds(9, 1000), LOST, directory.path());
    Outbox::open("test", bounds(9, 1000), LOST, directory.path()).push("x", &load(1));
    daemon.rescan();
    daemon.rescan();
    assert_eq!(daemon.len(), 1);
    std::fs::write(directory.path().join("00000000000000000001.1.1.x"), "no msgpack").unwrap();
    daemon.rescan();
    // The damaged one is dropped.
    assert_eq!(delivered(daemon, &[]).await, [1]);
    assert_eq!(files(directory.path()), 0);
}

#[test]
fn a_return_that_is_too_large_becomes_an_error() {
    for (value, args, is_cut) in
        [("x".repeat(10), 10, false), ("x".repeat(5000), 10, true), (String::new(), 5000, true)]
    {
        let mut load = map! {"jid" => "1", "return" => value, "fun_args" => "y".repeat(args), "retcode" => 0};
        fit(&mut load, 1000);
        assert!(msgpack::pack_map(&load).len() <= 1000);
        assert_eq!(load.get("retcode"), Some(&Value::from(i64::from(is_cut))));
    }
}

#[test]
fn the_queue_of_a_removed_master_is_adopted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("returns");
    let open = |path: &Path| Outbox::open("return", bounds(100, 1 << 20), LOST, path);
    for (name, jid) in [("", "1"), ("kept_4506", "2"), ("gone_4506", "3"), ("gone_4506", "4")] {
        open(&path.join(name)).push(jid, &map! {"jid" => jid});
    }
    adopt(&path, &["kept_4506".to_owned()]);
    assert_eq!((open(&path).len(), open(&path.join("kept_4506")).len()), (3, 1));
    assert!(!path.join("gone_4506").exists());
}

#[test]
fn a_return_that_is_delivered_while_the_directory_is_read_is_not_lost() {
    static DROPPED: Counter = Counter::new("test_dropped", "");
    let directory = tempfile::tempdir().unwrap();
    let outbox = Outbox::open("test", bounds(1000, 1 << 20), &DROPPED, &directory.path().join("returns"));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    outbox.rescan();
                }
            });
        }
        for n in 0..2000 {
            let ticket = outbox.add("1", &load(n));
            outbox.finish(ticket, SendResult::Accepted);
            // What a rescan has added a second time cannot be read.
            if let Some((ticket, _, read)) = outbox.next() {
                panic!("delivered, and queued again as {ticket:?}: {read:?}");
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!((outbox.len(), DROPPED.get()), (0, 0));
}
