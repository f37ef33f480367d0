//! Suggestions for misspelt names: "did you mean '--out'?".

/// Returns the known word with the smallest edit distance to `word`, or `None` if all of them differ too much or one is
/// equal to `word`. Of several words at the same distance the alphabetically first is returned.
pub fn nearest<T: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = T>) -> Option<T> {
    // A quarter of the characters may differ, at most three.
    nearest_within(word, candidates, (word.chars().count() / 4).clamp(1, 3))
}

/// As [`nearest`] with at most `limit` edits. Swapping two neighbours counts as one edit.
pub fn nearest_within<T: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = T>, limit: usize) -> Option<T> {
    let mut best: Option<(usize, T)> = None;
    for candidate in candidates {
        if candidate.as_ref() == word {
            return None;
        }
        // The difference in length is a cheap lower bound of the distance: targets may be long.
        if candidate.as_ref().len().abs_diff(word.len()) > 4 * limit {
            continue;
        }
        let distance = strsim::damerau_levenshtein(word, candidate.as_ref());
        let is_nearer = |(least, word): &(usize, T)| (distance, candidate.as_ref()) < (*least, word.as_ref());
        if distance <= limit && best.as_ref().is_none_or(is_nearer) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the end of a message with a suggestion, `: did you mean 'web1'?`; empty without one.
pub fn hint(nearest: Option<impl std::fmt::Display>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(": did you mean '{nearest}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_within_the_edit_distance_are_suggested() {
        let words = ["--out", "--out-file", "jobs.list_jobs", "jobs.list_job", "web1", "worker_threads"];
        for (word, is) in [
            ("--oot", Some("--out")),
            ("jobs.lst_jobs", Some("jobs.list_jobs")),
            ("wbe1", Some("web1")),
            ("web1", None),
            ("database", None),
            ("w", None),
            // Two words at the same distance: the alphabetically first one is returned.
            ("jobs.list_jobx", Some("jobs.list_job")),
            ("worker_thread", Some("worker_threads")),
        ] {
            assert_eq!(nearest(word, words), is, "{word}");
        }
    }
}
