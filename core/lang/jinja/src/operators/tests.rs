use super::super::data::text;
use super::*;

#[test]
fn slices_are_those_of_python() {
    let int = |n: Option<i64>| n.map_or_else(JinjaValue::default, JinjaValue::from);
    for (start, stop, step, expected) in [
        (Some(1), Some(4), None, "bcd"),
        (None, None, Some(-1), "fedcba"),
        (Some(3), Some(0), Some(-1), "dcb"),
        (Some(-3), None, None, "def"),
        (Some(10), None, None, ""),
        (None, Some(-20), Some(-2), "fdb"),
        (Some(i64::MIN), Some(i64::MAX), Some(i64::MAX), "a"),
    ] {
        let actual = slice(&JinjaValue::from("abcdef"), &int(start), &int(stop), &int(step)).unwrap();
        assert_eq!(actual.as_str(), Some(expected), "{start:?} {stop:?} {step:?}");
    }
}

#[test]
fn arithmetic_matches_python() {
    let int = |n: i64| JinjaValue::from(n);
    for (operator, a, b, result) in [
        (floor_div as fn(&_, &_) -> _, 7, 2, "3"),
        (floor_div, -7, 2, "-4"),
        (floor_div, 7, -2, "-4"),
        (floor_div, -7, -2, "3"),
        (modulo, 7, -2, "-1"),
        (modulo, -7, 2, "1"),
        (modulo, -6, 2, "0"),
        (div, 7, 2, "3.5"),
        (div, 4, 2, "2.0"),
        (pow, 2, 10, "1024"),
        (pow, 2, -1, "0.5"),
        (mul, i64::MAX, 2, "18446744073709551614"),
    ] {
        let actual: Result<JinjaValue, Error> = operator(&int(a), &int(b));
        assert_eq!(text(&actual.unwrap()), result, "{a} {b}");
    }
}
