//! Expressions, from the weakest operator to the strongest.

use super::{Called, Next, Parsed, Parser, SyntaxError, Used};
use crate::syntax::nodes::{Comparison, Expr, Form, Slice};
use crate::syntax::tokens::{Kind, Span};

/// The maximum nesting of expressions.
const MAX_DEPTH: usize = 60;

impl Parser<'_, '_> {
    /// Parses the content of a `{{ }}` tag.
    pub(in crate::syntax) fn print(&mut self) -> Parsed {
        let printed = self.tuple(true)?;
        self.close()?;
        Ok(printed)
    }

    /// Parses one expression, or several separated by commas.
    pub(super) fn tuple(&mut self, with_condition: bool) -> Parsed {
        self.several(false, |parser| if with_condition { parser.expression() } else { parser.either() })
    }

    pub(super) fn several(&mut self, in_brackets: bool, item: impl Fn(&mut Self) -> Parsed) -> Parsed {
        let start = self.position();
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
        if items.len() == 1 && !is_tuple {
            return items.pop().map_or_else(|| self.fail("Expected an expression"), Ok);
        }
        if items.is_empty() && !in_brackets {
            let next = self.next()?;
            return self.fail(format!("Expected an expression, got '{}'", self.describe(next)));
        }
        let form = if in_brackets { Form::Plain } else { Form::Tuple };
        Ok(self.node(start, start, form, items))
    }

    fn nested(&mut self, parse: impl Fn(&mut Self) -> Parsed) -> Parsed {
        if self.depth == MAX_DEPTH {
            return self.fail("expressions are nested too deeply");
        }
        self.depth += 1;
        let node = parse(self);
        self.depth -= 1;
        node
    }

    /// Parses an expression, which may be a condition.
    pub(super) fn expression(&mut self) -> Parsed {
        self.nested(Self::condition)
    }

    fn condition(&mut self) -> Parsed {
        let first = self.used.len();
        let mut node = self.either()?;
        while self.take_word("if")?.is_some() {
            let (start, at) = (node.span.start, node.at);
            let mut parts = vec![node, self.either()?];
            if self.take_word("else")?.is_some() {
                parts.push(self.expression()?);
            }
            node = self.node(start, at, Form::Plain, parts);
            self.used.iter_mut().skip(first).for_each(|used| used.is_late = true);
        }
        Ok(node)
    }

    fn either(&mut self) -> Parsed {
        self.joined("or", |parser| parser.joined("and", Self::negation))
    }

    fn joined(&mut self, word: &str, part: impl Fn(&mut Self) -> Parsed) -> Parsed {
        let at = self.position();
        let first = part(self)?;
        let start = first.span.start;
        let mut parts = vec![first];
        while self.take_word(word)?.is_some() {
            parts.push(part(self)?);
        }
        match parts.pop() {
            Some(only) if parts.is_empty() => Ok(only),
            last => {
                parts.extend(last);
                Ok(self.node(start, at, Form::Plain, parts))
            }
        }
    }

    fn negation(&mut self) -> Parsed {
        let start = self.position();
        if self.take_word("not")?.is_some() {
            let inner = self.nested(Self::negation)?;
            return Ok(self.node(start, start, Form::Plain, vec![inner]));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed {
        let at = self.position();
        let first = self.sum()?;
        let start = first.span.start;
        let (mut parts, mut comparisons) = (vec![first], Vec::new());
        loop {
            let function = match self.next()? {
                Next::Sign("<") => Some("__lt__("),
                Next::Sign(">") => Some("__gt__("),
                Next::Sign("<=") => Some("__le__("),
                Next::Sign(">=") => Some("__ge__("),
                Next::Sign("==" | "!=") => None,
                Next::Name("in") => Some("__in__("),
                Next::Name("not") if self.ahead(1)? == Next::Name("in") => Some("(not __in__("),
                _ => break,
            };
            let sign = self.take();
            let word = (sign.of(self.source) == "not").then(|| self.take());
            comparisons.push(Comparison { sign, word, function });
            parts.push(self.sum()?);
        }
        match parts.pop() {
            Some(only) if comparisons.is_empty() => Ok(only),
            last => {
                parts.extend(last);
                Ok(self.node(start, at, Form::Compare(comparisons), parts))
            }
        }
    }

    fn sum(&mut self) -> Parsed {
        self.binary(Self::concatenation, |sign| match sign {
            "+" => Some("__add__("),
            "-" => Some("__sub__("),
            _ => None,
        })
    }

    /// Parses `a ~ b`.
    fn concatenation(&mut self) -> Parsed {
        let at = self.position();
        let first = self.product()?;
        let start = first.span.start;
        let (mut parts, mut signs) = (vec![first], Vec::new());
        while let Some(sign) = self.take_sign("~")? {
            signs.push(sign);
            parts.push(self.product()?);
        }
        match parts.pop() {
            Some(only) if signs.is_empty() => Ok(only),
            last => {
                parts.extend(last);
                Ok(self.node(start, at, Form::Concat(signs), parts))
            }
        }
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

    /// Parses operands and operators that become functions.
    fn binary(
        &mut self,
        operand: impl Fn(&mut Self) -> Parsed,
        function: impl Fn(&str) -> Option<&'static str>,
    ) -> Parsed {
        let at = self.position();
        let mut left = operand(self)?;
        while let Next::Sign(sign) = self.next()?
            && let Some(function) = function(sign)
        {
            let sign = self.take();
            let start = left.span.start;
            let parts = vec![left, operand(self)?];
            left = self.node(start, at, Form::Binary { function, sign }, parts);
        }
        Ok(left)
    }

    fn unary(&mut self, with_filters: bool) -> Parsed {
        let start = self.position();
        let function = match self.next()? {
            Next::Sign("-") => Some("__neg__("),
            Next::Sign("+") => Some("__pos__("),
            _ => None,
        };
        let node = match function {
            Some(function) => {
                let sign = self.take();
                let inner = self.nested(|parser| parser.unary(false))?;
                self.node(start, start, Form::Sign { function, sign }, vec![inner])
            }
            None => self.primary()?,
        };
        let node = self.postfix(node)?;
        if with_filters { self.filters(node) } else { Ok(node) }
    }

    pub(super) fn primary(&mut self) -> Parsed {
        let start = self.position();
        let form = match self.next()? {
            Next::Name("true" | "false" | "none" | "True" | "False" | "None") => Form::Constant,
            Next::Name(_) => Form::Name,
            Next::Integer | Next::Float => Form::Number,
            Next::String => {
                self.skip(1);
                let mut others = Vec::new();
                while self.next()? == Next::String {
                    others.push(self.take().start);
                }
                return Ok(self.node(start, start, Form::String(others), Vec::new()));
            }
            Next::Sign("(") => {
                self.skip(1);
                let inner = self.several(true, Self::expression)?;
                self.expect_sign(")")?;
                let at = inner.at;
                return Ok(self.node(start, at, Form::Plain, vec![inner]));
            }
            Next::Sign("[") => return self.literal("]", Form::List),
            Next::Sign("{") => return self.literal("}", Form::Dict),
            next => return self.fail(format!("unexpected '{}'", self.describe(next))),
        };
        self.skip(1);
        Ok(self.node(start, start, form, Vec::new()))
    }

    /// Parses a list or a mapping.
    fn literal(&mut self, close: &str, form: Form) -> Parsed {
        let start = self.position();
        self.skip(1);
        let mut parts = Vec::new();
        while !self.is_sign(close)? {
            if !parts.is_empty() {
                self.expect_sign(",")?;
                if self.is_sign(close)? {
                    break;
                }
            }
            parts.push(self.expression()?);
            if matches!(form, Form::Dict) {
                self.expect_sign(":")?;
                parts.push(self.expression()?);
            }
        }
        self.expect_sign(close)?;
        Ok(self.node(start, start, form, parts))
    }

    fn postfix(&mut self, mut node: Expr) -> Parsed {
        loop {
            node = match self.next()? {
                Next::Sign(".") => self.attribute(node)?,
                Next::Sign("[") => self.item(node)?,
                Next::Sign("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn attribute(&mut self, of: Expr) -> Parsed {
        let start = of.span.start;
        let dot = self.take();
        let form = match self.next()? {
            Next::Name(_) => Form::Attribute { dot, name: self.take(), is_tested: false },
            Next::Integer => {
                self.skip(1);
                Form::Plain
            }
            _ => return self.fail("expected name or number"),
        };
        Ok(self.node(start, dot.start, form, vec![of]))
    }

    fn item(&mut self, of: Expr) -> Parsed {
        let start = of.span.start;
        if let Some([open, name, close]) = self.method() {
            self.skip(3);
            return Ok(self.node(start, open.start, Form::Method { open, name, close }, vec![of]));
        }
        let open = self.take();
        let (mut parts, mut slice, mut count) = (vec![of], None, 0);
        while !self.is_sign("]")? {
            if count > 0 {
                self.expect_sign(",")?;
            }
            let (has_start, bounds) = self.subscript(&mut parts)?;
            if !bounds.is_empty() {
                slice = Some((has_start, bounds));
            }
            count += 1;
        }
        let close = self.expect_sign("]")?;
        let form = match slice {
            Some((has_start, bounds)) if count == 1 => Form::Slice(Box::new(Slice { open, close, has_start, bounds })),
            None if count == 1 => Form::Item { open, close, is_tested: false },
            _ => Form::Plain,
        };
        Ok(self.node(start, open.start, form, parts))
    }

    /// Returns the tokens of `['name']` if a call of it follows.
    fn method(&self) -> Option<[Span; 3]> {
        let [open, name, close, call, ..] = self.tokens.get(self.at..)? else { return None };
        let text = name.span.of(self.source);
        let text = text.get(1..text.len().checked_sub(1)?)?;
        let is_name = text.starts_with(|c: char| c == '_' || c.is_alphabetic())
            && text.chars().all(|c| c == '_' || c.is_alphanumeric());
        let is_method = name.kind == Kind::String
            && is_name
            && close.span.of(self.source) == "]"
            && call.span.of(self.source) == "(";
        is_method.then_some([open.span, name.span, close.span])
    }

    /// Parses an item or a slice. Returns whether it has a start, and its colons if it is a slice.
    fn subscript(&mut self, parts: &mut Vec<Expr>) -> Parsed<(bool, Vec<(Span, bool)>)> {
        let has_start = !self.is_sign(":")?;
        if has_start {
            parts.push(self.expression()?);
        }
        let mut bounds = Vec::new();
        while bounds.len() < 2
            && let Some(colon) = self.take_sign(":")?
        {
            let is_open = matches!(self.next()?, Next::Sign("]" | "," | ":"));
            if !is_open {
                parts.push(self.expression()?);
            }
            bounds.push((colon, !is_open));
        }
        Ok((has_start, bounds))
    }

    fn call(&mut self, of: Expr) -> Parsed {
        let (start, at) = (of.span.start, self.position());
        let mut parts = vec![of];
        let arguments = self.arguments(&mut parts)?;
        Ok(self.node(start, at, Form::Call { arguments }, parts))
    }

    /// Parses arguments in brackets. Returns the range between the brackets, unless it is empty.
    fn arguments(&mut self, parts: &mut Vec<Expr>) -> Parsed<Option<Span>> {
        let open = self.position();
        self.expect_sign("(")?;
        let start = self.position();
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
                let message = "invalid syntax for function call expression".to_owned();
                return Err(SyntaxError { message, at: open });
            }
            parts.push(self.expression()?);
        }
        let inside = (!is_first).then(|| self.since(start));
        self.expect_sign(")")?;
        Ok(inside)
    }

    fn filters(&mut self, mut node: Expr) -> Parsed {
        loop {
            let at = self.position();
            let start = node.span.start;
            node = match self.next()? {
                Next::Sign("|") => {
                    self.skip(1);
                    let at = self.position();
                    let mut parts = vec![node];
                    self.filter(&mut parts)?;
                    self.node(start, at, Form::Plain, parts)
                }
                Next::Name("is") => {
                    let mut parts = vec![node];
                    self.test(&mut parts)?;
                    self.node(start, at, Form::Plain, parts)
                }
                Next::Sign("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    /// Parses the name of a filter and its arguments.
    pub(super) fn filter(&mut self, parts: &mut Vec<Expr>) -> Parsed<()> {
        let name = self.dotted_name()?;
        self.used.push(Used { kind: Called::Filter, name, is_late: false });
        if self.is_sign("(")? {
            self.arguments(parts)?;
        }
        Ok(())
    }

    fn dotted_name(&mut self) -> Parsed<Span> {
        let start = self.position();
        self.expect_name()?;
        while self.take_sign(".")?.is_some() {
            self.expect_name()?;
        }
        Ok(self.since(start))
    }

    fn test(&mut self, parts: &mut Vec<Expr>) -> Parsed<()> {
        self.skip(1);
        self.take_word("not")?;
        let test = self.dotted_name()?;
        self.used.push(Used { kind: Called::Test, name: test, is_late: false });
        if let [Expr { form: Form::Attribute { is_tested, .. } | Form::Item { is_tested, .. }, .. }] = &mut parts[..] {
            *is_tested = matches!(test.of(self.source), "defined" | "undefined" | "callable");
        }
        match self.next()? {
            Next::Sign("(") => _ = self.arguments(parts)?,
            Next::Name("else" | "or" | "and") => {}
            Next::Name("is") => return self.fail("You cannot chain multiple tests with is"),
            Next::Name(_) | Next::String | Next::Integer | Next::Float | Next::Sign("[" | "{") => {
                let argument = self.primary()?;
                parts.push(self.postfix(argument)?);
            }
            _ => {}
        }
        Ok(())
    }
}
