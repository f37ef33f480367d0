//! The ranges of job ids that a clean-up removes from a database.

/// Returns the ranges between the kept job ids, which are in ascending order and below `oldest`. Each range is given by
/// its bounds, which it excludes.
pub(crate) fn between<'a>(ids: &'a [String], oldest: &'a str) -> Vec<[&'a str; 2]> {
    let above = std::iter::once("").chain(ids.iter().map(String::as_str));
    let below = ids.iter().map(String::as_str).chain([oldest]);
    above.zip(below).map(|(above, below)| [above, below]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_ids_are_in_no_range() {
        for (ids, expected) in [
            (&[][..], &[["", "5"]][..]),
            (&["2"], &[["", "2"], ["2", "5"]]),
            (&["2", "3"], &[["", "2"], ["2", "3"], ["3", "5"]]),
        ] {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            assert_eq!(between(&ids, "5"), expected);
        }
    }
}
