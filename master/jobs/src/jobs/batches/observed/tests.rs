use brine_value::{list, map};

use super::*;

#[test]
fn a_batch_is_known_from_its_events() {
    let observed = Observed::default();
    let state = map! {
        "jid" => "1", "fun" => "test.ping", "all_minions" => list!["a", "b"], "done" => map! {"a" => map! {}},
        "active" => map! {"b" => 1.0}, "pending" => list![], "failed" => map! {}, "driver" => "cli",
    };
    let take = |jid: &str, word: &str, body: Map| {
        observed.take(&Event::from_map(&format!("salt/batch/{jid}/{word}"), &body).unwrap());
    };
    take("1", "new", map! {"jid" => "1", "state" => state.clone()});
    take("2", "new", map! {"jid" => "2", "total_minions" => 3});
    let active = observed.active();
    assert_eq!(active.len(), 1);
    let summary = active[0].summary();
    for (name, is) in [("total", 2), ("completed", 1), ("active", 1), ("pending", 0), ("failed", 0)] {
        assert_eq!(summary.get(name), Some(&is.into()), "{name}");
    }
    let kill = active[0].kill_request("root");
    assert_eq!((kill.tgt, kill.arg), (list!["b"], vec!["1".into()]));
    take("1", "complete", map! {"jid" => "1", "state" => state.clone()});
    take("1", "progress", map! {"jid" => "1", "state" => state});
    assert!(observed.active().is_empty() && observed.active_one("1").is_none() && observed.get("1").is_some());
}

#[test]
fn the_number_of_batches_is_bounded() {
    let observed = Observed::default();
    for n in 0..CAPACITY + 10 {
        let body = map! {"state" => map! {"jid" => n}};
        observed.take(&Event::from_map(&format!("salt/batch/{n}/new"), &body).unwrap());
    }
    assert_eq!((observed.active().len(), observed.get("9").is_none()), (CAPACITY, true));
}
