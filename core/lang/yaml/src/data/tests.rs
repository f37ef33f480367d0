//! Data; the results are those of Salt 3008.5.

use brine_value::{list, map};

use super::*;
use crate::{Style, dump_data};

#[test]
fn data_is_read_by_yaml_1_1() {
    for (text, expected) in [
        ("0644", Some(420.into())),
        ("-0644", Some((-420).into())),
        ("00", Some(0.into())),
        ("0", Some(0.into())),
        ("08", Some("08".into())),
        ("010_0", Some(64.into())),
        ("0x1F", Some(31.into())),
        ("0644.5", Some(644.5.into())),
        ("22:22", Some(1342.into())),
        ("!!int '0644'", Some(420.into())),
        ("!!int '08'", None),
        ("{a: 1, b: 2, a: 3}", Some(map! {"a" => 3, "b" => 2}.into())),
        ("{a: {b: 1}, a: {c: 2}}", Some(map! {"a" => map! {"c" => 2}}.into())),
        ("{1: a, true: b}", Some(map! {1 => "b"}.into())),
        ("{1: a, 1.0: b}", Some(map! {1 => "b"}.into())),
        ("a: 2\n<<: {a: 1, b: 3}", Some(map! {"a" => 2, "b" => 3}.into())),
        ("<<: [{a: 1}, {a: 2}]", Some(map! {"a" => 1}.into())),
        ("!!omap [x: 1, y: 2]", Some(list![list!["x", 1], list!["y", 2]])),
        ("!!omap {x: 1}", None),
        ("!!pairs [x: 1, x: 2]", Some(list![list!["x", 1], list!["x", 2]])),
        ("2020-13-01", None),
        ("2020-02-30", None),
        ("0000-01-01", None),
        ("!!timestamp x", None),
        ("2020-01-01 24:00:00", None),
        ("", Some(Value::Nil)),
        ("# c", Some(Value::Nil)),
    ] {
        assert_eq!(load_data(text).map(|data| data.value).ok(), expected, "{text}");
    }
}

#[test]
fn dates_stay_dates() {
    for (text, expected) in [
        ("2020-01-01", "2020-01-01\n"),
        ("2020-1-1", "2020-1-1\n"),
        ("'2020-01-01'", "'2020-01-01'\n"),
        ("!!str 2020-01-01", "'2020-01-01'\n"),
        ("!!timestamp '2020-01-01'", "2020-01-01\n"),
        ("2020-01-01 10:00:00", "2020-01-01 10:00:00\n"),
        ("2020-01-01 10:00", "2020-01-01 10:00\n"),
        ("2001-12-14 1:09:03", "2001-12-14 01:09:03\n"),
        ("2020-01-01T10:00:00Z", "2020-01-01 10:00:00+00:00\n"),
        ("2020-01-01t10:00:00.5Z", "2020-01-01 10:00:00.500000+00:00\n"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.100000-05:00\n"),
        ("2001-12-14 21:59:43.1 -5", "2001-12-14 21:59:43.100000-05:00\n"),
        ("2001-12-14 21:59:43.123456789", "2001-12-14 21:59:43.123456\n"),
        ("2020-01-01 10:00:00 +01:30", "2020-01-01 10:00:00+01:30\n"),
        ("a: {2020-01-01: x}", "a:\n  2020-01-01: x\n"),
        ("a: [2020-01-01, '2020-01-01']", "a:\n- 2020-01-01\n- '2020-01-01'\n"),
        ("x: &x 2020-01-01\ny: *x", "x: 2020-01-01\ny: 2020-01-01\n"),
        ("x: &x {d: 2020-01-01}\ny: {<<: *x, a: 1}", "x:\n  d: 2020-01-01\ny:\n  a: 1\n  d: 2020-01-01\n"),
        ("d: 2020-01-01\nd: '2020-01-01'", "d: '2020-01-01'\n"),
        ("d: '2020-01-01'\nd: 2020-01-01", "d: 2020-01-01\n"),
    ] {
        let data = load_data(text).unwrap();
        assert_eq!(dump_data(&data.value, &data.dates, Style::BLOCK), expected, "{text}");
    }
}

#[test]
fn dates_are_quoted_in_flow_style_as_in_salt() {
    let data = load_data("{d: 2020-01-01, t: 2020-01-01 10:00:00}").unwrap();
    let expected = "{d: 2020-01-01, t: ! '2020-01-01 10:00:00'}\n";
    assert_eq!(dump_data(&data.value, &data.dates, Style::FLOW), expected);
}
