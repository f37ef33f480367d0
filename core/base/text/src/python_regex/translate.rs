//! The parser of Python's expressions, which writes them for the engine.

use super::{ASCII, DOTALL, IGNORECASE, MULTILINE, RegexError, VERBOSE};

/// The depth of groups that is accepted: more than that of the engine, less than what the stack holds.
const DEPTH: usize = 100;

/// The highest number of repetitions that Python accepts.
const REPETITIONS: u64 = u32::MAX as u64 - 1;

/// The least and the greatest number of characters that a part of an expression matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Width {
    pub least: u64,
    pub greatest: u64,
}

impl Width {
    pub const ONE: Width = Width { least: 1, greatest: 1 };

    fn plus(self, other: Width) -> Width {
        Width { least: self.least.saturating_add(other.least), greatest: self.greatest.saturating_add(other.greatest) }
    }

    pub fn or(self, other: Width) -> Width {
        Width { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }

    fn times(self, least: u64, greatest: u64) -> Width {
        Width { least: self.least.saturating_mul(least), greatest: self.greatest.saturating_mul(greatest) }
    }
}

/// An expression for the engine.
pub(super) struct Translated {
    pub pattern: String,
    /// The names of groups, with their numbers.
    pub names: Vec<(String, usize)>,
    pub groups: usize,
    /// Whether there is a `$` that matches at the end of the text alone.
    pub has_end: bool,
    /// Whether the expression may prefer an empty match to a longer one.
    pub has_choice: bool,
}

/// A part of an expression to which a quantifier may be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A place: it matches no character, and cannot be repeated.
    Place,
    /// Anything else.
    Part(Width),
    /// A part with its quantifier.
    Repeated(Width),
}

impl Item {
    fn width(self) -> Width {
        match self {
            Item::Place => Width::default(),
            Item::Part(width) | Item::Repeated(width) => width,
        }
    }
}

/// Why parsing stopped.
pub(super) enum Stop {
    Refused(RegexError),
    /// The expression itself makes it verbose: it must be read again from its start.
    Verbose,
}

pub(super) type Parsed<T> = Result<T, Stop>;

/// The state of the parser.
pub(super) struct Parser {
    pub text: Vec<char>,
    pub at: usize,
    /// The flags of the whole expression.
    pub flags: u32,
    pub out: String,
    /// The widths of the groups, and that of the whole expression as the first; `None` while they are open.
    pub groups: Vec<Option<Width>>,
    pub names: Vec<(String, usize)>,
    /// The greatest number of a group in a condition, and its place.
    pub conditions: Vec<(usize, usize)>,
    /// The number of groups before the outermost look-behind that is open.
    pub behind: Option<usize>,
    pub has_choice: bool,
    end: &'static str,
    has_end: bool,
    depth: usize,
}

/// Translates an expression; a `$` that matches at the end of the text alone becomes `end`.
pub(super) fn translate(pattern: &str, flags: u32, end: &'static str) -> Result<Translated, RegexError> {
    let mut flags = flags;
    loop {
        let mut parser = Parser {
            text: pattern.chars().collect(),
            at: 0,
            flags,
            out: String::with_capacity(pattern.len() + 8),
            groups: vec![None],
            names: Vec::new(),
            conditions: Vec::new(),
            behind: None,
            has_choice: false,
            end,
            has_end: false,
            depth: 0,
        };
        match parser.whole() {
            Ok(()) => return Ok(parser.translated()),
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Verbose) => flags |= VERBOSE,
        }
    }
}

impl Parser {
    fn translated(self) -> Translated {
        let start = if self.flags & IGNORECASE == 0 { "" } else { "(?i)" };
        Translated {
            pattern: format!("{start}{}", self.out),
            names: self.names,
            groups: self.groups.len() - 1,
            has_end: self.has_end,
            has_choice: self.has_choice,
        }
    }

    fn whole(&mut self) -> Parsed<()> {
        let mut flags = self.flags;
        self.alternatives(&mut flags, true)?;
        if self.peek().is_some() {
            return self.refuse("unbalanced parenthesis", self.at);
        }
        match self.conditions.iter().find(|(group, _)| *group >= self.groups.len()) {
            Some((group, at)) => self.refuse(format_args!("invalid group reference {group}"), *at),
            None => Ok(()),
        }
    }

    pub fn refuse<T>(&self, reason: impl std::fmt::Display, at: usize) -> Parsed<T> {
        Err(Stop::Refused(RegexError::at(reason, &self.text, at)))
    }

    pub fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    pub fn eat(&mut self, expected: char) -> bool {
        let is_there = self.peek() == Some(expected);
        self.at += usize::from(is_there);
        is_there
    }

    /// Parses alternatives up to a closing parenthesis or the end.
    pub fn alternatives(&mut self, flags: &mut u32, is_outermost: bool) -> Parsed<Width> {
        let mut width = self.branch(flags, is_outermost)?;
        while self.eat('|') {
            self.out.push('|');
            self.has_choice = true;
            width = width.or(self.branch(flags, false)?);
        }
        Ok(width)
    }

    /// Parses the parts up to `|`, `)` or the end. Flags for the whole expression may be at its start alone.
    pub fn branch(&mut self, flags: &mut u32, may_set_flags: bool) -> Parsed<Width> {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.refuse("groups are nested too deeply", self.at);
        }
        let (mut before, mut last) = (Width::default(), None::<Item>);
        while let Some(c) = self.peek().filter(|c| !matches!(c, '|' | ')')) {
            let start = self.at;
            self.at += 1;
            if *flags & VERBOSE != 0 && matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}') {
                continue;
            }
            if *flags & VERBOSE != 0 && c == '#' {
                while self.next().is_some_and(|c| c != '\n') {}
                continue;
            }
            let item = match c {
                '*' | '+' | '?' | '{' => match self.bounds(c, start)? {
                    Some((least, greatest)) => {
                        last = Some(self.repeated(last, (least, greatest), start)?);
                        continue;
                    }
                    None => self.literal('{'),
                },
                '(' => match self.group(flags, may_set_flags && last.is_none(), start)? {
                    Some(item) => item,
                    None => continue,
                },
                '\\' => self.escape(*flags, start)?,
                '[' => self.class(*flags, start)?,
                '.' => {
                    self.out.push_str(if *flags & DOTALL == 0 { "." } else { "(?s:.)" });
                    Item::Part(Width::ONE)
                }
                '^' => self.place(if *flags & MULTILINE == 0 { r"\A" } else { "(?m:^)" }),
                '$' if *flags & MULTILINE == 0 => {
                    self.has_end = true;
                    self.place(self.end)
                }
                '$' => self.place("(?m:$)"),
                c => self.literal(c),
            };
            before = before.plus(last.replace(item).map(Item::width).unwrap_or_default());
        }
        self.depth -= 1;
        Ok(before.plus(last.map(Item::width).unwrap_or_default()))
    }

    pub fn place(&mut self, text: &str) -> Item {
        self.out.push_str(text);
        Item::Place
    }

    pub fn literal(&mut self, c: char) -> Item {
        // The engine gives `\<` and `\>` a meaning.
        if c.is_ascii_punctuation() && !matches!(c, '<' | '>' | '_') {
            self.out.push('\\');
        }
        self.out.push(c);
        Item::Part(Width::ONE)
    }

    /// Returns the bounds of a quantifier whose first character was read, or `None` if this is a literal `{`.
    fn bounds(&mut self, c: char, start: usize) -> Parsed<Option<(u64, u64)>> {
        match c {
            '*' => return Ok(Some((0, u64::MAX))),
            '+' => return Ok(Some((1, u64::MAX))),
            '?' => return Ok(Some((0, 1))),
            _ => {}
        }
        if self.peek() == Some('}') {
            return Ok(None);
        }
        let back = self.at;
        let least = self.digits();
        let greatest = if self.eat(',') { self.digits() } else { least.clone() };
        if !self.eat('}') {
            self.at = back;
            return Ok(None);
        }
        let number = |digits: &str, default| match digits.parse::<u64>() {
            Ok(number) if number <= REPETITIONS => Ok(number),
            _ if digits.is_empty() => Ok(default),
            _ => self.refuse("the repetition number is too large", start),
        };
        let (least, greatest) = (number(&least, 0)?, number(&greatest, u64::MAX)?);
        if greatest < least {
            return self.refuse("min repeat greater than max repeat", start + 1);
        }
        Ok(Some((least, greatest)))
    }

    fn digits(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        self.text[start..self.at].iter().collect()
    }

    /// Writes a quantifier behind the last item.
    fn repeated(&mut self, last: Option<Item>, (least, greatest): (u64, u64), start: usize) -> Parsed<Item> {
        let width = match last {
            None | Some(Item::Place) => return self.refuse("nothing to repeat", start),
            Some(Item::Repeated(_)) => return self.refuse("multiple repeat", start),
            Some(Item::Part(width)) => width,
        };
        match (least, greatest) {
            (0, 1) => self.out.push('?'),
            (0, u64::MAX) => self.out.push('*'),
            (1, u64::MAX) => self.out.push('+'),
            (_, u64::MAX) => self.out += &format!("{{{least},}}"),
            _ => self.out += &format!("{{{least},{greatest}}}"),
        }
        if self.eat('?') {
            self.has_choice = true;
            self.out.push('?');
        } else if self.eat('+') {
            self.out.push('+');
        }
        Ok(Item::Repeated(width.times(least, greatest)))
    }

    /// Whether `\w` and its like know ASCII alone.
    pub fn is_ascii(flags: u32) -> bool {
        flags & ASCII != 0
    }
}
