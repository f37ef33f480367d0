//! Compound targets: `G@os:Debian and ( web* or not L@db1,db2 )`.
//!
//! Words are separated by blanks. `not` binds tighter than `and`, `and` tighter than `or`; `not` after a term means
//! `and not`.

use std::borrow::Cow;

use brine_value::{Map, Value};

use super::lookup::Comparison;
use super::{Match, Matcher, TargetError, TargetFacts, TargetKind};

/// A parsed expression.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Term(Term),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

/// A term and, in a compound target, the word it was parsed from.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub matcher: Matcher,
    pub word: Option<Box<Word>>,
}

/// A word of a compound target, in the form that custom matchers receive.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub kind: TargetKind,
    pub text: Value,
    pub delimiter: String,
}

impl Term {
    fn check(&self, facts: &impl TargetFacts) -> Match {
        let word = self.word.as_ref();
        let own = word.and_then(|word| facts.custom_match(word.kind.name(), &word.text, &word.delimiter));
        own.unwrap_or_else(|| self.matcher.check(facts))
    }
}

impl Expression {
    pub fn parse(words: &[&str], nodegroups: &Map) -> Result<Self, TargetError> {
        let mut expanded = Vec::new();
        expand(words, nodegroups, &mut Vec::new(), &mut expanded)?;
        let words: Vec<&str> = expanded.iter().map(AsRef::as_ref).collect();
        Parser { words: &words, at: 0, depth: 0 }.whole()
    }

    /// Disables wildcards in the values of pillar lookups.
    pub fn compare_pillar_exactly(&mut self) {
        match self {
            Expression::Term(Term { matcher: Matcher::Pillar(lookup), .. }) => lookup.compare_exactly(),
            Expression::Term(_) => {}
            Expression::Not(inner) => inner.compare_pillar_exactly(),
            Expression::All(parts) | Expression::Any(parts) => {
                parts.iter_mut().for_each(Expression::compare_pillar_exactly);
            }
        }
    }

    /// Evaluates the expression, as far as the facts are known.
    pub fn check(&self, facts: &impl TargetFacts) -> Match {
        match self {
            Expression::Term(term) => term.check(facts),
            Expression::Not(inner) => match inner.check(facts) {
                Match::Yes => Match::No,
                Match::No => Match::Yes,
                Match::Unknown => Match::Unknown,
            },
            Expression::All(parts) => first_or(parts, facts, Match::No, Match::Yes),
            Expression::Any(parts) => first_or(parts, facts, Match::Yes, Match::No),
        }
    }
}

/// Returns `decides` if any part evaluates to it, else unknown if any part is unknown, else `otherwise`.
fn first_or(parts: &[Expression], facts: &impl TargetFacts, decides: Match, otherwise: Match) -> Match {
    let mut sum = otherwise;
    for part in parts {
        match part.check(facts) {
            result if result == decides => return decides,
            Match::Unknown => sum = Match::Unknown,
            _ => {}
        }
    }
    sum
}

/// The maximum number of words after expanding all nodegroups.
const MAX_WORDS: usize = 20_000;

/// The maximum nesting depth of parentheses and nodegroups.
const MAX_DEPTH: usize = 100;

/// Expands nodegroups to their definitions.
///
/// As in Salt, a definition is inserted without parentheses, unless one group uses another: with `web: a or b`, `N@web
/// and c` means `a or b and c`.
fn expand<'a>(
    words: &[&'a str],
    nodegroups: &'a Map,
    inside: &mut Vec<&'a str>,
    out: &mut Vec<Cow<'a, str>>,
) -> Result<(), TargetError> {
    for word in words {
        if out.len() >= MAX_WORDS {
            return Err(TargetError::TooLarge(words.join(" ")));
        }
        let Some(name) = word.strip_prefix("N@") else {
            out.push(Cow::Borrowed(word));
            continue;
        };
        if inside.contains(&name) || inside.len() >= MAX_DEPTH {
            return Err(TargetError::NodegroupLoop(name.to_owned()));
        }
        let unknown = || TargetError::UnknownNodegroup(name.to_owned());
        let definition: Vec<&str> = match nodegroups.get(name).ok_or_else(unknown)? {
            Value::Str(text) => text.split_whitespace().collect(),
            Value::List(items) => items.iter().filter_map(Value::as_str).collect(),
            _ => return Err(unknown()),
        };
        if !definition.is_empty() && definition.iter().all(|word| is_plain_id(word)) {
            out.push(Cow::Owned(format!("L@{}", definition.join(","))));
            continue;
        }
        // An empty group becomes `( )`, which no minion matches.
        let uses_groups = definition.iter().any(|word| word.starts_with("N@"));
        let in_parentheses = !inside.is_empty() || definition.is_empty() || uses_groups;
        inside.push(name);
        out.extend(in_parentheses.then_some(Cow::Borrowed("(")));
        expand(&definition, nodegroups, inside, out)?;
        out.extend(in_parentheses.then_some(Cow::Borrowed(")")));
        inside.pop();
    }
    Ok(())
}

/// Returns the words of a compound target or of a nodegroup with all nodegroups expanded, for recipients that do not
/// know the nodegroups.
///
/// # Errors
/// A nodegroup is unknown or contains itself, or there are too many words.
pub fn without_nodegroups(words: &[&str], nodegroups: &Map) -> Result<Vec<String>, TargetError> {
    let mut expanded = Vec::new();
    expand(words, nodegroups, &mut Vec::new(), &mut expanded)?;
    Ok(expanded.into_iter().map(Cow::into_owned).collect())
}

/// Whether a word of a nodegroup can only be a minion id.
fn is_plain_id(word: &str) -> bool {
    !matches!(word, "and" | "or" | "not" | "(" | ")") && !word.contains(['@', '*', '?', '[', ']', '(', ')', ',', ' '])
}

struct Parser<'a> {
    words: &'a [&'a str],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Result<Expression, TargetError> {
        let expression = self.any()?;
        match self.peek() {
            None => Ok(expression),
            Some(")") => Err(self.wrong("there is no '(' for this ')'")),
            Some(_) => Err(self.wrong("two terms need 'and' or 'or' between them")),
        }
    }

    fn any(&mut self) -> Result<Expression, TargetError> {
        let mut parts = vec![self.all()?];
        while self.take("or") {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, TargetError> {
        let mut parts = vec![self.not()?];
        while self.take("and") || self.peek() == Some("not") {
            parts.push(self.not()?);
        }
        Ok(one_or(parts, Expression::All))
    }

    fn not(&mut self) -> Result<Expression, TargetError> {
        if self.take("not") { Ok(Expression::Not(Box::new(self.primary()?))) } else { self.primary() }
    }

    fn primary(&mut self) -> Result<Expression, TargetError> {
        match self.peek() {
            None => Err(self.wrong("a term is missing at the end")),
            Some("and" | "or" | "not" | ")") => Err(self.wrong("a term is missing before this")),
            Some("(") if self.depth >= MAX_DEPTH => Err(TargetError::TooLarge(self.words.join(" "))),
            Some("(") => {
                self.at += 1;
                self.depth += 1;
                // An empty nodegroup.
                let inner = if self.peek() == Some(")") { Expression::Any(Vec::new()) } else { self.any()? };
                self.depth -= 1;
                if self.take(")") { Ok(inner) } else { Err(self.wrong("a '(' is not closed")) }
            }
            // Salt takes such a word for an id that no minion has, which turns 'not (web1)' into all minions.
            Some(word) if has_glued_parenthesis(word) => {
                Err(self.wrong("a parenthesis needs a blank before and after it"))
            }
            Some(word) => {
                let term = term(word)?;
                self.at += 1;
                Ok(term)
            }
        }
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.at += usize::from(is_next);
        is_next
    }

    fn wrong(&self, reason: &'static str) -> TargetError {
        let word = self.peek().unwrap_or_default().to_owned();
        TargetError::Compound { expression: self.words.join(" "), position: self.at + 1, word, reason }
    }
}

/// Whether a parenthesis of the expression has become a part of a word. Regular expressions may contain any, other terms
/// pairs.
fn has_glued_parenthesis(word: &str) -> bool {
    let count = |sign: char| word.matches(sign).count();
    match split_term(word).0 {
        None | Some('L' | 'S') => word.contains(['(', ')']),
        Some('G' | 'I') => count('(') != count(')'),
        Some(_) => false,
    }
}

fn term(word: &str) -> Result<Expression, TargetError> {
    let (letter, delimiter, text) = split_term(word);
    let (kind, matcher) = match letter {
        None => (TargetKind::Glob, Matcher::glob(text)),
        Some('G') => (TargetKind::Grain, Matcher::grain(text, delimiter, Comparison::Glob)),
        Some('P') => (TargetKind::GrainPcre, Matcher::grain(text, delimiter, Comparison::Pcre)),
        Some('I') => (TargetKind::Pillar, Matcher::pillar(text, delimiter, Comparison::Glob)),
        Some('J') => (TargetKind::PillarPcre, Matcher::pillar(text, delimiter, Comparison::Pcre)),
        Some('E') => (TargetKind::Pcre, Matcher::pcre(text)),
        Some('S') => (TargetKind::IpCidr, Matcher::network(text)),
        Some('L') => (TargetKind::List, Ok(Matcher::list(text.split(',')))),
        Some(other) => return Err(TargetError::Unsupported(format!("{other}@"))),
    };
    let word = Word { kind, text: text.into(), delimiter: delimiter.to_owned() };
    Ok(Expression::Term(Term { matcher: matcher?, word: Some(Box::new(word)) }))
}

fn one_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            many(parts)
        }
        None => many(parts),
    }
}

/// Splits `G@os:x` or `G|@os|x` into the letter, the delimiter and the rest. A word without one of Salt's letters is a
/// glob.
pub(super) fn split_term(word: &str) -> (Option<char>, &str, &str) {
    let glob = (None, ":", word);
    let Some((engine, text)) = word.split_once('@') else { return glob };
    let mut chars = engine.chars();
    match (chars.next(), chars.as_str()) {
        (Some('G' | 'P' | 'I' | 'J'), "") if text.starts_with('@') && text.len() > 1 => {
            // `G@@os@x`: the delimiter is an at sign.
            (engine.chars().next(), "@", &text[1..])
        }
        (Some(letter @ ('G' | 'P' | 'I' | 'J' | 'L' | 'S' | 'E' | 'R' | 'T' | 'M')), "") => (Some(letter), ":", text),
        (Some(letter @ ('G' | 'P' | 'I' | 'J')), delimiter) if delimiter.chars().count() == 1 => {
            (Some(letter), delimiter, text)
        }
        _ => glob,
    }
}
