//! Finds the patterns nearest to an unmatched tag, for suggestions.

use brine_text::glob::{self, Token};

/// The number of characters of a tag or pattern that are compared.
const LENGTH: usize = 200;
/// The maximum number of suggestions.
const SUGGESTIONS: usize = 3;

/// Returns the patterns nearest to a tag, the nearest first, without dissimilar ones.
///
/// The distance is the number of characters to insert, remove or replace until the pattern matches. Of patterns with
/// the same distance, that with more of the tag's first segments is nearer.
pub(crate) fn nearest<'p>(tag: &str, patterns: impl IntoIterator<Item = &'p str>) -> Vec<&'p str> {
    let length = tag.chars().count().min(LENGTH);
    let rank = |pattern: &'p str| {
        let (distance, shared) = (distance(tag, pattern), shared_segments(tag, pattern));
        let literals = tokens(pattern).filter(|token| matches!(token, Token::Char(_))).count();
        let is_similar = distance <= (length.min(literals) / 3).max(1);
        let is_beside = shared >= 2 && 2 * shared >= pattern.split('/').count();
        (is_similar || is_beside).then_some((distance, usize::MAX - shared, pattern))
    };
    let mut near: Vec<_> = patterns.into_iter().filter_map(rank).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(SUGGESTIONS).map(|(.., pattern)| pattern).collect()
}

fn tokens(pattern: &str) -> impl Iterator<Item = Token> {
    glob::tokens(pattern).take(LENGTH)
}

/// Returns the edit distance between a tag and the nearest text that a glob matches.
fn distance(tag: &str, pattern: &str) -> usize {
    let tag: Vec<char> = tag.chars().take(LENGTH).collect();
    // The distances between the tokens so far and each prefix of the tag.
    let mut row: Vec<usize> = (0..=tag.len()).collect();
    for token in tokens(pattern) {
        let mut next = Vec::with_capacity(row.len());
        next.push(if matches!(token, Token::Any) { row[0] } else { row[0] + 1 });
        for (at, c) in tag.iter().enumerate() {
            let cost = match token {
                Token::Any => row[at + 1].min(next[at]),
                Token::One => row[at].min(row[at + 1] + 1).min(next[at] + 1),
                Token::Char(expected) => (row[at] + usize::from(expected != *c)).min(row[at + 1] + 1).min(next[at] + 1),
            };
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

fn shared_segments(tag: &str, pattern: &str) -> usize {
    tag.split('/').zip(pattern.split('/')).take_while(|(one, other)| one == other || *other == "*").count()
}

#[cfg(test)]
mod tests;
