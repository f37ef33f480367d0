//! rpm's order of versions: epoch, version and release, each compared in segments of digits and of letters.

use std::cmp::Ordering;

/// A parsed version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Evr<'t> {
    epoch: u64,
    version: &'t str,
    release: &'t str,
}

impl<'t> Evr<'t> {
    /// Parses `2:1.0-3`. An epoch that is not an integer is ignored.
    fn parse(text: &'t str) -> Self {
        let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
        let (version, release) = rest.split_once('-').unwrap_or((rest, ""));
        Evr { epoch: epoch.trim().parse().unwrap_or_default(), version, release }
    }
}

/// Compares two versions. Releases are only compared if both have one: `3.2-1` satisfies `3.2`.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (Evr::parse(a), Evr::parse(b));
    let releases = || {
        if a.release.is_empty() || b.release.is_empty() {
            return Ordering::Equal;
        }
        compare_segments(a.release, b.release)
    };
    a.epoch.cmp(&b.epoch).then_with(|| compare_segments(a.version, b.version)).then_with(releases)
}

/// Takes the prefix of characters that satisfy a predicate.
fn take<'t>(text: &mut &'t str, is_part: fn(char) -> bool) -> &'t str {
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let (taken, rest) = text.split_at(end);
    *text = rest;
    taken
}

fn is_separator(letter: char) -> bool {
    !letter.is_ascii_alphanumeric() && !['~', '^'].contains(&letter)
}

fn compare_segments(mut a: &str, mut b: &str) -> Ordering {
    loop {
        take(&mut a, is_separator);
        take(&mut b, is_separator);
        // A tilde sorts before everything, even before the end.
        match (a.strip_prefix('~'), b.strip_prefix('~')) {
            (Some(rest_a), Some(rest_b)) => {
                (a, b) = (rest_a, rest_b);
                continue;
            }
            (Some(_), None) => return Ordering::Less,
            (None, Some(_)) => return Ordering::Greater,
            (None, None) => {}
        }
        // A caret sorts after the end, but before everything else.
        match (a.strip_prefix('^'), b.strip_prefix('^')) {
            (Some(rest_a), Some(rest_b)) => {
                (a, b) = (rest_a, rest_b);
                continue;
            }
            (Some(_), None) => return if b.is_empty() { Ordering::Greater } else { Ordering::Less },
            (None, Some(_)) => return if a.is_empty() { Ordering::Less } else { Ordering::Greater },
            (None, None) => {}
        }
        if a.is_empty() || b.is_empty() {
            return a.len().cmp(&b.len());
        }
        let is_number = a.starts_with(|letter: char| letter.is_ascii_digit());
        let kind: fn(char) -> bool =
            if is_number { |letter| letter.is_ascii_digit() } else { |letter| letter.is_ascii_alphabetic() };
        let (piece_a, piece_b) = (take(&mut a, kind), take(&mut b, kind));
        let order = if piece_b.is_empty() {
            // Digits are newer than letters.
            if is_number { Ordering::Greater } else { Ordering::Less }
        } else if is_number {
            let (a, b) = (piece_a.trim_start_matches('0'), piece_b.trim_start_matches('0'));
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        } else {
            piece_a.cmp(piece_b)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
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
}
