//! The known word that a mistyped one probably means, for hints such as "did you mean '--out'?".

/// Returns the known word that is most like this one; nothing if none differs in few letters only.
pub fn nearest<T: AsRef<str>>(word: &str, known: impl IntoIterator<Item = T>) -> Option<T> {
    // Longer words may differ in more letters; each letter counts, and so does an exchange of two neighbours.
    let limit = (word.chars().count() / 4).clamp(1, 3);
    let mut best: Option<(usize, T)> = None;
    for candidate in known {
        // Targets may be long: a difference in length is a lower bound of the distance, and cheap.
        if candidate.as_ref() == word || candidate.as_ref().len().abs_diff(word.len()) > 4 * limit {
            continue;
        }
        let distance = strsim::damerau_levenshtein(word, candidate.as_ref());
        if distance <= limit && best.as_ref().is_none_or(|(least, _)| distance < *least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_differ_in_few_letters_are_near() {
        let known = ["--out", "--out-file", "jobs.list_jobs", "jobs.list_job", "web1"];
        for (word, is) in [
            ("--oot", Some("--out")),
            ("jobs.lst_jobs", Some("jobs.list_jobs")),
            ("wbe1", Some("web1")),
            ("web1", None),
            ("database", None),
            ("w", None),
        ] {
            assert_eq!(nearest(word, known), is, "{word}");
        }
    }
}
