use super::*;
use crate::entries::Entries;
use crate::entries::Entry;
use brine_value::{list, map};

const SECOND: u64 = 1_000_000;

fn entry(options: Map) -> Arc<Entry> {
    let mut opts = map! {"reactor" => list![map! {"a/*" => list!["/x.sls"]}]};
    opts.extend(options);
    Entries::from_opts(&opts).unwrap().matching("a/b").remove(0)
}

fn verdicts(options: Map, events: &[(u64, &str)]) -> Vec<Verdict> {
    let entry = entry(options);
    let limits = entry.limits.clone().unwrap();
    let mut limiter = Limiter::default();
    let judge = |(time, id): &(u64, &str)| {
        let key = limits.key("a/b", &map! {"id" => *id, "deep" => map! {"er" => "same", "who" => *id}});
        limiter.judge(&entry.pattern, &limits, &key, time * SECOND)
    };
    events.iter().map(judge).collect()
}

#[test]
fn reactions_are_limited_for_each_id() {
    use Verdict::{At, Never, Now};
    let rate = |until: u64| Never { option: "reactor_rate_limit", until: until * SECOND };
    let cool = |until: u64| Never { option: "reactor_cooldown", until: until * SECOND };
    let events = [(100, "x"), (101, "x"), (102, "y"), (103, "x"), (111, "x"), (112, "x"), (160, "x")];
    for (options, expected) in [
        (map! {"reactor_rate_limit" => map! {"a/*" => "2/10s"}}, [Now, Now, Now, rate(110), Now, Now, Now]),
        (
            map! {"reactor_rate_limit" => map! {"a/*" => map! {"count" => 3, "within" => "1m", "by" => "deep:er"}}},
            [Now, Now, Now, rate(160), rate(160), rate(160), Now],
        ),
        (
            map! {"reactor_rate_limit" => map! {"a/*" => map! {"rate" => "1/m", "by" => "deep.who"}}},
            [Now, rate(160), Now, rate(160), rate(160), rate(160), Now],
        ),
        (
            map! {"reactor_rate_limit" => map! {"a/*" => "1/m"}},
            [Now, rate(160), Now, rate(160), rate(160), rate(160), Now],
        ),
        (map! {"reactor_cooldown" => map! {"a/*" => 11}}, [Now, cool(111), Now, cool(111), Now, cool(122), Now]),
        (
            map! {"reactor_cooldown" => map! {"a/*" => map! {"within" => 11, "by" => "tag"}}},
            [Now, cool(111), cool(111), cool(111), Now, cool(122), Now],
        ),
        (map! {"reactor_debounce" => map! {"a/*" => 5}}, events.map(|(time, _)| At((time + 5) * SECOND))),
    ] {
        assert_eq!(verdicts(options.clone(), &events), expected, "{options:?}");
    }
}

#[test]
fn changing_ids_do_not_evade_the_limits_of_a_minion() {
    let options = map! {"reactor_rate_limit" => map! {"a/*" => "2/1m"}};
    let entry = entry(options);
    let limits = entry.limits.clone().unwrap();
    let mut limiter = Limiter::default();
    let mut passed = |from: Option<&str>, count: usize| {
        let judged = (0..count).map(|n| {
            let mut data = map! {"id" => format!("made-up-{n}")};
            data.extend(from.map(|from| (FROM.into(), from.into())));
            limiter.judge(&entry.pattern, &limits, &limits.key("a/b", &data), SECOND)
        });
        judged.filter(|verdict| *verdict == Verdict::Now).count()
    };
    assert_eq!((passed(Some("web1"), 40), passed(Some("web2"), 40), passed(None, 40)), (2, 2, 40));
}

#[test]
fn jumps_of_the_wall_clock_neither_lengthen_nor_shorten_limits() {
    use crate::clock::tests::{JUMPS, ManualClock};
    for (option, limit) in [("reactor_cooldown", "60"), ("reactor_rate_limit", "1/60s")] {
        for jump in JUMPS {
            let entry = entry(map! {option => map! {"a/*" => limit}});
            let limits = entry.limits.clone().unwrap();
            let (hands, mut limiter) = (ManualClock::new(), Limiter::default());
            let clock = hands.clock();
            let mut passes = || limiter.judge(&entry.pattern, &limits, "x", clock.now()) == Verdict::Now;
            assert!(passes());
            hands.jump(jump);
            hands.pass(59);
            assert!(!passes(), "{option}: {jump}");
            hands.pass(1);
            assert!(passes(), "{option}: {jump}");
        }
    }
}

#[test]
fn limits_of_removed_entries_have_no_effect() {
    for option in ["reactor_cooldown", "reactor_debounce"] {
        for (pattern, is_limited) in [("b/*", false), ("a/*", true)] {
            let entry = entry(map! {option => map! {pattern => 5}});
            assert_eq!(entry.limits.is_some(), is_limited, "{option} {pattern}");
        }
    }
}

#[test]
fn invalid_limits_are_reported() {
    for (options, message) in [
        (
            map! {"reactor_cooldown" => 5},
            "'reactor_cooldown': expected a mapping of an entry's pattern to its limit, got int",
        ),
        // Also for a pattern without an entry.
        (
            map! {"reactor_cooldown" => map! {"b/*" => "soon"}},
            "'reactor_cooldown': 'b/*': duration 'soon' is invalid: expected seconds, or 30s, 10m, 2h, 1d",
        ),
        (
            map! {"reactor_rate_limit" => map! {"a/*" => "often"}},
            "'reactor_rate_limit': 'a/*': expected 10/1m, or {count: 10, within: 1m}",
        ),
        (
            map! {"reactor_debounce" => map! {"a/*" => "soon"}},
            "'reactor_debounce': 'a/*': duration 'soon' is invalid: expected seconds, or 30s, 10m, 2h, 1d",
        ),
    ] {
        let mut opts = map! {"reactor" => list![map! {"a/*" => list!["/x.sls"]}]};
        opts.extend(options);
        assert_eq!(Entries::from_opts(&opts).unwrap_err().to_string(), message);
    }
}
