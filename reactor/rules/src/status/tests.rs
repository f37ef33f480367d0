use brine_value::{Map, map};

use super::*;
use crate::tests::engine;

const SECOND: u64 = 1_000_000;

#[test]
fn status_explains_why_a_rule_has_not_fired() {
    let text = "
logins:
  rule.count: [{tag: login/*}, {where: {ok: false}}, {by: host}, {count: 3}, {within: 60}, {react: /x.sls}]
back:
  rule.absent: [{after: reboot}, {expect: start}, {by: id}, {within: 10m}, {react: /x.sls}]
steps:
  rule.sequence: [{tags: [one, two, three]}, {within: 60}, {react: /x.sls}]
share:
  rule.share: [{tag: failed}, {by: id}, {of: {count: 10}}, {above: 20%}, {within: 60}, {react: /x.sls}]
load:
  register.mean: [{tag: load}, {value: n}]
";
    let mut engine = engine(text, &[]);
    let nobody = |_: &str| None;
    let (mut seq, now) = (0, 1000 * SECOND);
    for (time, tag, data, expected) in [
        (
            990,
            "login/a",
            map! {"ok" => true, "host" => "h"},
            "logins: a condition does not hold: 'ok' is True, expected False",
        ),
        (990, "login/a", map! {"host" => "h"}, "logins: a condition does not hold: 'ok' is missing, expected False"),
        (990, "login/a", map! {"ok" => false}, "logins: the event lacks 'host' (by)"),
        (
            900,
            "login/a",
            map! {"ok" => false, "host" => "h"},
            "logins: 0 of 3 events within 60 s for 'h' by now; this event is older and counts no more",
        ),
        (990, "login/a", map! {"ok" => false, "host" => "h"}, "logins: 1 of 3 events within 60 s for 'h' by now"),
        (990, "reboot", map! {"id" => "web1"}, "back: 1 timers wait for the expected event: see reactor.timers"),
        (
            990,
            "start",
            map! {"id" => "web1"},
            "back: it is the expected event: a timer that ran for 'web1' was stopped",
        ),
        (990, "one", map! {}, "steps: step 1 of 3 is reached by now"),
        (990, "three", map! {}, "steps: step 1 of 3 is reached by now"),
        (990, "failed", map! {"id" => "web1"}, "share: 1 members by now, more than 20 % of 10 needed"),
        (990, "load", map! {"n" => 1}, "load: it collects a value; rules about it fire when their test becomes true"),
    ] {
        seq += 1;
        let data: Map = data;
        let occurrence = Occurrence { seq, tag, data: &data, time: time * SECOND };
        assert_eq!(engine.event(occurrence, &nobody), [], "{tag}");
        let status: Vec<_> =
            engine.status(occurrence, now).into_iter().map(|(id, text)| format!("{id}: {text}")).collect();
        assert_eq!(status, [expected], "{tag} {data:?}");
    }
    let data = Map::new();
    let other = Occurrence { seq: seq + 1, tag: "other", data: &data, time: now };
    assert_eq!(engine.status(other, now), []);
}
