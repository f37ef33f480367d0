//! Rules over time, with times passed in.

use std::collections::HashMap;

use brine_value::{Map, Value, list, map, msgpack};
use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000;
/// The start of the clock.
const BEGIN: u64 = 1_000_000 * SECOND;

fn parse(text: &str) -> (Rules, Vec<String>) {
    let located = brine_yaml::load_located(text).unwrap();
    let (rules, errors) = Rules::parse(&[("/r.sls".into(), located)]);
    (rules, errors.iter().map(ToString::to_string).collect())
}

pub(super) fn engine(text: &str, rows: &[(Vec<u8>, Vec<u8>)]) -> Engine {
    engine_at(text, rows, BEGIN, 0)
}

fn engine_at(text: &str, rows: &[(Vec<u8>, Vec<u8>)], now: u64, wall_offset: i64) -> Engine {
    let (rules, errors) = parse(text);
    assert!(errors.is_empty(), "{text}: {errors:?}");
    Engine::new(rules, rows, now, wall_offset)
}

/// Runs events through an engine: each has a second, a tag and data. An empty tag only advances the clock. Returns the
/// number of each event with the rules that it fired. `restarts` creates a new engine from the stored state before each
/// event.
fn run(text: &str, events: &[(u64, &str, Map)], restarts: bool) -> Vec<(usize, String, Map)> {
    let mut engine = engine(text, &[]);
    let mut rows: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut fired = Vec::new();
    for (position, (second, tag, data)) in events.iter().enumerate() {
        let time = BEGIN + second * SECOND;
        let seq = position as u64 + 1;
        let firings = if tag.is_empty() {
            engine.advance(time)
        } else {
            engine.event(Occurrence { seq, tag, data, time }, &|name| (name == "web").then_some(20))
        };
        fired.extend(firings.into_iter().map(|firing| (position, firing.rule, firing.context)));
        if restarts {
            for (key, value) in engine.changes() {
                match value {
                    Some(value) => _ = rows.insert(key, value),
                    None => _ = rows.remove(&key),
                }
            }
            let pairs: Vec<_> = rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            engine = engine_at(text, &pairs, time, 0);
        }
    }
    fired
}

fn fired(text: &str, events: &[(u64, &str, Map)]) -> Vec<usize> {
    let positions =
        |restarts| run(text, events, restarts).into_iter().map(|(position, ..)| position).collect::<Vec<_>>();
    let without = positions(false);
    assert_eq!(positions(true), without, "a restart changes what fires: {text}");
    without
}

#[test]
fn a_count_of_events_within_a_time_fires() {
    let rule = "x: {rule.count: [{tag: 'a/*'}, {where: {type: 7}}, {by: host}, {count: 3}, {within: 60}, {react: /x}]}";
    let at = |second, host: &str| (second, "a/b", map! {"type" => 7, "host" => host});
    for (events, positions) in [
        (vec![at(0, "h"), at(10, "h"), at(59, "h")], vec![2]),
        (vec![at(0, "h"), at(10, "h"), at(60, "h")], vec![]),
        (vec![at(0, "h"), at(10, "i"), at(20, "h"), at(30, "i"), at(40, "h")], vec![4]),
        // A burst fires once, and then the count restarts.
        ((0..7).map(|n| at(n, "h")).collect(), vec![2, 5]),
        (
            vec![
                at(0, "h"),
                (1, "a/b", map! {"type" => 8, "host" => "h"}),
                (2, "other", map! {"type" => 7, "host" => "h"}),
            ],
            vec![],
        ),
        (vec![(0, "a/b", map! {"type" => 7}), (1, "a/b", map! {"type" => 7}), (2, "a/b", map! {"type" => 7})], vec![]),
    ] {
        assert_eq!(fired(rule, &events), positions, "{events:?}");
    }
    let context = &run(rule, &[at(0, "h"), at(1, "h"), at(2, "h")], false)[0].2;
    assert_eq!((context.get("key"), context.get("count")), (Some(&"h".into()), Some(&3.into())));
    assert_eq!(context.get("events").unwrap().as_list().unwrap().len(), 3);
}

#[test]
fn a_missing_event_fires_a_timer() {
    let rule = "x: {rule.absent: [{after: 'job/*/new'}, {where: {fun: system.reboot}}, {each: minions}, \
                {expect: 'salt/minion/*/start'}, {by: id}, {within: 10m}, {react: /x}]}";
    let reboot = |second| (second, "job/1/new", map! {"fun" => "system.reboot", "minions" => list!["m1", "m2"]});
    let start = |second, id: &str| (second, "salt/minion/x/start", map! {"id" => id});
    let clock = |second| (second, "", Map::new());
    for (events, positions) in [
        (vec![reboot(0), start(30, "m1"), start(40, "m2"), clock(10_000)], vec![]),
        (vec![reboot(0), start(30, "m1"), clock(599), clock(600), clock(10_000)], vec![3]),
        (vec![reboot(0), clock(600)], vec![1, 1]),
        // The first event is repeated before the timer is due: the timer restarts.
        (vec![reboot(0), start(30, "m1"), reboot(300), start(301, "m1"), clock(600), clock(900)], vec![5]),
        // The expected event is too late, and the clock was not advanced in between.
        (vec![reboot(0), start(30, "m1"), start(601, "m2")], vec![2]),
        (vec![(0, "job/1/new", map! {"fun" => "test.ping", "minions" => list!["m1"]}), clock(10_000)], vec![]),
    ] {
        assert_eq!(fired(rule, &events), positions, "{events:?}");
    }
    let fired = run(rule, &[reboot(0), start(1, "m1"), clock(600)], false);
    assert_eq!(fired[0].2.get("key"), Some(&"m2".into()));
}

#[test]
fn events_in_sequence_fire() {
    let rule = "x: {rule.sequence: [{tags: ['a/*', {tag: 'b/*', where: {ok: false}}, 'c/*']}, {by: id}, {within: 100}, {react: /x}]}";
    let at = |second, tag: &'static str, id: &str| (second, tag, map! {"id" => id, "ok" => false});
    for (events, positions) in [
        (vec![at(0, "a/", "m"), at(1, "b/", "m"), at(2, "c/", "m")], vec![2]),
        (vec![at(0, "a/", "m"), at(1, "b/", "n"), at(2, "c/", "m")], vec![]),
        (vec![at(0, "a/", "m"), at(1, "c/", "m"), at(2, "b/", "m"), at(3, "c/", "m")], vec![3]),
        (vec![at(0, "a/", "m"), at(1, "b/", "m"), at(100, "c/", "m")], vec![]),
        (vec![at(0, "a/", "m"), at(90, "a/", "m"), at(95, "b/", "m"), at(120, "c/", "m")], vec![3]),
        (vec![at(0, "a/", "m"), (1, "b/", map! {"id" => "m", "ok" => true}), at(2, "c/", "m")], vec![]),
    ] {
        assert_eq!(fired(rule, &events), positions, "{events:?}");
    }
}

#[test]
fn a_share_of_members_fires() {
    let rule = "x: {rule.share: [{tag: 'ret/*'}, {where: {success: false}}, {of: {nodegroup: web}}, {above: 10%}, {within: 1h}, {react: /x}]}";
    let failed = |second, id: &str| (second, "ret/1", map! {"id" => id, "success" => false});
    for (events, positions) in [
        // Two of twenty are ten per cent, which does not exceed the share.
        (vec![failed(0, "a"), failed(1, "b"), failed(2, "b"), failed(3, "a")], vec![]),
        (vec![failed(0, "a"), failed(1, "b"), failed(2, "c")], vec![2]),
        (vec![failed(0, "a"), failed(1, "b"), failed(3600, "c")], vec![]),
        (vec![failed(0, "a"), failed(1, "b"), (2, "ret/1", map! {"id" => "c", "success" => true})], vec![]),
    ] {
        assert_eq!(fired(rule, &events), positions, "{events:?}");
    }
    let counted = rule.replace("nodegroup: web", "count: 2").replace("10%", "0.5");
    assert_eq!(fired(&counted, &[failed(0, "a"), failed(1, "b")]), [1]);
    assert!(fired(&rule.replace("web", "unknown"), &[failed(0, "a"), failed(1, "b"), failed(2, "c")]).is_empty());
}

#[test]
fn registers_fire_when_their_test_becomes_true() {
    let rules = "load: {register.mean: [{tag: 'load/*'}, {by: id}, {value: 'data:1m'}, {window: 60}]}\n\
                 high: {rule.when: [{register: load}, {above: 8}, {react: /x}]}";
    let at = |second, load: f64| (second, "load/x", map! {"id" => "m", "data" => map! {"1m" => load}});
    let events = [at(0, 4.0), at(10, 20.0), at(20, 30.0), at(80, 1.0), at(90, 40.0)];
    // At 20 s it is still above, at 80 s it is not, at 90 s it is again.
    assert_eq!(fired(rules, &events), [1, 4]);
    let context = &run(rules, &events, false)[0].2;
    assert_eq!(
        (context.get("value"), context.get("registers")),
        (Some(&12.0.into()), Some(&map! {"load" => 12.0}.into()))
    );
    for (function, value) in [
        ("count", Value::from(3)),
        ("sum", 9.0.into()),
        ("mean", 3.0.into()),
        ("min", 2.0.into()),
        ("max", 4.0.into()),
        ("last", 3.into()),
        ("list", list![4, 2, 3]),
    ] {
        let text = format!("r: {{register.{function}: [{{tag: t}}, {{value: n}}]}}");
        let mut engine = engine(&text, &[]);
        for (index, n) in [4, 2, 3].into_iter().enumerate() {
            let data = map! {"n" => n};
            engine.event(Occurrence { seq: index as u64 + 1, tag: "t", data: &data, time: BEGIN }, &|_| None);
        }
        assert_eq!(engine.registers(None), map! {"r" => value.clone()}, "{function}");
        assert_eq!(engine.registers(Some("any")), map! {"r" => value}, "{function}");
    }
}

#[test]
fn an_interval_fires_repeatedly() {
    let rule = "x: {timer.every: [{seconds: 100}, {react: /x}]}";
    let clock = |second| (second, "", Map::new());
    let events = [clock(99), clock(100), clock(101), clock(200), clock(555), clock(599), clock(600)];
    assert_eq!(fired(rule, &events), [1, 3, 4, 6]);
}

#[test]
fn events_before_a_restart_are_skipped_and_changed_definitions_start_anew() {
    let rule = "x: {rule.count: [{tag: a}, {count: 2}, {within: 60}, {react: /x}]}";
    let mut first = engine(rule, &[]);
    let data = Map::new();
    assert!(first.event(Occurrence { seq: 5, tag: "a", data: &data, time: BEGIN }, &|_| None).is_empty());
    let rows: Vec<_> = first.changes().into_iter().map(|(key, value)| (key, value.unwrap())).collect();
    assert!(first.changes().is_empty());
    let mut again = engine(rule, &rows);
    assert!(again.event(Occurrence { seq: 5, tag: "a", data: &data, time: BEGIN }, &|_| None).is_empty());
    assert_eq!(again.event(Occurrence { seq: 6, tag: "a", data: &data, time: BEGIN }, &|_| None).len(), 1);
    let mut other = engine(&rule.replace("60", "61"), &rows);
    assert!(other.changes().iter().any(|(key, value)| key.starts_with(b"x\0") && value.is_none()));
    assert!(other.event(Occurrence { seq: 6, tag: "a", data: &data, time: BEGIN }, &|_| None).is_empty());
}

#[test]
fn an_engine_adopts_a_snapshot_of_another_bus() {
    let rule = "x: {rule.count: [{tag: a}, {by: k}, {count: 3}, {within: 60}, {react: /x}]}\n\
                y: {rule.absent: [{after: b}, {expect: c}, {within: 100}, {react: /x}]}";
    let (mut first, mut second) = (engine(rule, &[]), engine_at(rule, &[], BEGIN + SECOND, -5 * SECOND.cast_signed()));
    let data = map! {"k" => "h"};
    let event = |seq, tag, time| Occurrence { seq, tag, data: &data, time };
    for (seq, tag) in [(700, "a"), (701, "a"), (702, "b")] {
        assert!(first.event(event(seq, tag, BEGIN + 10 * SECOND), &|_| None).is_empty());
    }
    let stale = map! {"k" => "stale"};
    second.event(Occurrence { seq: 3, tag: "a", data: &stale, time: BEGIN + SECOND }, &|_| None);
    second.changes();
    second.adopt(&first.snapshot(), BEGIN + 20 * SECOND);
    // The second bus has lower sequence numbers, and its bus time is five seconds behind.
    assert_eq!(second.event(event(4, "a", BEGIN + 21 * SECOND), &|_| None).len(), 1);
    assert_eq!(second.next_due(), Some(BEGIN + 115 * SECOND));
    let changes = second.changes();
    assert!(changes.iter().any(|(key, value)| key == b"x\0stale" && value.is_none()), "{changes:?}");
    assert!(changes.iter().any(|(key, value)| key.starts_with(b"y\0") && value.is_some()), "{changes:?}");
}

#[test]
fn a_restart_after_a_jump_of_the_wall_clock_keeps_the_time_left_of_a_timer() {
    const HOUR: i64 = 3600 * SECOND.cast_signed();
    let rule = "x: {rule.absent: [{after: a}, {expect: b}, {within: 100}, {react: /x}]}";
    let data = Map::new();
    // The jumps of the wall clock before the restart and while the process was down, and the time of the timer after
    // the start. 30 s pass between the two.
    for (before, away, due) in [
        (0, 0, 70),
        (HOUR, 0, 70),
        (-HOUR, 0, 70),
        (25 * HOUR, 0, 70),
        // A jump while the process is down cannot be detected: the timer never has more time left than its period.
        (0, -HOUR, 100),
        (0, 25 * HOUR, 0),
    ] {
        let mut first = engine_at(rule, &[], BEGIN, 0);
        first.event(Occurrence { seq: 1, tag: "a", data: &data, time: BEGIN }, &|_| None);
        let mut rows: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        rows.extend(first.changes().into_iter().filter_map(|(key, value)| Some((key, value?))));
        first.set_wall_offset(before);
        rows.extend(first.changes().into_iter().filter_map(|(key, value)| Some((key, value?))));
        let now = (BEGIN + 30 * SECOND).saturating_add_signed(before + away);
        let mut again = engine_at(rule, &rows.into_iter().collect::<Vec<_>>(), now, 0);
        assert_eq!(again.next_due().unwrap().saturating_sub(now), due * SECOND, "{before} {away}");
        // Moved state is written with the new wall offset.
        let moved = again.changes().into_iter().any(|(key, _)| key.starts_with(b"x\0"));
        assert_eq!(moved, before != 0, "{before} {away}");
        assert_eq!((again.advance(now + due * SECOND).len(), again.advance(u64::MAX / 2).len()), (1, 0));
    }
}

#[test]
fn events_kept_from_before_a_jump_are_never_later_than_now() {
    let rule = "x: {rule.count: [{tag: a}, {count: 3}, {within: 60}, {react: /x}]}";
    let data = Map::new();
    let mut first = engine_at(rule, &[], BEGIN, 0);
    for seq in 1..3 {
        first.event(Occurrence { seq, tag: "a", data: &data, time: BEGIN }, &|_| None);
    }
    let rows: Vec<_> = first.changes().into_iter().map(|(key, value)| (key, value.unwrap())).collect();
    // The clock was set back an hour while the process was down: the two events leave the window all the same.
    let now = BEGIN - 3600 * SECOND;
    let mut again = engine_at(rule, &rows, now, 0);
    assert!(again.event(Occurrence { seq: 3, tag: "a", data: &data, time: now + 61 * SECOND }, &|_| None).is_empty());
}

#[test]
fn invalid_rules_are_reported_and_the_others_are_used() {
    for (text, message) in [
        ("- a", "1: expected a mapping of ids to rules, got list"),
        ("x: 5", "1: the body of 'x' is invalid: expected a function with its arguments below it: "),
        ("\nx:\n  rule.often: [{react: /x}]", "3: 'rule.often' in 'x' is not a rule: expected one of rule.count, "),
        ("x: {rule.count: [{tag: a}, {count: 2}, {within: 60}]}", "1: 'x' needs 'react': the path of an SLS file"),
        ("x: {rule.count: [{tag: a}, {count: 2}, {react: /x}]}", "1: 'x' needs 'within'"),
        (
            "x: {rule.count: [{tag: a}, {count: 0}, {within: 1}, {react: /x}]}",
            "1: 'count' of 'x': expected an integer above 0, got '0'",
        ),
        (
            "x: {rule.count: [{tag: 5}, {count: 1}, {within: 1}, {react: /x}]}",
            "1: 'tag' of 'x': expected a string or a list of strings",
        ),
        (
            "x: {rule.count: [{tag: a}, {count: 1}, {within: soon}, {react: /x}]}",
            "1: 'within' of 'x': duration 'soon' is invalid",
        ),
        (
            "x: {rule.count: [{tag: a}, {count: 1}, {within: 1}, {whit: 2}, {react: /x}]}",
            "1: 'whit' is not an argument of rule.count",
        ),
        (
            "x: {rule.count: [{tag: a}, {where: 1}, {count: 1}, {within: 1}, {react: /x}]}",
            "1: 'where' of 'x': expected a mapping",
        ),
        (
            "x: {rule.sequence: [{tags: [a]}, {within: 1}, {react: /x}]}",
            "1: 'tags' of 'x': expected a list of two or more",
        ),
        (
            "x: {rule.share: [{tag: a}, {of: {count: 5}}, {above: 120%}, {within: 1}, {react: /x}]}",
            "1: 'above' of 'x': expected a share",
        ),
        ("x: {rule.when: [{register: r}, {above: 1}, {react: /x}]}", "1: 'register' of 'x': unknown register 'r'"),
        ("x: {register.mean: [{tag: a}]}", "1: 'x' needs 'value': the path of the collected value"),
    ] {
        let (_, errors) = parse(text);
        assert_eq!(errors.len(), 1, "{text}");
        assert!(errors[0].starts_with(&format!("/r.sls:{message}")), "{text}: {errors:?}");
    }
    let (rules, errors) = parse(
        "x: 5\ny: {timer.every: [{seconds: 1}, {react: /x}]}\ny: {timer.every: []}"
            .split("\ny: {timer.every: []")
            .next()
            .unwrap(),
    );
    assert_eq!((rules.all().len(), errors.len()), (1, 1));
}

proptest! {
    /// Compares with a count that evaluates all events anew each time.
    #[test]
    fn counts_match_a_naive_count_with_and_without_restarts(steps in prop::collection::vec((0u64..20, 0u8..3), 0..60)) {
        let rule = "x: {rule.count: [{tag: a}, {by: k}, {count: 3}, {within: 30}, {react: /x}]}";
        let mut second = 0;
        let mut events = Vec::new();
        let (mut expected, mut view): (Vec<usize>, HashMap<u8, Vec<u64>>) = (Vec::new(), HashMap::new());
        for (position, (pause, key)) in steps.into_iter().enumerate() {
            second += pause;
            events.push((second, "a", map! {"k" => i64::from(key)}));
            let of_key = view.entry(key).or_default();
            of_key.push(second);
            if of_key.iter().filter(|time| **time + 30 > second).count() >= 3 {
                expected.push(position);
                of_key.clear();
            }
        }
        prop_assert_eq!(fired(rule, &events), expected);
    }

    #[test]
    fn stored_state_is_parsed_or_refused(packed: Vec<u8>) {
        if let Ok(value) = msgpack::unpack(&packed) {
            let _ = key_state::KeyState::from_value(&value);
        }
        let rule = "x: {rule.count: [{tag: a}, {count: 2}, {within: 60}, {react: /x}]}";
        let _ = engine(rule, &[(b"x\0".to_vec(), packed)]);
    }
}
