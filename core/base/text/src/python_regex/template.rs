//! Replacements in Python's syntax: `\1`, `\g<name>`, `\n`.

use super::escape::control;
use super::group::is_identifier;
use super::{Captures, Regex, RegexError};

/// A replacement for the matches of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Group(usize),
}

impl Template {
    /// Parses a replacement, and refuses references to groups that the expression does not have.
    pub fn new(regex: &Regex, text: &str) -> Result<Self, RegexError> {
        let chars: Vec<char> = text.chars().collect();
        let mut parts = Vec::new();
        let (mut plain, mut at) = (String::new(), 0);
        while at < chars.len() {
            let (part, end) = match chars[at] {
                '\\' => escaped(regex, &chars, at)?,
                c => {
                    plain.push(c);
                    at += 1;
                    continue;
                }
            };
            at = end;
            match part {
                Part::Text(text) => plain.push_str(&text),
                group @ Part::Group(_) => {
                    parts.extend((!plain.is_empty()).then(|| Part::Text(std::mem::take(&mut plain))));
                    parts.push(group);
                }
            }
        }
        parts.extend((!plain.is_empty()).then_some(Part::Text(plain)));
        Ok(Template(parts))
    }

    /// Returns a replacement by the text itself.
    pub fn literal(text: &str) -> Self {
        Template(vec![Part::Text(text.to_owned())])
    }

    /// Appends the replacement of a match. Groups that did not take part are empty.
    pub fn expand(&self, captures: &Captures<'_, str>, out: &mut String) {
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(group) => out.push_str(captures.get(*group).map_or("", |group| group.as_str())),
            }
        }
    }

    /// Returns the length of the replacement of a match, in bytes.
    pub fn size(&self, captures: &Captures<'_, str>) -> usize {
        let length = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Group(group) => captures.get(*group).map_or(0, |group| group.as_str().len()),
        };
        self.0.iter().map(length).fold(0, usize::saturating_add)
    }
}

/// Parses the escape at a backslash, and returns its end.
fn escaped(regex: &Regex, chars: &[char], start: usize) -> Result<(Part, usize), RegexError> {
    let refused = |reason: &str, at| Err(RegexError::at(reason, chars, at));
    let group = |number: usize, at| match number {
        number if number <= regex.groups => Ok(Part::Group(number)),
        _ => Err(RegexError::at(format_args!("invalid group reference {number}"), chars, at)),
    };
    let digit = |at: usize, radix| chars.get(at).and_then(|c| c.to_digit(radix));
    let Some(c) = chars.get(start + 1).copied() else { return refused("bad escape (end of pattern)", start) };
    match c {
        'g' => {
            if chars.get(start + 2) != Some(&'<') {
                return refused("missing <", start + 2);
            }
            let first = start + 3;
            let Some(length) = chars[first..].iter().position(|c| *c == '>') else {
                let reason = if first == chars.len() { "missing group name" } else { "missing >, unterminated name" };
                return refused(reason, first);
            };
            let name: String = chars[first..first + length].iter().collect();
            if name.is_empty() {
                return refused("missing group name", first);
            }
            let end = first + length + 1;
            if is_identifier(&name) {
                let number = regex.group(&name).ok_or_else(|| RegexError(format!("unknown group name '{name}'")))?;
                return Ok((Part::Group(number), end));
            }
            let Ok(number) = name.parse::<usize>() else {
                return refused(&format!("bad character in group name '{name}'"), first);
            };
            Ok((group(number, first)?, end))
        }
        '0' => {
            let digits: Vec<u32> = [start + 2, start + 3].into_iter().map_while(|at| digit(at, 8)).collect();
            let number = digits.iter().fold(0, |all, digit| all * 8 + digit);
            Ok((Part::Text(char::from_u32(number).unwrap_or_default().into()), start + 2 + digits.len()))
        }
        '1'..='9' => {
            if let (Some(a), Some(b), Some(c)) = (digit(start + 1, 8), digit(start + 2, 8), digit(start + 3, 8)) {
                let number = a * 64 + b * 8 + c;
                return match u8::try_from(number) {
                    Ok(byte) => Ok((Part::Text(char::from(byte).into()), start + 4)),
                    Err(_) => refused(&format!("octal escape value \\{number:o} outside of range 0-0o377"), start),
                };
            }
            let first = c.to_digit(10).unwrap_or_default();
            let (number, end) = match digit(start + 2, 10) {
                Some(second) => (first * 10 + second, start + 3),
                None => (first, start + 2),
            };
            Ok((group(number as usize, start + 1)?, end))
        }
        c => match control(c) {
            Some(control) => Ok((Part::Text(control.into()), start + 2)),
            None if c.is_ascii_alphabetic() => refused(&format!("bad escape \\{c}"), start),
            None => Ok((Part::Text(['\\', c].iter().collect()), start + 2)),
        },
    }
}
