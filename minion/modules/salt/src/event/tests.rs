use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_value::{list, map};

use super::*;
use crate::testing::{self, Alone};

/// Calls a function, and returns its result and the events that reached the master.
fn fired(masterless: bool, fun: &str, args: Args) -> (Result<Value, CallError>, Vec<MasterEvent>) {
    let master = Arc::new(Alone { masterless, ..Alone::default() });
    let context = testing::context_of(testing::minion_with(&[], Arc::clone(&master) as _));
    let value = context.call(fun, args);
    let events = master.fired.lock().clone();
    (value, events)
}

#[test]
fn event_body_has_the_requested_fields() {
    let data = || map! {"x" => 1};
    for (keyword, body) in [
        (map! {}, map! {"x" => 1}),
        (map! {"foo" => "bar", "x" => 2}, map! {"foo" => "bar", "x" => 1}),
        (map! {"with_grains" => list!["id", "nope"]}, map! {"grains" => map! {"id" => "test-minion"}, "x" => 1}),
        (
            map! {"with_grains" => true},
            map! {"grains" => map! {"id" => "test-minion", "os" => "Debian", "os_family" => "Debian"}, "x" => 1},
        ),
        (map! {"with_pillar" => list!["none"]}, map! {"pillar" => map! {}, "x" => 1}),
        (
            map! {"with_pillar" => true},
            map! {"pillar" => map! {"secret" => map! {"word" => "xyzzy", "empty" => ""}}, "x" => 1},
        ),
        (map! {"with_env" => list!["NO_SUCH_NAME"]}, map! {"environ" => map! {}, "x" => 1}),
        (map! {"with_env_opts" => true}, map! {"saltenv" => Value::Nil, "pillarenv" => Value::Nil, "x" => 1}),
    ] {
        let args = Args { positional: vec!["a/tag".into(), data().into()], keyword: keyword.clone() };
        let (value, events) = fired(false, "event.send", args);
        assert_eq!(value, Ok(true.into()), "{keyword:?}");
        assert_eq!((&*events[0].tag, &events[0].data), ("a/tag", &body.into()), "{keyword:?}");
    }
}

#[test]
fn preload_replaces_the_pretag() {
    let args = |preload: Value| Args::keyword(map! {"tag" => "t", "data" => "text", "preload" => preload});
    for (preload, request) in [
        (
            Value::Nil,
            // Sent as by salt-call: the minion of these tests has no bus of its own.
            map! {"id" => "m", "tag" => "t", "data" => "text", "cmd" => "_minion_event"},
        ),
        (
            map! {"jid" => "1"}.into(),
            map! {"id" => "m", "tag" => "t", "data" => "text", "cmd" => "_minion_event", "jid" => "1"},
        ),
    ] {
        let (_, events) = fired(false, "event.fire_master", args(preload));
        assert_eq!(events[0].request("m"), request);
    }
}

#[test]
fn failed_events_return_false() {
    for (masterless, fun, args) in [
        (false, "event.fire", list![map! {"a" => 1}, "tag"]),
        (false, "event.fire", list!["text", "tag"]),
        (true, "event.send", list!["tag", map! {"a" => 1}]),
    ] {
        let args = Args::positional(args.as_list().unwrap_or_default().to_vec());
        let (value, events) = fired(masterless, fun, args);
        assert_eq!((value, events), (Ok(false.into()), Vec::new()), "{fun}");
    }
}

#[test]
fn events_that_nest_too_deep_are_refused_with_the_limit() {
    let deep = || levels::nested(MAX_LEVELS);
    for (fun, args) in [
        ("event.send", list!["tag", deep()]),
        ("event.fire_master", list![deep(), "tag"]),
        ("event.fire", list![map! {"a" => deep()}, "tag"]),
    ] {
        let args = Args::positional(args.as_list().unwrap_or_default().to_vec());
        let (value, events) = fired(false, fun, args);
        let message = "the event is refused: it nests deeper than 100 levels of lists and mappings";
        assert_eq!((value, events), (Err(CallError::execution(message)), Vec::new()), "{fun}");
    }
    let args = Args::positional(["tag".into(), levels::nested(MAX_LEVELS - 1)]);
    assert_eq!(fired(false, "event.send", args).0, Ok(true.into()));
}
