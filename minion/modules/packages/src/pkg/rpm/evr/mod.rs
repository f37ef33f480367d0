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
mod tests;
