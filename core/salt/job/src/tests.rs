//! Tests of jobs.

use super::*;
use brine_value::list;

const JID: &str = "20261120235852025555";

fn load(mut fields: Map) -> Load {
    fields.insert("jid".into(), JID.into());
    Load::from_map(fields).unwrap()
}

#[test]
fn a_return_preserves_every_field() {
    let map = map! {
        "jid" => JID, "id" => "web1", "fun" => "test.arg", "fun_args" => list![1], "return" => true,
        "retcode" => 2, "success" => false, "out" => "txt", "ret" => "redis, sqlite3,", "extra" => 1,
    };
    let one = Return::from_map(map.clone()).unwrap();
    assert_eq!((one.jid().as_str(), one.id().as_str(), one.fun(), one.out()), (JID, "web1", "test.arg", Some("txt")));
    assert_eq!((one.fun_args(), one.value(), one.retcode(), one.success()), (&[1.into()][..], &true.into(), 2, false));
    assert_eq!(one.ret(), ["redis", "sqlite3"]);
    assert_eq!(one.summary(), map! {"return" => true, "retcode" => 2, "success" => false, "out" => "txt"});
    assert_eq!(one.into_map(), map);
}

#[test]
fn a_return_without_safe_names_or_without_a_value_is_refused() {
    let good = map! {"jid" => JID, "id" => "web1", "return" => Value::Nil};
    assert!(Return::from_map(good.clone()).is_ok());
    for (field, value) in [("jid", "../x"), ("jid", "req"), ("id", "../x"), ("id", ""), ("id", "a\0b")] {
        let mut bad = good.clone();
        bad.insert(field.into(), value.into());
        let error = Return::from_map(bad).unwrap_err().to_string();
        assert!(error.starts_with(&format!("field '{field}'")), "{value}: {error}");
    }
    for field in ["jid", "id", "return"] {
        let mut bad = good.clone();
        bad.shift_remove(field);
        assert_eq!(Return::from_map(bad), Err(InvalidJob::Field(field)));
    }
    assert_eq!(Load::from_map(map! {"jid" => 7}), Err(InvalidJob::Field("jid")));
}

#[test]
fn retcodes_are_parsed_in_every_form_that_minions_send() {
    for (code, expected) in [
        (Value::from(0), 0),
        (2.into(), 2),
        (true.into(), 1),
        (Value::Nil, 0),
        (map! {"test.ping" => 0, "cmd.run" => 3}.into(), 3),
        (map! {"test.ping" => 0, "cmd.run" => -9}.into(), -9),
    ] {
        let map = map! {"jid" => JID, "id" => "m", "return" => 1, "retcode" => code.clone()};
        assert_eq!(Return::from_map(map).unwrap().retcode(), expected, "{code:?}");
    }
}

#[test]
fn a_job_is_listed_as_in_salt() {
    let job = load(map! {"fun" => "test.ping", "arg" => list![], "tgt" => "*", "tgt_type" => "glob", "user" => "root"});
    insta::assert_snapshot!(brine_value::json::to_json(&job.summary().into()), @r#"{"Function": "test.ping", "Arguments": [], "Target": "*", "Target-type": "glob", "User": "root", "StartTime": "2026, Nov 20 23:58:52.025555"}"#);
    insta::assert_snapshot!(brine_value::json::to_json(&load(map! {}).summary().into()), @r#"{"Function": "unknown-function", "Arguments": [], "Target": "unknown-target", "Target-type": "list", "User": "root", "StartTime": "2026, Nov 20 23:58:52.025555"}"#);
}

#[test]
fn metadata_comes_from_the_field_or_the_arguments() {
    for fields in [
        map! {"metadata" => "x"},
        map! {"kwargs" => map! {"metadata" => "x"}},
        map! {"arg" => list!["y", map! {"__kwarg__" => true, "metadata" => "x"}]},
    ] {
        assert_eq!(load(fields).summary().get("Metadata"), Some(&"x".into()));
    }
    assert_eq!(load(map! {"arg" => list![map! {"metadata" => "x"}]}).metadata(), None);
}

#[test]
fn minions_are_added_once_and_sorted() {
    let ids = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<MinionId>>();
    for field in ["minions", "Minions"] {
        let job = load(map! {field => list!["b", "a", 7, "../x"]});
        assert_eq!(job.minions(), ids(&["b", "a"]));
        assert_eq!(job.clone().with_minions([]), job);
        assert_eq!(job.with_minions(ids(&["c", "a"])).minions(), ids(&["a", "b", "c"]));
    }
}

#[test]
fn the_expiry_of_jobs_is_decided_by_their_id() {
    let now: Zoned = "2026-11-20T23:58:52.025555+00:00[UTC]".parse().unwrap();
    let oldest = |seconds| oldest_kept(&now, seconds).map(|jid| jid.to_string());
    assert_eq!(oldest(86400).as_deref(), Some("20261119235852000000"));
    for forever in [0, u64::MAX, 1 << 40] {
        assert_eq!(oldest(forever), None);
    }
}

#[test]
fn batch_sizes_are_integers_or_percentages() {
    for (text, all, is) in
        [("2", 10, 2), ("0", 10, 1), ("50%", 3, 1), ("100%", 3, 3), ("25%", 40, 10), ("1%", 10, 1), ("%50", 4, 2)]
    {
        assert_eq!(batch_size(text, all), Ok(is), "{text}");
    }
    let error = "Invalid batch specification 'abc': must be an integer or percentage string like '10' or '25%'.";
    assert_eq!(batch_size("abc", 1).unwrap_err().to_string(), error);
}
