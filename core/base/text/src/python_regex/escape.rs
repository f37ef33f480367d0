//! Escapes of Python's expressions: `\d`, `\x41`, `\1`.

use super::translate::{Item, Parsed, Parser, Width};

/// What an escape stands for in a class.
pub(super) enum Escaped {
    Char(char),
    /// A class such as `\d`.
    Class(char),
}

/// Returns what an escaped letter stands for.
pub(super) fn control(letter: char) -> Option<char> {
    Some(match letter {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        _ => return None,
    })
}

/// Returns the content of a class such as `\d` for the engine, as a part of a class in brackets.
pub(super) fn class(letter: char, is_ascii: bool) -> &'static str {
    match (letter, is_ascii) {
        ('d', true) => "0-9",
        ('D', true) => "[^0-9]",
        ('d', false) => r"\d",
        ('D', false) => r"\D",
        ('s', true) => "\t\n\u{b}\u{c}\r ",
        ('S', true) => "[^\t\n\u{b}\u{c}\r ]",
        // Python counts the separators of records as blanks.
        ('s', false) => "\\s\u{1c}-\u{1f}",
        ('S', false) => "[^\\s\u{1c}-\u{1f}]",
        ('w', true) => "0-9A-Za-z_",
        ('W', true) => "[^0-9A-Za-z_]",
        // Python's words have no combining marks.
        ('w', false) => r"\p{L}\p{N}_",
        _ => r"[^\p{L}\p{N}_]",
    }
}

impl Parser {
    /// Parses an escape outside of classes, whose backslash was read.
    pub fn escape(&mut self, flags: u32, start: usize) -> Parsed<Item> {
        let Some(c) = self.next() else { return self.refuse("bad escape (end of pattern)", start) };
        let is_ascii = Self::is_ascii(flags);
        Ok(match c {
            'A' => self.place(r"\A"),
            'Z' => self.place(r"\z"),
            'b' if is_ascii => self.place("(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))"),
            'B' if is_ascii => {
                self.place("(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_])(?!\\A\\z))")
            }
            'b' => self.place(r"\b"),
            // Python finds none in an empty text.
            'B' => self.place(r"(?:\B(?!\A\z))"),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.out += &format!("[{}]", class(c, is_ascii));
                Item::Part(Width::ONE)
            }
            '1'..='9' => self.reference(c, start)?,
            '0' => {
                let c = self.octal(2, start)?;
                self.literal(c)
            }
            _ => {
                let c = self.escaped_char(c, start)?;
                self.literal(c)
            }
        })
    }

    /// Parses an escape in a class, whose backslash was read.
    pub fn escape_in_class(&mut self, start: usize) -> Parsed<Escaped> {
        let Some(c) = self.next() else { return self.refuse("bad escape (end of pattern)", start) };
        Ok(match c {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => Escaped::Class(c),
            'b' => Escaped::Char('\u{8}'),
            '0'..='7' => {
                self.at -= 1;
                Escaped::Char(self.octal(3, start)?)
            }
            '8' | '9' => return self.refuse(format_args!("bad escape \\{c}"), start),
            _ => Escaped::Char(self.escaped_char(c, start)?),
        })
    }

    /// Returns the character of an escape that is read alike in classes and outside.
    fn escaped_char(&mut self, c: char, start: usize) -> Parsed<char> {
        let digits = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            // The names of characters are not known here.
            c if c.is_ascii_alphabetic() => {
                return match control(c) {
                    Some(control) if c != 'b' => Ok(control),
                    _ => self.refuse(format_args!("bad escape \\{c}"), start),
                };
            }
            c => return Ok(c),
        };
        let first = self.at;
        while self.at - first < digits && self.peek().is_some_and(|c| c.is_ascii_hexdigit()) {
            self.at += 1;
        }
        let read: String = self.text[first..self.at].iter().collect();
        if read.len() < digits {
            return self.refuse(format_args!("incomplete escape \\{c}{read}"), start);
        }
        match u32::from_str_radix(&read, 16).ok().and_then(char::from_u32) {
            Some(c) => Ok(c),
            None => self.refuse(format_args!("bad escape \\{c}{read}"), start),
        }
    }

    fn octal_digit(&mut self) -> Option<u32> {
        let digit = self.peek()?.to_digit(8)?;
        self.at += 1;
        Some(digit)
    }

    /// Returns the character with an octal number of at most so many digits.
    fn octal(&mut self, digits: usize, start: usize) -> Parsed<char> {
        let mut number = 0;
        for _ in 0..digits {
            let Some(digit) = self.octal_digit() else { break };
            number = number * 8 + digit;
        }
        match u8::try_from(number) {
            Ok(byte) => Ok(char::from(byte)),
            Err(_) => self.refuse(format_args!("octal escape value \\{number:o} outside of range 0-0o377"), start),
        }
    }

    /// Parses the number of a group, or an octal number of three digits.
    fn reference(&mut self, first: char, start: usize) -> Parsed<Item> {
        let is_octal = |at: usize| self.text.get(at).is_some_and(|c| c.is_digit(8));
        if first.is_digit(8) && is_octal(self.at) && is_octal(self.at + 1) {
            self.at -= 1;
            let c = self.octal(3, start)?;
            return Ok(self.literal(c));
        }
        let mut group = first.to_digit(10).unwrap_or_default() as usize;
        if let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            group = group * 10 + digit as usize;
        }
        if group >= self.groups.len() {
            return self.refuse(format_args!("invalid group reference {group}"), start + 1);
        }
        self.backreference(group, start)
    }

    /// Writes a reference to the text of a group.
    pub fn backreference(&mut self, group: usize, start: usize) -> Parsed<Item> {
        let Some(width) = self.groups[group] else { return self.refuse("cannot refer to an open group", start) };
        self.visible(group, start)?;
        self.out += &format!("(?:\\{group})");
        Ok(Item::Part(width))
    }

    /// Refuses a group that the look-behind itself defines.
    pub fn visible(&self, group: usize, start: usize) -> Parsed<()> {
        match self.behind {
            Some(_) if self.groups.get(group).is_some_and(Option::is_none) => {
                self.refuse("cannot refer to an open group", start)
            }
            Some(before) if group >= before => {
                self.refuse("cannot refer to group defined in the same lookbehind subpattern", start)
            }
            _ => Ok(()),
        }
    }
}
