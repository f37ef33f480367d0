use brine_value::{Map, Value, list, map};

use super::{Groups, Outcome, Plan, digest_of};

const JID: &str = "20261130000000000001";

fn state(result: impl Into<Value>, comment: &str, changes: Map, number: i64) -> Value {
    let (duration, time) = (0.1 + number as f64, format!("10:00:0{number}.000001"));
    map! {
        "result" => result.into(), "comment" => comment, "changes" => changes, "__run_num__" => number,
        "duration" => duration, "start_time" => time, "__sls__" => "web", "__id__" => "a", "name" => "/etc/a",
    }
    .into()
}

fn file(diff: &str) -> Value {
    map! {"file_|-a_|-/etc/a_|-managed" => state(Value::Nil, "The file /etc/a is set to be changed", map! {"diff" => diff}, 0)}
        .into()
}

#[test]
fn what_differs_from_run_to_run_does_not_change_the_digest() {
    let of = |jid: &str, comment: &str, number: i64, changes: Map| {
        let run: Value = map! {"cmd_|-b_|-b_|-run" => state(Value::Nil, comment, changes, number)}.into();
        digest_of(&run, jid).unwrap()
    };
    let first = of(JID, "job 20261130000000000001 writes /srv/__salt.tmp.abc123", 0, map! {"a" => 1, "b" => 2});
    let again = of(
        "20261130000000000002",
        "job 20261130000000000002 writes /srv/__salt.tmp.xyz789",
        5,
        map! {"b" => 2, "a" => 1},
    );
    assert_eq!(first, again);
    for (comment, changes) in [
        ("job 20261130000000000001 writes /srv/__salt.tmp.abc123", map! {"a" => 1, "b" => 3}),
        ("job 20261130000000000001 writes /srv/other", map! {"a" => 1, "b" => 2}),
        ("job 20261130000000000003 writes /srv/__salt.tmp.abc123", map! {"a" => 1, "b" => 2}),
    ] {
        assert_ne!(first, of(JID, comment, 0, changes), "{comment}");
    }
}

#[test]
fn texts_cannot_be_shifted_between_fields() {
    let of = |one: &str, other: &str| {
        let run: Value = map! {"cmd_|-b_|-b_|-run" => state(Value::Nil, one, map! {other => ""}, 0)}.into();
        digest_of(&run, JID).unwrap()
    };
    assert_ne!(of("ab", "c"), of("a", "bc"));
}

#[test]
fn the_order_of_changes_counts_and_states_without_changes_do_not() {
    let run = |numbers: [i64; 2], more: bool| {
        let mut run = map! {
            "cmd_|-a_|-a_|-run" => state(Value::Nil, "a", map! {}, numbers[0]),
            "cmd_|-b_|-b_|-run" => state(Value::Nil, "b", map! {}, numbers[1]),
        };
        if more {
            run.insert("test_|-c_|-c_|-nop".into(), state(true, "", map! {}, 7));
        }
        digest_of(&run.into(), JID).unwrap()
    };
    assert_eq!(run([0, 1], false), run([3, 4], true));
    assert_ne!(run([0, 1], false), run([1, 0], false));
}

#[test]
fn failures_are_not_planned() {
    for (returned, expected) in [
        (list!["Rendering SLS 'base:x' failed"], "Rendering SLS 'base:x' failed"),
        (Value::from("Pillar failed"), "Pillar failed"),
        (Value::from("VALUE_TRIMMED"), "raise max_event_size"),
        (
            map! {"file_|-a_|-a_|-managed" => state(false, "no source", map! {}, 0)}.into(),
            "a (file.managed): no source",
        ),
        (file("VALUE_TRIMMED"), "raise max_event_size"),
        (map! {"a" => 1}.into(), "a"),
        (Value::map(), "{}"),
    ] {
        let Outcome::Failed(messages) = Outcome::read(&returned, JID) else { panic!("{returned}") };
        assert!(messages.iter().any(|message| message.contains(expected)), "{messages:?}");
    }
}

#[test]
fn equal_changes_are_one_group_and_unusual_ones_are_first() {
    let mut groups = Groups::default();
    for number in 0..5 {
        groups.add(&format!("web{number}"), &file("-a\n+b"), JID);
    }
    groups.add("odd", &file("-a\n+c"), JID);
    groups.add("same", &map! {"test_|-c_|-c_|-nop" => state(true, "", map! {}, 0)}.into(), JID);
    groups.add("bad", &Value::from("no pillar"), JID);
    groups.add_silent("gone");
    let value = groups.to_value();
    let minions = |group: usize| value["groups"].as_list().unwrap()[group].get("minions").unwrap().clone();
    assert_eq!(minions(0), list!["odd"]);
    assert_eq!(minions(1), list!["web0", "web1", "web2", "web3", "web4"]);
    assert_eq!(value["failed"], list![map! {"minions" => list!["bad"], "errors" => list!["no pillar"]}]);
    assert_eq!((&value["silent"], &value["unchanged"]), (&list!["gone"], &list!["same"]));
    assert!(groups.has_failures());
}

#[test]
fn a_plan_names_its_job_and_invalid_ones_are_refused() {
    let mut groups = Groups::default();
    groups.add("web", &file("-a\n+b"), JID);
    let job = map! {"fun" => "state.apply", "arg" => list!["web"], "jid" => JID, "user" => "root"};
    let plan = Plan::new(job.clone(), groups.to_value()).unwrap();
    let digest = digest_of(&file("-a\n+b"), "").unwrap();
    assert_eq!(plan.minions(), ["web"]);
    let expected = vec![
        Value::from("state.apply"),
        map! {"digests" => map! {digest.as_str() => list!["web"]}}.into(),
        "web".into(),
    ];
    assert_eq!(plan.apply_arg(), expected);
    for (field, value) in [
        ("fun", Value::from(1)),
        ("arg", "x".into()),
        ("plan", 9.into()),
        ("plan", Value::Nil),
        ("groups", list![map! {"digest" => "x", "minions" => list![]}]),
        ("groups", list![map! {"digest" => digest.as_str(), "minions" => 1}]),
    ] {
        let mut map = plan.map().clone();
        map.insert(field.into(), value.clone());
        assert!(Plan::from_map(map).is_err(), "{field}: {value}");
    }
}
