use proptest::prelude::*;

use super::*;
use brine_value::{Value, map};

#[test]
fn frames_round_trip() {
    let event = Event::from_map("salt/auth", &map! {"id" => "web1"}).unwrap();
    assert!(event.frame().starts_with(b"salt/auth\n\n\x81"));
    assert_eq!((event.tag(), event.data()), ("salt/auth", map! {"id" => "web1"}));
    assert_eq!(Event::from_frame(event.frame().clone()), Ok(event.clone()));
    assert_eq!(Event::new(event.tag(), event.body()), Ok(event));
}

#[test]
fn invalid_events_are_refused() {
    for (frame, error) in [
        (&b""[..], EventError::NoSeparator),
        (b"tag", EventError::NoSeparator),
        (b"\n\n\x80", EventError::BadTag),
        (b"\xff\xfe\n\n\x80", EventError::BadTag),
        (b"tag\n\n\x81", EventError::BadBody(msgpack::UnpackError::Truncated(1))),
        (b"tag\n\n\x01", EventError::BadBody(msgpack::UnpackError::NotAMap)),
        (b"tag\n\n\x80\x80", EventError::BadBody(msgpack::UnpackError::Trailing(1))),
    ] {
        assert_eq!(Event::from_frame(Bytes::from_static(frame)), Err(error), "{frame:?}");
    }
}

#[test]
fn events_that_nest_too_deep_are_refused_by_every_constructor() {
    use brine_value::levels::{MAX_LEVELS, OLD_LEVELS, nested};

    let of = |levels| nested(levels).as_map().cloned().unwrap();
    let id = "web1".parse().unwrap();
    let frame = |levels| Event::from_trusted_map("t", &of(levels)).unwrap().frame().clone();
    for (levels, expected) in [(MAX_LEVELS, None), (MAX_LEVELS + 1, Some(EventError::TooDeep(TooDeep)))] {
        assert_eq!(Event::from_map("t", &of(levels)).err(), expected);
        assert_eq!(Event::from_minion("t", of(levels), &id).err(), expected);
        assert_eq!(Event::from_frame(frame(levels)).err(), expected);
        assert_eq!(Event::from_member(frame(levels), "m1", 1).err(), expected);
        assert_eq!(Event::new("t", &msgpack::pack_map(&of(levels))).err(), expected);
    }
    // Those of old journals can be read.
    let old = Event::from_trusted_frame(1, frame(OLD_LEVELS)).unwrap();
    assert_eq!((old.data(), old.is_deeper(OLD_LEVELS)), (of(OLD_LEVELS), false));
    let message = EventError::TooDeep(TooDeep).to_string();
    assert_eq!(message, "invalid event: it nests deeper than 100 levels of lists and mappings");
}

#[test]
fn the_bus_sets_number_and_stamp() {
    let stamp = |map: Map| {
        let event = Event::from_map("t", &map).unwrap().stamped(7, "now").unwrap();
        assert_eq!((event.tag(), event.seq()), ("t", 7));
        event.data()
    };
    assert_eq!(stamp(map! {}), map! {"_seq" => 7, "_stamp" => "now"});
    let moved = map! {"a" => 1, "_sender_stamp" => "then", "_seq" => 7, "_stamp" => "now"};
    assert_eq!(stamp(map! {"a" => 1, "_stamp" => "then"}), moved);
    assert_eq!(stamp(map! {"_stamp" => "then", "a" => 1}), moved);
    assert_eq!(stamp(map! {"_seq" => 900, "a" => 1}), map! {"_seq" => 7, "a" => 1, "_stamp" => "now"});
    assert_eq!(stamp(map! {"_from" => "db1", "a" => 1}), map! {"_seq" => 7, "a" => 1, "_stamp" => "now"});
}

#[test]
fn only_the_master_sets_the_sender() {
    let id = "web1".parse().unwrap();
    let event = Event::from_minion("t", map! {"_from" => "db1", "a" => 1}, &id).unwrap();
    let stamped = event.stamped(7, "now").unwrap();
    assert_eq!(stamped.data(), map! {"_from" => "web1", "a" => 1, "_seq" => 7, "_stamp" => "now"});
    let pushed = Event::from_frame(stamped.frame().clone()).unwrap();
    assert_eq!(pushed.stamped(8, "later").unwrap().data().get("_from"), None);
}

#[test]
fn only_members_set_the_origin() {
    let id = "web1".parse().unwrap();
    let forged = map! {"_origin" => "m9", "_origin_seq" => 4, "a" => 1};
    for event in [Event::from_map("t", &forged).unwrap(), Event::from_minion("t", forged, &id).unwrap()] {
        let published = event.stamped(7, "now").unwrap();
        assert_eq!((published.origin(), published.data().get("a")), (None, Some(&1.into())));
    }
    let there = Event::from_minion("t", map! {"a" => 1}, &id).unwrap().stamped(41, "then").unwrap();
    let here = Event::from_member(there.frame().clone(), "m2", 41).unwrap().stamped(7, "now").unwrap();
    assert_eq!(here.origin(), Some(("m2".to_owned(), 41)));
    let fields = map! {
        "a" => 1, "_from" => "web1", "_sender_stamp" => "then", "_origin" => "m2", "_origin_seq" => 41, "_seq" => 7,
        "_stamp" => "now",
    };
    assert_eq!(here.data(), fields);
}

#[test]
fn stamps_have_six_digits() {
    let time = Timestamp::from_microsecond(1_000_004).unwrap();
    assert_eq!(stamp_of(time), "1970-01-01T00:00:01.000004+00:00");
    let event = Event::from_map("t", &map! {"x" => 1}).unwrap();
    assert_eq!(event.time(), None);
    assert_eq!(event.stamped(1, &stamp_of(time)).unwrap().time(), Some(1_000_004));
}

proptest! {
    #[test]
    fn stamping_preserves_the_other_fields(entries in prop::collection::btree_map("[a-z]{1,300}", any::<i64>(), 0..40), seq: u64) {
        let map: Map = entries.into_iter().map(|(k, v)| (Value::from(k), Value::from(v))).collect();
        let mut out = Event::from_map("t", &map).unwrap().stamped(seq, "s").unwrap().data();
        prop_assert_eq!(out.shift_remove("_seq"), Some(Value::from(seq)));
        prop_assert_eq!(out.shift_remove("_stamp"), Some(Value::from("s")));
        prop_assert_eq!(out, map);
    }

    #[test]
    fn any_frame_is_parsed_or_refused(frame: Vec<u8>) {
        let _ = Event::from_frame(Bytes::from(frame));
    }
}
