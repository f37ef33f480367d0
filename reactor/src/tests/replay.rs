//! Replays of events against two configurations.

use brine_event::Event;

use super::*;

const LIMITS: ReplayLimits = ReplayLimits { time: Duration::from_secs(60), examples: 2, any_file: true };

fn configured(entries: Value, rules: &[&str]) -> Configured {
    Configured {
        entries: Some(entries),
        rules: Some(rules.iter().map(|file| (*file).to_owned()).collect()),
        tree: None,
    }
}

/// Returns an event with a number, and a time in seconds.
fn event(seq: u64, time: i64, tag: &str, data: &Map) -> Event {
    let stamp = brine_event::stamp_of(jiff::Timestamp::from_second(1_700_000_000 + time).unwrap());
    Event::from_map(tag, data).unwrap().stamped(seq, &stamp).unwrap()
}

async fn replayed(running: &Running, before: &Configured, after: &Configured, events: &[Event]) -> Value {
    let mut replay = running.reactor.replay(before, after, LIMITS).await.unwrap();
    for event in events {
        assert!(replay.event(event));
    }
    replay.advance(2_000_000_000_000_000);
    replay.finish()
}

fn number(report: &Value, path: &[&str]) -> i64 {
    path.iter().try_fold(report, |value, key| value.get(key)).and_then(Value::as_i64).unwrap_or(-1)
}

#[tokio::test]
async fn a_replay_counts_added_lost_and_changed_reactions_and_dispatches_none() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| write(directory.path(), name, text);
    let (same, old) = (file("same.sls", NUMBER), file("old.sls", "a: {runner.test.arg: [{n: {{ data.n }}}]}"));
    let new = file("new.sls", "a: {runner.test.arg: [{n: {{ data.n + 1 }}}]}\nb: {runner.test.sleep: [1]}");
    let mut running = start(directory.path(), &list![map! {"never" => "/nonexistent/x.sls"}]);
    let before = configured(list![map! {"go/*" => list![same.as_str()]}, map! {"x/*" => old.as_str()}], &[]);
    let after = configured(
        list![map! {"go/*" => list![same.as_str()]}, map! {"x/1" => new.as_str()}, map! {"y" => old.as_str()}],
        &[],
    );
    let events: Vec<Event> = [("go/1", 1), ("x/1", 1), ("x/1", 1), ("x/2", 2), ("y", 3), ("z", 4)]
        .iter()
        .enumerate()
        .map(|(at, (tag, n))| event(at as u64 + 1, 0, tag, &map! {"n" => *n}))
        .collect();
    let report = replayed(&running, &before, &after, &events).await;
    for (path, expected) in [
        (&["events"][..], 6),
        (&["matched"], 5),
        (&["entries", "go/*", "unchanged_events"], 1),
        (&["entries", "x/1", "changed"], 2),
        (&["entries", "x/1", "added"], 2),
        (&["entries", "x/*", "lost"], 1),
        (&["entries", "y", "added"], 1),
        (&["added"], 3),
        (&["lost"], 1),
        (&["changed"], 2),
        (&["errors"], 0),
    ] {
        assert_eq!(number(&report, path), expected, "{path:?} {report}");
    }
    let example =
        report.get("entries").unwrap().get("x/*").unwrap().get("examples").unwrap().as_list().unwrap()[0].clone();
    assert_eq!(example.get("event").unwrap().get("seq"), Some(&4.into()));
    assert_eq!(example.get("before").unwrap().get("kwarg"), Some(&map! {"n" => 2}.into()));
    assert!(running.reactions.try_recv().is_err());
}

#[tokio::test]
async fn rules_run_in_the_time_of_the_events() {
    let directory = tempfile::tempdir().unwrap();
    let react = write(directory.path(), "react.sls", "a: {runner.test.arg: [{n: {{ count }}}]}");
    let rules = |count: u64| {
        let text = format!(
            "many:\n  rule.count:\n    - tag: 'fail/*'\n    - count: {count}\n    - within: 60s\n    - react: [{react}]\n"
        );
        write(directory.path(), &format!("rules{count}.sls"), &text)
    };
    let (three, two) = (rules(3), rules(2));
    let running = start(directory.path(), &list![map! {"never" => "/nonexistent/x.sls"}]);
    let (before, after) = (configured(list![], &[&three]), configured(list![], &[&two]));
    // Two within a minute, then one an hour later.
    let events = [(0, "fail/a"), (30, "fail/b"), (4000, "fail/c")];
    let events: Vec<Event> =
        events.iter().enumerate().map(|(at, (time, tag))| event(at as u64 + 1, *time, tag, &Map::new())).collect();
    let report = replayed(&running, &before, &after, &events).await;
    assert_eq!(number(&report, &["entries", "many", "added"]), 1, "{report}");
    assert_eq!(number(&report, &["lost"]), 0, "{report}");
    let report = replayed(&running, &after, &after, &events).await;
    assert_eq!(number(&report, &["entries", "many", "unchanged_events"]), 1, "{report}");
}

#[tokio::test]
async fn a_tree_takes_the_place_of_files() {
    let directory = tempfile::tempdir().unwrap();
    let served = write(directory.path(), "base/served.sls", NUMBER);
    let bound = write(directory.path(), "bound.sls", NUMBER);
    let tree = directory.path().join("tree");
    write(&tree, "served.sls", "a: {runner.test.arg: [{n: 7}]}");
    write(&tree, bound.trim_start_matches('/'), NUMBER);
    drop(served);
    let entries = list![map! {"a" => "salt://served.sls"}, map! {"b" => bound.as_str()}];
    let running = start(directory.path(), &entries);
    let after = Configured { tree: Some(tree), ..Configured::default() };
    let events = [event(1, 0, "a", &map! {"n" => 1}), event(2, 0, "b", &map! {"n" => 1})];
    let report = replayed(&running, &Configured::default(), &after, &events).await;
    assert_eq!(number(&report, &["entries", "a", "changed"]), 1, "{report}");
    assert_eq!(number(&report, &["entries", "b", "unchanged_events"]), 1, "{report}");
}

#[tokio::test]
async fn functions_that_may_change_something_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let calling = write(directory.path(), "calling.sls", "a: {runner.test.arg: [{n: {{ salt['test.fun']() }}}]}");
    let running = start(directory.path(), &list![map! {"never" => "/nonexistent/x.sls"}]);
    let (before, after) = (configured(list![], &[]), configured(list![map! {"a" => calling.as_str()}], &[]));
    let report = replayed(&running, &before, &after, &[event(1, 0, "a", &Map::new())]).await;
    assert_eq!(report.get("refused_functions"), Some(&list!["test.fun"]), "{report}");
    assert_eq!(number(&report, &["entries", "a", "errors"]), 1, "{report}");
}

#[tokio::test]
async fn without_full_rights_only_served_and_bound_files_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let bound = write(directory.path(), "bound.sls", NUMBER);
    let other = write(directory.path(), "other.sls", NUMBER);
    let running = start(directory.path(), &list![map! {"a" => bound.as_str()}]);
    let limits = ReplayLimits { any_file: false, ..LIMITS };
    let of_file = Configured { entries: Some(other.as_str().into()), ..Configured::default() };
    assert!(running.reactor.replay(&Configured::default(), &of_file, limits).await.is_err());
    for (file, allowed) in [(bound.as_str(), true), ("salt://x.sls", true), (&other, false), ("/etc/shadow", false)] {
        let by_entry = configured(list![map! {"b" => file}], &[]);
        let by_rule = configured(list![], &[file]);
        for configured in [&by_entry, &by_rule] {
            let result = running.reactor.replay(&Configured::default(), configured, limits).await;
            assert_eq!(result.is_ok(), allowed, "{file}");
        }
    }
}

#[tokio::test]
async fn a_replay_ends_with_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "a.sls", NUMBER);
    let running = start(directory.path(), &list![map! {"a" => file.as_str()}]);
    let limits = ReplayLimits { time: Duration::ZERO, ..LIMITS };
    let after = configured(list![map! {"b" => file.as_str()}], &[]);
    let mut replay = running.reactor.replay(&Configured::default(), &after, limits).await.unwrap();
    assert!(!replay.event(&event(1, 0, "a", &map! {"n" => 1})));
    assert_eq!(replay.finish().get("complete"), Some(&false.into()));
}
