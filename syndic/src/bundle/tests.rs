use brine_value::list;

use super::*;

const JID: &str = "20261124083000000000";

fn event(tag: &str, data: Map) -> Event {
    Event::from_map(tag, &data).unwrap()
}

#[test]
fn the_mode_selects_forwarded_events() {
    let own = map! {"return" => 1, "master_id" => "here", "retcode" => 0};
    for (tag, data, sync, cluster) in [
        ("salt/minion/web1/start", map! {"id" => "web1"}, true, false),
        ("salt/auth", map! {"act" => "accept"}, true, false),
        ("some/thing", map! {"retcode" => 0}, false, false),
        ("salt/job/20261124083000000000/new", map! {"minions" => list!["web1"]}, true, true),
        ("salt/job/20261124083000000000/ret/web1", map! {"return" => 1, "retcode" => 0}, true, true),
        ("salt/job/20261124083000000000/ret/web1", own, true, false),
        ("salt/job/20261124083000000000/prog/web1/0", map! {"data" => map! {}}, true, false),
        ("syndic/s2/salt/job/20261124083000000000/new", map! {"minions" => list![]}, true, true),
    ] {
        let event = event(tag, data);
        let passed = [Mode::Sync, Mode::Cluster].map(|mode| item(&event, mode, Some("here")).is_some());
        assert_eq!(passed, [sync, cluster], "{tag}");
    }
}

#[test]
fn a_new_job_lists_its_further_syndics() {
    let tag = format!("salt/job/{JID}/new");
    let named = |data| match item(&event(&tag, data), Mode::Sync, None) {
        Some(Item::Event(_, data)) => data.get("syndics").cloned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(named(map! {"minions" => list!["a"]}), Some(list![]));
    assert_eq!(named(map! {"minions" => list![], "syndics" => list!["s2"]}), Some(list!["s2"]));
}

#[test]
fn returns_of_one_job_are_one_bundle() {
    let of = |id: &str| {
        let data = map! {"return" => id, "retcode" => 0, "success" => true, "fun" => "test.ping", "cmd" => "_return", "_stamp" => "x"};
        match item(&event(&format!("salt/job/{JID}/ret/{id}"), data), Mode::Sync, None) {
            Some(Item::Return(one)) => *one,
            other => panic!("{other:?}"),
        }
    };
    let mut loads = Loads::default();
    let new = map! {"fun" => "test.ping", "tgt" => "*", "minions" => list!["a"], "extra" => 1};
    loads.record(&item(&event(&format!("salt/job/{JID}/new"), new), Mode::Sync, None).unwrap());
    let load = returns_load("s1", vec![of("a"), of("b")], &loads);
    let expected = map! {
        "cmd" => "_syndic_return",
        "id" => "s1",
        "ack" => true,
        "load" => list![map! {
            "id" => "s1",
            "jid" => JID,
            "fun" => "test.ping",
            "load" => map! {"fun" => "test.ping", "tgt" => "*"},
            "return" => map! {
                "a" => map! {"return" => "a", "retcode" => 0, "success" => true},
                "b" => map! {"return" => "b", "retcode" => 0, "success" => true},
            },
        }],
    };
    assert_eq!(load, expected);
}

#[test]
fn loads_are_bounded() {
    let mut loads = Loads::default();
    for number in 0..MAX_LOADS + 5 {
        let tag = format!("salt/job/2026112408{number:010}/new");
        loads.record(&Item::Event(tag, Map::new()));
    }
    assert_eq!((loads.by_jid.len(), loads.order.len()), (MAX_LOADS, MAX_LOADS));
}
