//! Slow, hung and cancelled reactions: the cursor never passes unfinished work, and nothing waits for ever.

use std::time::Instant;

use super::*;
use crate::metrics;

const SOON: Duration = Duration::from_millis(50);
const BLOCK: &str = "a: {runner.test.arg: [{n: {{ data.n }}}]}\nb: {runner.test.block: []}";
const BLOCKED_RENDER: &str = "a: {runner.test.arg: [{n: \"{{ salt['test.fun']('block') }}\"}]}";

/// Creates the entries `slow` and `go`, with files of these contents.
fn entries(directory: &Path, slow: &str) -> Map {
    let (slow, go) = (write(directory, "slow.sls", slow), write(directory, "go.sls", NUMBER));
    map! {"reactor" => map! {"slow" => slow, "go" => go}}
}

/// Returns the next event that a reactor would read if it started now.
fn cursor(bus: &Bus) -> u64 {
    bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap().position()
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn fire(running: &Running, tag: &str, n: i32) -> u64 {
    running.bus.fire(tag, &map! {"n" => n, "id" => "web1"}).await.unwrap()
}

async fn next_name(running: &mut Running) -> (u64, String) {
    let (reaction, cause) = next(running).await;
    (cause.seq, reaction.name())
}

#[tokio::test]
async fn a_detached_reaction_is_repeated_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let opts = entries(directory.path(), BLOCK);
    let change = |options: &mut Options| (options.workers, options.detach) = (1, SOON);
    let mut running = start_with(directory.path(), &opts, change);
    let first = fire(&running, "slow", 1).await;
    let second = fire(&running, "slow", 2).await;
    assert_eq!(next_name(&mut running).await, (first, "runner.test.arg".into()));
    assert_eq!(next_name(&mut running).await, (first, "runner.test.block".into()));
    // The only worker is blocked: other keys continue because it is detached, and the same key waits.
    for n in 3..6 {
        let seq = fire(&running, "go", n).await;
        assert_eq!(next_name(&mut running).await, (seq, "runner.test.arg".into()));
    }
    // The second event was read before those: it would have been dispatched by now.
    assert!(running.reactions.try_recv().is_err(), "the second event overtakes the first of its key");
    until(|| cursor(&running.bus) == first).await;
    running.task.abort();
    _ = running.task.await;
    let (bus, store) = (running.bus.clone(), running.store.clone());
    let mut again = start_on(bus, store, directory.path(), &opts, change);
    again.gate.open();
    let mut seen = Vec::new();
    while seen.len() < 7 {
        seen.push(next_name(&mut again).await);
    }
    let of = |seq: u64| seen.iter().filter(|(of, _)| *of == seq).map(|(_, name)| name.as_str()).collect::<Vec<_>>();
    for seq in [first, second] {
        assert_eq!(of(seq), ["runner.test.arg", "runner.test.block"]);
    }
    let index = |seq: u64| seen.iter().position(|(of, _)| *of == seq);
    assert!(index(first) < index(second));
    until(|| cursor(&again.bus) > second).await;
    running.gate.open();
}

#[tokio::test]
async fn a_reaction_past_its_deadline_becomes_a_dead_letter() {
    // The SLS that blocks, and the label of the dead letter: none, for the whole file, if it was not rendered.
    for (sls, label) in [(BLOCK, Some("b: runner.test.block")), (BLOCKED_RENDER, None)] {
        let directory = tempfile::tempdir().unwrap();
        let opts = entries(directory.path(), sls);
        let change = |options: &mut Options| (options.workers, options.deadline) = (1, SOON);
        let mut running = start_with(directory.path(), &opts, change);
        let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
        let overdue = metrics::REACTIONS_OVERDUE.get();
        let seq = fire(&running, "slow", 1).await;
        let error = errors.recv().await.unwrap().data();
        let message = error.get("message").unwrap().to_string();
        assert!(message.contains("it exceeded its deadline of 0.05 s (reactor_deadline)"), "{message}");
        assert_eq!(error.get("_cause"), Some(&seq.into()));
        assert!(metrics::REACTIONS_OVERDUE.get() > overdue);
        let failed = dead_letters(&running.reactor);
        let letters: Vec<_> = failed.iter().map(|one| (one.event.seq(), one.label.as_deref())).collect();
        assert_eq!(letters, [(seq, label)]);
        // The thread of the overdue work is still blocked, but the cursor passes its event, and other events are
        // processed.
        until(|| cursor(&running.bus) > seq).await;
        let go = fire(&running, "go", 2).await;
        while next_name(&mut running).await.0 != go {}
        running.gate.open();
        let retried = running.reactor.retry(&running.bus, Some(seq)).await;
        assert_eq!(retried.into_iter().map(|retried| retried.result).collect::<Vec<_>>(), [Ok(())]);
        assert!(dead_letters(&running.reactor).is_empty());
    }
}

#[tokio::test]
async fn the_reactor_stops_within_two_seconds_whatever_blocks() {
    for sls in [BLOCK, BLOCKED_RENDER] {
        let directory = tempfile::tempdir().unwrap();
        let opts = entries(directory.path(), sls);
        let mut running = start_with(directory.path(), &opts, |_| ());
        let seq = fire(&running, "slow", 1).await;
        let go = fire(&running, "go", 2).await;
        while next_name(&mut running).await.0 != go {}
        let started = Instant::now();
        running.shutdown.cancel();
        running.task.await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        assert!(dead_letters(&running.reactor).is_empty());
        assert_eq!(cursor(&running.bus), seq);
        let mut again = start_on(running.bus.clone(), running.store.clone(), directory.path(), &opts, |_| ());
        again.gate.open();
        while next_name(&mut again).await.0 != seq {}
        running.gate.open();
    }
}

#[tokio::test]
async fn the_reactor_pauses_while_too_much_work_is_behind_an_open_event() {
    let directory = tempfile::tempdir().unwrap();
    let opts = entries(directory.path(), BLOCK);
    let change = |options: &mut Options| (options.waiting, options.workers) = (5, 2);
    let mut running = start_with(directory.path(), &opts, change);
    fire(&running, "slow", 0).await;
    let (mut processed, fired) = (0, 500);
    // Ten times the five work items that may wait are begun. Events are read in batches, so there may be a few more.
    for n in 0..300 {
        fire(&running, "go", n).await;
    }
    until(|| metrics::REACTOR_PAUSED.get() == 1).await;
    for n in 300..fired {
        fire(&running, "go", n).await;
    }
    while processed < 50 {
        next(&mut running).await;
        processed += 1;
    }
    while running.reactions.try_recv().is_ok() {
        processed += 1;
    }
    assert!(processed < fired, "{processed} of {fired} are worked on");
    running.gate.open();
    while processed < fired + 2 {
        next(&mut running).await;
        processed += 1;
    }
    until(|| metrics::REACTOR_PAUSED.get() == 0).await;
}
