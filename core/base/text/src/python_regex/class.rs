//! Classes of Python's expressions: `[a-z]`. They know neither sets of sets nor operators nor names of classes.

use super::escape::{Escaped, class};
use super::translate::{Item, Parsed, Parser, Width};

impl Parser {
    /// Parses a class whose bracket was read.
    pub fn class(&mut self, flags: u32, start: usize) -> Parsed<Item> {
        let is_ascii = Self::is_ascii(flags);
        self.out.push('[');
        if self.eat('^') {
            self.out.push('^');
        }
        let first = self.at;
        loop {
            let at = self.at;
            let Some(c) = self.next() else { return self.refuse("unterminated character set", start) };
            if c == ']' && at != first {
                break;
            }
            let low = self.member(c, at)?;
            if !self.eat('-') {
                self.write(&low, is_ascii);
                continue;
            }
            let middle = self.at;
            let Some(c) = self.next() else { return self.refuse("unterminated character set", start) };
            if c == ']' {
                self.write(&low, is_ascii);
                self.write(&Escaped::Char('-'), is_ascii);
                break;
            }
            let high = self.member(c, middle)?;
            match (&low, &high) {
                (Escaped::Char(from), Escaped::Char(to)) if from <= to => {
                    self.write(&low, is_ascii);
                    self.out.push('-');
                    self.write(&high, is_ascii);
                }
                _ => {
                    let range: String = self.text[at..self.at].iter().collect();
                    return self.refuse(format_args!("bad character range {range}"), at);
                }
            }
        }
        self.out.push(']');
        Ok(Item::Part(Width::ONE))
    }

    fn member(&mut self, c: char, at: usize) -> Parsed<Escaped> {
        if c == '\\' { self.escape_in_class(at) } else { Ok(Escaped::Char(c)) }
    }

    fn write(&mut self, member: &Escaped, is_ascii: bool) {
        match member {
            Escaped::Class(letter) => self.out.push_str(class(*letter, is_ascii)),
            Escaped::Char(c) => {
                if c.is_ascii_punctuation() {
                    self.out.push('\\');
                }
                self.out.push(*c);
            }
        }
    }
}
