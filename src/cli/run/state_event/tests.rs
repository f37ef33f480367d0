//! Tests of the output of `state.event`.

use super::*;
use crate::escape::HOSTILE;
use brine_value::map;

#[test]
fn events_have_salts_format() {
    let data = map! {"b" => 1, "a" => map!{"y" => true, "x" => "ü"}};
    assert_eq!(line("t/x", &data, false).1, r#"{"b": 1, "a": {"y": true, "x": "ü"}}"#);
    insta::assert_snapshot!(line("t/x", &data, true).1, @r#"
        {
            "a": {
                "x": "ü",
                "y": true
            },
            "b": 1
        }
        "#);
}

#[test]
fn untrusted_tags_and_data_are_escaped() {
    let (tag, body) = line(HOSTILE, &map! {HOSTILE => HOSTILE}, false);
    assert_eq!((escape_line(&tag), escape_json(&body)), (tag.as_str().into(), body.as_str().into()));
    assert_eq!(json::from_json(&body).unwrap(), map! {HOSTILE => HOSTILE}.into());
}

#[test]
fn timeouts_are_clamped() {
    for (seconds, expected) in
        [(-1.0, 0), (2.0, 2), (f64::NAN, 0), (f64::INFINITY, 1_000_000_000), (1e300, 1_000_000_000)]
    {
        assert_eq!(timeout_of(seconds).as_secs(), expected, "{seconds}");
    }
}

#[test]
fn arguments_are_positional_or_named() {
    let args = Args { positional: vec!["salt/*".into(), 3.into()], keyword: map! {"pretty" => true, "since" => 5} };
    let options = Options::read(&args).unwrap();
    assert!(options.wants("salt/auth") && !options.wants("other"));
    assert_eq!((options.count, options.pretty, options.since.as_deref()), (3, true, Some("5")));
    let several = Args { positional: vec!["a/*, b".into()], keyword: map! {"since" => "now"} };
    let options = Options::read(&several).unwrap();
    assert!(options.wants("a/x") && options.wants("b") && !options.wants("c"));
    assert_eq!(options.since, None);
}

#[test]
fn points_and_tags_are_distinguished() {
    for word in ["5", "now", "10m", "2d", "2026-11-21T10:00:00", "2026-11-21T10:00:00Z", "2026-11-21"] {
        assert!(is_point(word), "{word}");
    }
    for word in ["salt/*", "*", "m", "", "state.event", "10x", "my/10m"] {
        assert!(!is_point(word), "{word}");
    }
}

#[test]
fn time_spans_become_times() {
    for same in ["5", "2026-11-21T10:00:00", "now"] {
        assert_eq!(point(same), same);
    }
    let ago: jiff::Timestamp = point("10m").parse().unwrap();
    let seconds = jiff::Timestamp::now().as_second() - ago.as_second();
    assert!((599..=602).contains(&seconds), "{seconds}");
}
