//! Expressions: what is in each other by which sign, from what binds least to what binds most.

use super::{Is, Next, Node, Parsed, Parser, Wrong};
use crate::rewrite::{Edit, Look, method};

/// How deep expressions may be in each other.
const MAX_DEPTH: usize = 60;

impl Parser<'_, '_> {
    /// What a `{{ }}` tag has.
    pub(in crate::rewrite) fn print(&mut self) -> Parsed {
        let printed = self.tuple(true)?;
        self.close()?;
        if printed.is == Is::Tuple {
            self.edits.extend(Edit::around(printed.start, printed.end, "(", ")"));
        }
        Ok(printed)
    }

    /// Several expressions with commas between them, or one.
    pub(super) fn tuple(&mut self, with_condition: bool) -> Parsed {
        self.several(false, |parser| if with_condition { parser.expression() } else { parser.either() })
    }

    pub(super) fn several(&mut self, in_brackets: bool, item: impl Fn(&mut Self) -> Parsed) -> Parsed {
        let start = self.place();
        let (mut items, mut is_tuple) = (Vec::new(), false);
        loop {
            if !items.is_empty() {
                self.expect_sign(",")?;
            }
            if matches!(self.next()?, Next::Close | Next::Sign(")")) {
                break;
            }
            items.push(item(self)?);
            if !self.is_sign(",")? {
                break;
            }
            is_tuple = true;
        }
        match items.pop() {
            Some(one) if !is_tuple => Ok(one),
            None if !in_brackets => {
                let next = self.next()?;
                self.wrong(format!("Expected an expression, got '{}'", self.describe(next)))
            }
            _ => {
                let is = if in_brackets { Is::Other } else { Is::Tuple };
                Ok(Node { start, end: self.behind(), at: start, is })
            }
        }
    }

    /// What is inside of something.
    fn inside(&mut self, read: impl Fn(&mut Self) -> Parsed) -> Parsed {
        if self.depth == MAX_DEPTH {
            return self.wrong("expressions are too deep in each other");
        }
        self.depth += 1;
        let node = read(self);
        self.depth -= 1;
        node
    }

    /// An expression, which may be a condition.
    pub(in crate::rewrite) fn expression(&mut self) -> Parsed {
        self.inside(Self::condition)
    }

    fn condition(&mut self) -> Parsed {
        let mut node = self.either()?;
        while self.take_word("if")? {
            self.either()?;
            if self.take_word("else")? {
                self.expression()?;
            }
            node = Node { end: self.behind(), is: Is::Other, ..node };
        }
        Ok(node)
    }

    fn either(&mut self) -> Parsed {
        self.joined("or", |parser| parser.joined("and", Self::negation))
    }

    fn joined(&mut self, word: &str, part: impl Fn(&mut Self) -> Parsed) -> Parsed {
        let at = self.place();
        let mut node = part(self)?;
        while self.take_word(word)? {
            let right = part(self)?;
            node = Node { start: node.start, end: right.end, at, is: Is::Other };
        }
        Ok(node)
    }

    fn negation(&mut self) -> Parsed {
        let start = self.place();
        if self.take_word("not")? {
            let inner = self.inside(Self::negation)?;
            return Ok(Node { start, end: inner.end, at: start, is: Is::Other });
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed {
        let at = self.place();
        let first = self.sum()?;
        let (mut last, mut signs) = (first, Vec::new());
        loop {
            let sign = self.at;
            let name = match self.next()? {
                Next::Sign("<") => "__lt__(",
                Next::Sign(">") => "__gt__(",
                Next::Sign("<=") => "__le__(",
                Next::Sign(">=") => "__ge__(",
                Next::Sign("==" | "!=") => "",
                Next::Name("in") => "__in__(",
                Next::Name("not") if self.ahead(1)? == Next::Name("in") => "(not __in__(",
                _ => break,
            };
            self.skip(if name.starts_with("(not") { 2 } else { 1 });
            let before = self.edits.len();
            let is_list = self.is_sign("[")?;
            last = self.sum()?;
            // A list that is only looked at need not be one that can change.
            if is_list && name.contains("in") && self.edits.len() == before + 2 {
                self.edits.truncate(before);
            }
            signs.push((sign, name));
        }
        match signs[..] {
            [] => return Ok(first),
            // What the engine compares as Python does stays as it is.
            [(_, "")] => {}
            [(sign, name)] => {
                let is_not_in = name.starts_with("(not");
                self.edits.extend(Edit::around(first.start, last.end, name, if is_not_in { "))" } else { ")" }));
                self.compared(sign, is_not_in, ",");
            }
            _ => {
                self.edits.extend(Edit::around(first.start, last.end, "__chain__(", ")"));
                for (sign, name) in signs {
                    let is_not_in = name.starts_with("(not");
                    let text = if is_not_in { "not in" } else { self.tokens[sign].text };
                    self.compared(sign, is_not_in, &format!(", '{text}',"));
                }
            }
        }
        Ok(Node { start: first.start, end: last.end, at, is: Is::Other })
    }

    /// Writes what stands between arguments in place of a sign, or of the two words `not in`.
    fn compared(&mut self, sign: usize, is_not_in: bool, text: &str) {
        self.edits.push(Edit::replace(&self.tokens[sign], text));
        if is_not_in {
            self.edits.push(Edit::replace(&self.tokens[sign + 1], ""));
        }
    }

    fn sum(&mut self) -> Parsed {
        self.binary(Self::text, |sign| match sign {
            "+" => Some("__add__("),
            "-" => Some("__sub__("),
            _ => None,
        })
    }

    /// Values put together with `~`.
    fn text(&mut self) -> Parsed {
        let at = self.place();
        let first = self.product()?;
        let mut last = first;
        while self.is_sign("~")? {
            self.edits.push(Edit::replace(&self.tokens[self.at], ","));
            self.skip(1);
            last = self.product()?;
        }
        if last.start == first.start {
            return Ok(first);
        }
        self.edits.extend(Edit::around(first.start, last.end, "__concat__(", ")"));
        Ok(Node { start: first.start, end: last.end, at, is: Is::Other })
    }

    fn product(&mut self) -> Parsed {
        self.binary(Self::power, |sign| match sign {
            "*" => Some("__mul__("),
            "/" => Some("__div__("),
            "//" => Some("__floordiv__("),
            "%" => Some("__mod__("),
            _ => None,
        })
    }

    fn power(&mut self) -> Parsed {
        self.binary(|parser| parser.unary(true), |sign| (sign == "**").then_some("__pow__("))
    }

    /// Operands with signs between them that become functions.
    fn binary(
        &mut self,
        operand: impl Fn(&mut Self) -> Parsed,
        function: impl Fn(&str) -> Option<&'static str>,
    ) -> Parsed {
        let at = self.place();
        let mut left = operand(self)?;
        while let Next::Sign(sign) = self.next()?
            && let Some(name) = function(sign)
        {
            let sign = self.at;
            self.skip(1);
            let right = operand(self)?;
            self.edits.extend(Edit::around(left.start, right.end, name, ")"));
            self.edits.push(Edit::replace(&self.tokens[sign], ","));
            left = Node { start: left.start, end: right.end, at, is: Is::Other };
        }
        Ok(left)
    }

    fn unary(&mut self, with_filters: bool) -> Parsed {
        let start = self.place();
        let sign = match self.next()? {
            Next::Sign("-") => Some("__neg__("),
            Next::Sign("+") => Some("__pos__("),
            _ => None,
        };
        let mut node = match sign {
            Some(name) => {
                let token = self.tokens[self.at];
                self.skip(1);
                let inner = self.inside(|parser| parser.unary(false))?;
                if inner.is == Is::Number && name == "__neg__(" {
                    self.edits.extend(Edit::around(start, inner.end, "(", ")"));
                } else {
                    let [opens, closes] = Edit::around(start, inner.end, name, ")");
                    self.edits.extend([Edit { end: token.end, ..opens }, closes]);
                }
                Node { start, end: inner.end, at: start, is: Is::Other }
            }
            None => self.primary()?,
        };
        node = self.postfix(node)?;
        if with_filters { self.filters(node) } else { Ok(node) }
    }

    pub(super) fn primary(&mut self) -> Parsed {
        let start = self.place();
        let is = match self.next()? {
            Next::Name("true" | "false" | "none" | "True" | "False" | "None") => Is::Constant,
            Next::Name(_) => Is::Name,
            Next::Integer | Next::Float => Is::Number,
            Next::Text => {
                self.skip(1);
                let first = self.at;
                while self.next()? == Next::Text {
                    // Texts side by side are one.
                    self.edits.push(Edit::insert(self.place(), "~ "));
                    self.skip(1);
                }
                if self.at > first {
                    self.edits.extend(Edit::around(start, self.behind(), "(", ")"));
                }
                return Ok(Node { start, end: self.behind(), at: start, is: Is::Text });
            }
            Next::Sign("(") => {
                self.skip(1);
                let inner = self.several(true, Self::expression)?;
                self.expect_sign(")")?;
                return Ok(Node { start, end: self.behind(), at: inner.at, is: Is::Other });
            }
            Next::Sign("[") => return self.literal("]", "__list__(", |parser| parser.expression().map(|_| ())),
            Next::Sign("{") => {
                return self.literal("}", "__dict__(", |parser| {
                    parser.expression()?;
                    parser.expect_sign(":")?;
                    parser.expression().map(|_| ())
                });
            }
            next => return self.wrong(format!("unexpected '{}'", self.describe(next))),
        };
        self.skip(1);
        Ok(Node { start, end: self.behind(), at: start, is })
    }

    /// A list or a mapping: `entry` reads one of what is between the brackets.
    fn literal(&mut self, close: &str, name: &str, entry: impl Fn(&mut Self) -> Parsed<()>) -> Parsed {
        let start = self.place();
        self.skip(1);
        let mut is_first = true;
        while !self.is_sign(close)? {
            if !is_first {
                self.expect_sign(",")?;
                if self.is_sign(close)? {
                    break;
                }
            }
            entry(self)?;
            is_first = false;
        }
        self.expect_sign(close)?;
        self.edits.extend(Edit::around(start, self.behind(), name, ")"));
        Ok(Node { start, end: self.behind(), at: start, is: Is::Other })
    }

    fn postfix(&mut self, mut node: Node) -> Parsed {
        loop {
            node = match self.next()? {
                Next::Sign(".") => self.attribute(node)?,
                Next::Sign("[") => self.item(node)?,
                Next::Sign("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn attribute(&mut self, of: Node) -> Parsed {
        let dot = self.at;
        self.skip(1);
        match self.next()? {
            Next::Name(name) => {
                self.skip(1);
                if self.look == Look::Again && !self.is_sign("(")? {
                    self.edits.push(Edit::replace(&self.tokens[dot], ","));
                    self.edits.push(Edit::replace(&self.tokens[dot + 1], format!("'{name}'")));
                    self.edits.extend(Edit::around(of.start, self.behind(), "__attribute__(", ")"));
                }
            }
            Next::Integer => self.skip(1),
            _ => return self.wrong("expected name or number"),
        }
        Ok(Node { start: of.start, end: self.behind(), at: self.tokens[dot].start, is: Is::Other })
    }

    fn item(&mut self, of: Node) -> Parsed {
        let open = self.at;
        if let Some(name) = method(&self.tokens[open..]) {
            self.edits.push(Edit::replace(&self.tokens[open], "."));
            self.edits.push(Edit::replace(&self.tokens[open + 1], name));
            self.edits.push(Edit::replace(&self.tokens[open + 2], ""));
            self.skip(3);
            return Ok(Node { start: of.start, end: self.behind(), at: self.tokens[open].start, is: Is::Other });
        }
        self.skip(1);
        let (mut count, mut slice) = (0, Vec::new());
        while !self.is_sign("]")? {
            if count > 0 {
                self.expect_sign(",")?;
            }
            slice.extend(self.subscript()?);
            count += 1;
        }
        self.expect_sign("]")?;
        let close = self.at - 1;
        let is_slice = !slice.is_empty();
        if is_slice && count == 1 {
            self.edits.append(&mut slice);
            self.edits.push(Edit::replace(&self.tokens[open], ", "));
            self.edits.push(Edit::replace(&self.tokens[close], ""));
            self.edits.extend(Edit::around(of.start, self.behind(), "__slice__(", ")"));
        }
        if self.look == Look::Again && count == 1 && !is_slice && !self.is_sign("(")? {
            self.edits.push(Edit::replace(&self.tokens[open], ","));
            self.edits.push(Edit::replace(&self.tokens[close], ""));
            self.edits.extend(Edit::around(of.start, self.behind(), "__item__(", ")"));
        }
        Ok(Node { start: of.start, end: self.behind(), at: self.tokens[open].start, is: Is::Other })
    }

    /// What is between brackets, and the changes that make arguments of it if it is a slice.
    fn subscript(&mut self) -> Parsed<Vec<Edit>> {
        let mut changes = Vec::new();
        if self.is_sign(":")? {
            changes.push(Edit::insert(self.place(), "none"));
        } else {
            self.expression()?;
        }
        let before = changes.len();
        for _ in 0..2 {
            let colon = self.at;
            if !self.take_sign(":")? {
                break;
            }
            changes.push(Edit::replace(&self.tokens[colon], ", "));
            if matches!(self.next()?, Next::Sign("]" | "," | ":")) {
                changes.push(Edit::insert(self.place(), "none"));
            } else {
                self.expression()?;
            }
        }
        Ok(if changes.len() == before { Vec::new() } else { changes })
    }

    fn call(&mut self, of: Node) -> Parsed {
        let (at, open) = (self.place(), self.at);
        self.arguments()?;
        // A recursive loop goes through its items as the loop itself does.
        let is_loop =
            of.is == Is::Name && self.tokens.get(open.wrapping_sub(1)).is_some_and(|name| name.text == "loop");
        if is_loop
            && let [_, inside @ .., _] = &self.tokens[open..self.at]
            && let (Some(first), Some(last)) = (inside.first(), inside.last())
        {
            self.edits.extend(Edit::around(first.start, last.end, "__each__(", ")"));
        }
        Ok(Node { start: of.start, end: self.behind(), at, is: Is::Call })
    }

    fn arguments(&mut self) -> Parsed<()> {
        let open = self.place();
        self.expect_sign("(")?;
        let (mut is_first, mut named, mut list, mut map) = (true, false, false, false);
        while !self.is_sign(")")? {
            if !is_first {
                self.expect_sign(",")?;
                if self.is_sign(")")? {
                    break;
                }
            }
            is_first = false;
            let fits = match self.next()? {
                Next::Sign("*") => {
                    self.skip(1);
                    !std::mem::replace(&mut list, true) && !map
                }
                Next::Sign("**") => {
                    self.skip(1);
                    !std::mem::replace(&mut map, true)
                }
                Next::Name(_) if self.ahead(1)? == Next::Sign("=") => {
                    self.skip(2);
                    named = true;
                    !map
                }
                _ => !list && !map && !named,
            };
            if !fits {
                return Err(Wrong { message: "invalid syntax for function call expression".to_owned(), at: open });
            }
            self.expression()?;
        }
        self.expect_sign(")")
    }

    fn filters(&mut self, mut node: Node) -> Parsed {
        loop {
            let at = self.place();
            node = match self.next()? {
                Next::Sign("|") => {
                    self.skip(1);
                    let at = self.place();
                    self.filter()?;
                    Node { start: node.start, end: self.behind(), at, is: Is::Other }
                }
                Next::Name("is") => {
                    self.test()?;
                    Node { start: node.start, end: self.behind(), at, is: Is::Other }
                }
                Next::Sign("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    /// The name of a filter, and its arguments.
    pub(super) fn filter(&mut self) -> Parsed<()> {
        self.dotted()?;
        if self.is_sign("(")? { self.arguments() } else { Ok(()) }
    }

    fn dotted(&mut self) -> Parsed<()> {
        self.expect_name()?;
        while self.take_sign(".")? {
            self.expect_name()?;
        }
        Ok(())
    }

    fn test(&mut self) -> Parsed<()> {
        self.skip(1);
        self.take_word("not")?;
        self.dotted()?;
        match self.next()? {
            Next::Sign("(") => self.arguments(),
            Next::Name("else" | "or" | "and") => Ok(()),
            Next::Name("is") => self.wrong("You cannot chain multiple tests with is"),
            Next::Name(_) | Next::Text | Next::Integer | Next::Float | Next::Sign("[" | "{") => {
                let argument = self.primary()?;
                self.postfix(argument).map(|_| ())
            }
            _ => Ok(()),
        }
    }
}
