//! The tags and fields of events, as the reference of events documents them, and patterns of tags.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use brine_text::glob;

/// The reference: tables whose first column has the tags.
const PAGE: &str = include_str!("../../../docs/reference/events.md");

/// Tags that minions, runner functions and other programs publish below those of the reference.
const FURTHER: [&str; 11] = [
    "salt/minion/<id>/<path>",
    "salt/beacon/<id>/<path>",
    "salt/job/<jid>/start/<path>",
    "salt/job/<jid>/prog/<path>",
    "salt/run/<jid>/<path>",
    "salt/wheel/<jid>/<path>",
    "salt/cloud/<path>",
    "salt/netapi/<path>",
    "salt/engines/<path>",
    "salt/fileserver/<path>",
    "salt/syndic/<path>",
];

/// The longest pattern that is compared, in characters.
const LENGTH: usize = 200;

/// A kind of events.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The tag as the reference has it.
    pub tag: String,
    /// A glob of the tag.
    pub glob: String,
    /// The words of its row: its fields are among them.
    words: BTreeSet<String>,
    /// Whether it may have other fields.
    is_open: bool,
}

fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the documented kinds of events; a tag may stand several times.
pub(crate) fn documented() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let published = PAGE.split("## Events of Salt that").next().unwrap_or(PAGE);
        let rows = published.lines().filter_map(|line| {
            let (tags, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
            Some((tags, rest))
        });
        let mut kinds = Vec::new();
        for (tags, rest) in rows {
            let fields = rest.split(" | ").nth(1).unwrap_or_default();
            let is_open = ["such as", "fields of", "the state's return"].iter().any(|words| fields.contains(words));
            for tag in codes(tags).filter(|tag| !tag.starts_with(['_', '<'])) {
                let words = codes(rest).map(str::to_owned).collect();
                kinds.push(Kind { tag: tag.to_owned(), glob: glob_of(tag), words, is_open });
            }
        }
        kinds
    })
}

/// Returns the glob of a documented tag.
fn glob_of(tag: &str) -> String {
    let mut glob = String::new();
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once('<') {
        glob.push_str(before);
        glob.push('*');
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
    glob + rest
}

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `?`, or a class.
    One,
    /// `*`
    Any,
    /// A placeholder of the reference, or an id: any text without a slash.
    Segment,
}

fn tokens_of_glob(pattern: &str) -> Vec<Token> {
    let tokens = glob::tokens(pattern).map(|token| match token {
        glob::Token::Char(c) => Token::Char(c),
        glob::Token::One => Token::One,
        glob::Token::Any => Token::Any,
    });
    tokens.collect()
}

fn tokens_of_tag(tag: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once('<') {
        tokens.extend(before.chars().map(Token::Char));
        let (name, after) = after.split_once('>').unwrap_or((after, ""));
        let is_long = after.is_empty() && matches!(name, "path" | "name" | "remainder");
        tokens.push(if is_long { Token::Any } else { Token::Segment });
        rest = after;
    }
    tokens.extend(rest.chars().map(Token::Char));
    tokens
}

/// Whether some text fits both patterns.
fn may_both_fit(one: &[Token], other: &[Token]) -> bool {
    let is_many = |token: Token| matches!(token, Token::Any | Token::Segment);
    // A text of one character that both tokens take.
    let share = |a: Token, b: Token| match (a, b) {
        (Token::Char(a), Token::Char(b)) => a == b,
        (Token::Char(c), Token::Segment) | (Token::Segment, Token::Char(c)) => c != '/',
        _ => true,
    };
    // Whether the rests fit, from the end of the first pattern.
    let mut below = vec![false; other.len() + 1];
    for i in (0..=one.len()).rev() {
        let mut row = vec![false; other.len() + 1];
        for j in (0..=other.len()).rev() {
            row[j] = match (one.get(i).copied(), other.get(j).copied()) {
                (None, None) => true,
                (Some(a), None) => is_many(a) && below[j],
                (None, Some(b)) => is_many(b) && row[j + 1],
                (Some(a), Some(b)) => {
                    is_many(a) && below[j]
                        || is_many(b) && row[j + 1]
                        || share(a, b)
                            && match (is_many(a), is_many(b)) {
                                (false, false) => below[j + 1],
                                (true, false) => row[j + 1],
                                (false, true) => below[j],
                                (true, true) => false,
                            }
                }
            };
        }
        below = row;
    }
    below[0]
}

/// Whether a documented tag may fit a glob. In `salt/job/*/ret` the star is a job id, and no longer part of a tag.
pub(crate) fn may_match(pattern: &str, tag: &str) -> bool {
    if pattern.chars().count() > LENGTH {
        return true;
    }
    let mut tokens = tokens_of_glob(pattern);
    let parts: Vec<&str> = pattern.splitn(4, '/').collect();
    if let [_, second, "*", _] = parts[..]
        && !glob::is_pattern(second)
        && let Some(star) = tokens.iter_mut().find(|token| **token == Token::Any)
    {
        *star = Token::Segment;
    }
    may_both_fit(&tokens, &tokens_of_tag(tag))
}

/// Whether an event of the reference, or one that others publish below its tags, may fit a glob.
pub(crate) fn is_possible(glob: &str) -> bool {
    documented().iter().any(|kind| may_match(glob, &kind.tag)) || FURTHER.iter().any(|tag| may_match(glob, tag))
}

/// Returns the kinds of events that a glob surely means, if it means only such: the last part is a word, or the glob is
/// that of the reference.
pub(crate) fn meant(glob: &str) -> Vec<&'static Kind> {
    let exact: Vec<&Kind> = documented().iter().filter(|kind| kind.glob == glob).collect();
    let last = glob.rsplit('/').next().unwrap_or(glob);
    let is_word = glob.starts_with("salt/") && last.chars().all(|c| c.is_ascii_alphabetic()) && !last.is_empty();
    if !exact.is_empty() || !is_word {
        return exact;
    }
    documented().iter().filter(|kind| may_match(glob, &kind.tag)).collect()
}

impl Kind {
    /// Whether events of the kind may have a field. All events have some that begin with an underscore.
    pub fn may_have(&self, field: &str) -> bool {
        self.is_open || field.starts_with('_') || self.words.contains(field)
    }

    /// Returns the words of the reference that may be fields.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let is_field = |word: &&String| word.chars().all(|c| c == '_' || c.is_ascii_lowercase());
        self.words.iter().filter(is_field).map(String::as_str)
    }
}
