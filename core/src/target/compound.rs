//! Compound targets: `G@os:Debian and ( web* or not L@db1,db2 )`.
//!
//! Words are split at blanks. `not` binds closer than `and`, `and` closer than `or`; `not` after a
//! term means `and not`. Node groups are expanded in place.

use super::lookup::Comparison;
use super::{Facts, Match, Matcher, TargetError, TargetKind};
use crate::value::{Map, Value};

/// A parsed expression.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Term(Matcher),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

impl Expression {
    pub fn parse(words: &[&str], nodegroups: &Map) -> Result<Self, TargetError> {
        let mut budget = MAX_TERMS;
        Parser { words, at: 0, depth: 0, nodegroups, inside: &[], budget: &mut budget }.whole()
    }

    /// What a node group's definition stands for: compound text, a list of words, or a list of ids.
    pub fn nodegroup(name: &str, nodegroups: &Map) -> Result<Self, TargetError> {
        Parser { words: &[], at: 0, depth: 0, nodegroups, inside: &[], budget: &mut MAX_TERMS.clone() }.group(name)
    }

    /// Whether the facts are in, as far as they are known.
    pub fn check(&self, facts: &impl Facts) -> Match {
        match self {
            Expression::Term(matcher) => matcher.check(facts),
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

/// `decides` if any part says so, else unknown if any part does not know, else `otherwise`.
fn first_or(parts: &[Expression], facts: &impl Facts, decides: Match, otherwise: Match) -> Match {
    let mut sum = otherwise;
    for part in parts {
        match part.check(facts) {
            found if found == decides => return decides,
            Match::Unknown => sum = Match::Unknown,
            _ => {}
        }
    }
    sum
}

/// Terms in one expression, all node groups expanded.
const MAX_TERMS: usize = 10_000;

/// Parentheses and node groups inside each other.
const MAX_DEPTH: usize = 100;

struct Parser<'a> {
    words: &'a [&'a str],
    at: usize,
    depth: usize,
    nodegroups: &'a Map,
    /// The node groups that are being expanded.
    inside: &'a [&'a str],
    budget: &'a mut usize,
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
                let inner = self.any()?;
                self.depth -= 1;
                if self.take(")") { Ok(inner) } else { Err(self.wrong("a '(' is not closed")) }
            }
            Some(word) => {
                let term = self.term(word)?;
                self.at += 1;
                Ok(term)
            }
        }
    }

    fn term(&mut self, word: &str) -> Result<Expression, TargetError> {
        let Some(rest) = self.budget.checked_sub(1) else {
            return Err(TargetError::TooLarge(self.words.join(" ")));
        };
        *self.budget = rest;
        let (letter, delimiter, text) = split_term(word);
        let matcher = match letter {
            None => Matcher::glob(text)?,
            Some('G') => Matcher::grain(text, delimiter, Comparison::Glob)?,
            Some('P') => Matcher::grain(text, delimiter, Comparison::Pcre)?,
            Some('I') => Matcher::pillar(text, delimiter, Comparison::Glob)?,
            Some('J') => Matcher::pillar(text, delimiter, Comparison::Pcre)?,
            Some('E') => Matcher::pcre(text)?,
            Some('S') => Matcher::network(text)?,
            Some('L') => Matcher::list(text.split(',')),
            Some('N') => return self.group(text),
            Some(other) => {
                let kind = if other == 'R' { TargetKind::Range.to_string() } else { format!("{other}@") };
                return Err(TargetError::Unsupported(kind));
            }
        };
        Ok(Expression::Term(matcher))
    }

    fn group(&mut self, name: &str) -> Result<Expression, TargetError> {
        if self.inside.contains(&name) || self.inside.len() + self.depth >= MAX_DEPTH {
            return Err(TargetError::NodegroupLoop(name.to_owned()));
        }
        let unknown = || TargetError::UnknownNodegroup(name.to_owned());
        let definition = self.nodegroups.get(name).ok_or_else(unknown)?;
        let words: Vec<&str> = match definition {
            Value::Str(text) => text.split_whitespace().collect(),
            Value::List(items) => items.iter().filter_map(Value::as_str).collect(),
            _ => return Err(unknown()),
        };
        if !words.is_empty() && words.iter().all(|word| is_plain_id(word)) {
            return Ok(Expression::Term(Matcher::list(words.into_iter())));
        }
        let inside: Vec<&str> = self.inside.iter().copied().chain([name]).collect();
        let (depth, nodegroups) = (self.depth, self.nodegroups);
        Parser { words: &words, at: 0, depth, nodegroups, inside: &inside, budget: self.budget }.whole()
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn wrong(&self, reason: &'static str) -> TargetError {
        let word = self.peek().unwrap_or_default().to_owned();
        TargetError::Compound { expression: self.words.join(" "), place: self.at + 1, word, reason }
    }
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

/// The letter, the delimiter and the rest of `G@os:x` or `G|@os|x`. A word without a letter that
/// Salt knows is a glob as it stands.
fn split_term(word: &str) -> (Option<char>, &str, &str) {
    let glob = (None, ":", word);
    let Some((engine, text)) = word.split_once('@') else { return glob };
    let mut chars = engine.chars();
    match (chars.next(), chars.as_str()) {
        (Some('G' | 'P' | 'I' | 'J'), "") if text.starts_with('@') && text.len() > 1 => {
            // `G@@os@x`: the delimiter is itself an at sign.
            (engine.chars().next(), "@", &text[1..])
        }
        (Some(letter @ ('G' | 'P' | 'I' | 'J' | 'L' | 'N' | 'S' | 'E' | 'R' | 'T' | 'M')), "") => {
            (Some(letter), ":", text)
        }
        (Some(letter @ ('G' | 'P' | 'I' | 'J')), delimiter) if delimiter.chars().count() == 1 => {
            (Some(letter), delimiter, text)
        }
        _ => glob,
    }
}

/// Whether a word of a node group can only be a minion's id.
fn is_plain_id(word: &str) -> bool {
    !matches!(word, "and" | "or" | "not" | "(" | ")") && !word.contains(['@', '*', '?', '[', ']', '(', ')', ',', ' '])
}
