//! Groups of Python's expressions: captures, look-around, conditions, flags.

use super::translate::{Item, Parsed, Parser, Stop, Width};
use super::{ASCII, DOTALL, IGNORECASE, MULTILINE, RegexError, VERBOSE};

/// Python's flag for the rules of Unicode, which are those without flags.
const UNICODE: u32 = 32;

/// The highest number of groups that a condition may name.
const GROUPS: usize = 1 << 30;

fn flag(letter: char) -> Option<u32> {
    Some(match letter {
        'i' => IGNORECASE,
        'm' => MULTILINE,
        's' => DOTALL,
        'x' => VERBOSE,
        'a' => ASCII,
        'u' => UNICODE,
        'L' => 4,
        _ => return None,
    })
}

/// Whether a text is an identifier of Python.
pub(super) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl Parser {
    /// Parses a group whose parenthesis was read. There is none for comments and for flags of the whole expression.
    pub fn group(&mut self, flags: &mut u32, may_set_flags: bool, start: usize) -> Parsed<Option<Item>> {
        if !self.eat('?') {
            return self.capture(*flags, None, start).map(Some);
        }
        let Some(kind) = self.next() else { return self.refuse("unexpected end of pattern", self.at) };
        Ok(Some(match kind {
            'P' if self.eat('<') => {
                let name = self.name('>', self.at)?;
                self.capture(*flags, Some(name), start)?
            }
            'P' if self.eat('=') => {
                let at = self.at;
                let name = self.name(')', at)?;
                let group = self.named(&name, at)?;
                self.backreference(group, at)?
            }
            'P' => match self.next() {
                Some(c) => return self.refuse(format_args!("unknown extension ?P{c}"), start + 1),
                None => return self.refuse("unexpected end of pattern", self.at),
            },
            ':' => self.inner("(?:", *flags, start)?,
            '>' => self.inner("(?>", *flags, start)?,
            '#' => loop {
                match self.next() {
                    Some(')') => return Ok(None),
                    Some(_) => {}
                    None => return self.refuse("missing ), unterminated comment", start),
                }
            },
            '=' => self.look("(?=", *flags, start)?,
            '!' => self.look("(?!", *flags, start)?,
            '<' => match self.next() {
                Some('=') => self.look_behind("(?<=", *flags, start)?,
                Some('!') => self.look_behind("(?<!", *flags, start)?,
                Some(c) => return self.refuse(format_args!("unknown extension ?<{c}"), start + 1),
                None => return self.refuse("unexpected end of pattern", self.at),
            },
            '(' => self.condition(*flags, start)?,
            c if c == '-' || flag(c).is_some() => return self.flagged(c, flags, may_set_flags, start),
            c => return self.refuse(format_args!("unknown extension ?{c}"), start + 1),
        }))
    }

    fn closed(&mut self, start: usize) -> Parsed<()> {
        if !self.eat(')') {
            return self.refuse("missing ), unterminated subpattern", start);
        }
        self.out.push(')');
        Ok(())
    }

    /// Reads a name up to its end.
    fn until(&mut self, end: char, at: usize) -> Parsed<String> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(c) if c == end && name.is_empty() => return self.refuse("missing group name", at),
                Some(c) if c == end => return Ok(name),
                Some(c) => name.push(c),
                None if name.is_empty() => return self.refuse("missing group name", at),
                None => return self.refuse(format_args!("missing {end}, unterminated name"), at),
            }
        }
    }

    fn name(&mut self, end: char, at: usize) -> Parsed<String> {
        let name = self.until(end, at)?;
        if is_identifier(&name) {
            return Ok(name);
        }
        self.refuse(format_args!("bad character in group name '{name}'"), at)
    }

    fn named(&self, name: &str, at: usize) -> Parsed<usize> {
        match self.names.iter().find(|(group_name, _)| group_name == name) {
            Some((_, group)) => Ok(*group),
            None => self.refuse(format_args!("unknown group name '{name}'"), at),
        }
    }

    fn capture(&mut self, flags: u32, name: Option<String>, start: usize) -> Parsed<Item> {
        let group = self.groups.len();
        self.groups.push(None);
        if let Some(name) = name {
            if let Some((_, other)) = self.names.iter().find(|(group_name, _)| *group_name == name) {
                let reason = format!("redefinition of group name '{name}' as group {group}; was group {other}");
                return self.refuse(reason, start + 4);
            }
            self.names.push((name, group));
        }
        let item = self.inner("(", flags, start)?;
        if let Item::Part(width) = item {
            self.groups[group] = Some(width);
        }
        Ok(item)
    }

    fn inner(&mut self, opening: &str, mut flags: u32, start: usize) -> Parsed<Item> {
        self.out.push_str(opening);
        let width = self.alternatives(&mut flags, false)?;
        self.closed(start)?;
        Ok(Item::Part(width))
    }

    fn look(&mut self, opening: &str, flags: u32, start: usize) -> Parsed<Item> {
        self.inner(opening, flags, start).map(|_| Item::Part(Width::default()))
    }

    fn look_behind(&mut self, opening: &str, flags: u32, start: usize) -> Parsed<Item> {
        let outer = self.behind;
        self.behind = outer.or(Some(self.groups.len()));
        let item = self.inner(opening, flags, start)?;
        self.behind = outer;
        match item {
            Item::Part(width) if width.least == width.greatest => Ok(Item::Part(Width::default())),
            _ => Err(Stop::Refused(RegexError("look-behind requires fixed-width pattern".into()))),
        }
    }

    fn condition(&mut self, mut flags: u32, start: usize) -> Parsed<Item> {
        let at = self.at;
        let name = self.until(')', at)?;
        let group = if is_identifier(&name) {
            self.named(&name, at)?
        } else {
            match name.parse::<usize>() {
                Ok(0) => return self.refuse("bad group number", at),
                Ok(group) if group < GROUPS => group,
                Ok(group) => return self.refuse(format_args!("invalid group reference {group}"), at),
                Err(_) => return self.refuse(format_args!("bad character in group name '{name}'"), at),
            }
        };
        // The engine takes a group that is open for one that matched.
        if self.groups.get(group).is_some_and(Option::is_none) {
            return self.refuse("cannot refer to an open group", at);
        }
        self.conditions.push((group, at));
        self.visible(group, at)?;
        self.has_choice = true;
        self.out += &format!("(?({group})");
        let mut width = self.branch(&mut flags, false)?;
        self.out.push('|');
        width = if self.eat('|') { width.or(self.branch(&mut flags, false)?) } else { width.or(Width::default()) };
        if self.peek() == Some('|') {
            return self.refuse("conditional backref with more than two branches", self.at);
        }
        self.closed(start)?;
        Ok(Item::Part(width))
    }

    /// Parses flags whose first letter, or `-`, was read.
    fn flagged(&mut self, first: char, flags: &mut u32, may_set: bool, start: usize) -> Parsed<Option<Item>> {
        let (mut on, mut off, mut c) = (0, 0, first);
        while let Some(bit) = flag(c) {
            if c == 'L' {
                return self.refuse("bad inline flags: cannot use 'L' flag with a str pattern", self.at);
            }
            on |= bit;
            if on & (ASCII | UNICODE) == ASCII | UNICODE {
                return self.refuse("bad inline flags: flags 'a', 'u' and 'L' are incompatible", self.at);
            }
            c = self.letter("missing -, : or )", &[')', '-', ':'])?;
        }
        if c == ')' {
            if !may_set {
                return self.refuse("global flags not at the start of the expression", start);
            }
            if on & VERBOSE != 0 && self.flags & VERBOSE == 0 {
                return Err(Stop::Verbose);
            }
            self.flags |= on;
            *flags |= on;
            return Ok(None);
        }
        if c == '-' {
            c = self.letter("missing flag", &[])?;
            while let Some(bit) = flag(c) {
                if matches!(c, 'a' | 'u' | 'L') {
                    return self.refuse("bad inline flags: cannot turn off flags 'a', 'u' and 'L'", self.at);
                }
                off |= bit;
                c = self.letter("missing :", &[':'])?;
            }
        }
        if on & off != 0 {
            return self.refuse("bad inline flags: flag turned on and off", self.at);
        }
        let ascii = if on & UNICODE == 0 { 0 } else { ASCII };
        let inner = (*flags | on) & !(off | ascii);
        let opening = match (*flags & IGNORECASE, inner & IGNORECASE) {
            (0, IGNORECASE) => "(?i:",
            (IGNORECASE, 0) => "(?-i:",
            _ => "(?:",
        };
        self.inner(opening, inner, start).map(Some)
    }

    /// Reads a letter of a flag, or one of the ends.
    fn letter(&mut self, missing: &str, ends: &[char]) -> Parsed<char> {
        match self.next() {
            Some(c) if flag(c).is_some() || ends.contains(&c) => Ok(c),
            Some(c) if c.is_alphabetic() => self.refuse("unknown flag", self.at - 1),
            Some(_) => self.refuse(missing, self.at - 1),
            None => self.refuse(missing, self.at),
        }
    }
}
