use proptest::prelude::*;

use super::*;

/// Expected results are those of rpm 4.18.
#[test]
fn versions_are_compared_as_by_rpm() {
    for (a, order, b) in [
        ("1.0", "=", "1.0"),
        ("1.0", "<", "2.0"),
        ("2.0.1", ">", "2.0"),
        ("2.0.1a", ">", "2.0.1"),
        ("5.5p1", "<", "5.5p2"),
        ("5.5p10", ">", "5.5p1"),
        ("10xyz", "<", "10.1xyz"),
        ("xyz10", "<", "xyz10.1"),
        ("xyz.4", "<", "8"),
        ("5.5p2", "<", "5.6p1"),
        ("6.0.rc1", ">", "6.0"),
        ("10b2", ">", "10a1"),
        ("1.0aa", ">", "1.0a"),
        ("10.0001", "=", "10.1"),
        ("10.0039", ">", "10.0001"),
        ("4.999.9", "<", "5.0"),
        ("20101121", "<", "20101122"),
        ("2.0", "=", "2_0"),
        ("a+", "=", "a_"),
        ("+_", "=", "_+"),
        ("1.0~rc1", "<", "1.0"),
        ("1.0~rc1", "<", "1.0~rc2"),
        ("1.0~rc1~git1", "<", "1.0~rc1"),
        ("1.0^", ">", "1.0"),
        ("1.0^git1", "<", "1.01"),
        ("1.0^git1", "<", "1.0.1"),
        ("1.0~rc1^git1", ">", "1.0~rc1"),
        ("1.0^git1~pre", "<", "1.0^git1"),
        ("1.0..", "=", "1.0"),
        ("001", "=", "1"),
        ("1.a", "<", "1.1"),
        ("1a", "<", "1.1"),
        ("é", "<", "1"),
        ("99999999999999999999999", ">", "99999999999999999999998"),
    ] {
        let expected = match order {
            "<" => Ordering::Less,
            ">" => Ordering::Greater,
            _ => Ordering::Equal,
        };
        assert_eq!(compare_segments(a, b), expected, "{a} {b}");
        assert_eq!(compare_segments(b, a), expected.reverse(), "{b} {a}");
    }
}

#[test]
fn epochs_come_first_and_releases_last() {
    for (a, b, expected) in [
        ("2:1.0-3", "9.0-1", Ordering::Greater),
        ("0:1.0-1", "1.0-1", Ordering::Equal),
        ("x:1.0-1", "1.0-1", Ordering::Equal),
        ("1.0-2", "1.0-10", Ordering::Less),
        ("1.0", "1.0-10", Ordering::Equal),
        ("1.0-1-2", "1.0-1-1", Ordering::Greater),
        ("", "1", Ordering::Less),
    ] {
        assert_eq!(compare(a, b), expected, "{a} {b}");
    }
}

/// Similar versions, so that they differ late.
fn version() -> impl Strategy<Value = String> {
    "([0-2]:)?[01a~^.]{0,6}(-[01.]{1,3})?"
}

proptest! {
    #[test]
    fn any_string_can_be_compared(a in ".{0,12}", b in ".{0,12}") {
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        prop_assert_eq!(compare(&a, &a), Ordering::Equal);
    }

    #[test]
    fn the_order_is_total(a in version(), b in version(), c in version()) {
        let release = |text: &str| !Evr::parse(text).release.is_empty();
        // Whether releases are compared depends on both versions, so only versions of one form are ordered.
        prop_assume!(release(&a) == release(&b) && release(&b) == release(&c));
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        if compare(&a, &b) != Ordering::Greater && compare(&b, &c) != Ordering::Greater {
            prop_assert_ne!(compare(&a, &c), Ordering::Greater, "{} {} {}", a, b, c);
        }
    }

    #[test]
    fn numbers_are_compared_by_value(a in 0_u64..3000, b in 0_u64..3000, zeros in 0_usize..4) {
        let padded = format!("1.{}{a}", "0".repeat(zeros));
        prop_assert_eq!(compare(&padded, &format!("1.{b}")), a.cmp(&b));
    }
}
