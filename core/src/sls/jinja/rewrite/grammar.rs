//! What is inside of a tag, read as Jinja reads it. From it follow the changes that expressions need, and Jinja's own
//! words for what is wrong.

use super::tokens::{Ending, Kind, Token};
use super::{Edit, Look};

/// How deep expressions may be in each other.
const MAX_DEPTH: usize = 60;

/// What is wrong in a tag, and where in its text.
#[derive(Debug)]
pub(super) struct Wrong {
    pub message: String,
    pub at: usize,
}

/// An expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub start: usize,
    pub end: usize,
    /// The place whose line Jinja tells when the expression fails.
    pub at: usize,
    pub is: Is,
}

/// What an expression is, as far as it matters to who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    Name,
    Text,
    Number,
    Constant,
    Call,
    Other,
}

/// The token that is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next<'a> {
    Name(&'a str),
    Integer,
    Float,
    Text,
    Sign(&'a str),
    /// The sign that closes the tag.
    Close,
    /// The end of the template.
    End,
}

type Parsed<T = Node> = Result<T, Wrong>;

/// Reads the tokens of one tag.
pub(super) struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    ending: &'t Ending,
    is_block: bool,
    look: Look,
    depth: usize,
    /// What the expressions that were read need.
    pub edits: Vec<Edit>,
}

impl<'t, 'a> Parser<'t, 'a> {
    pub(super) fn new(tokens: &'t [Token<'a>], ending: &'t Ending, is_block: bool, look: Look) -> Self {
        Parser { tokens, at: 0, ending, is_block, look, depth: 0, edits: Vec::new() }
    }

    fn ahead(&self, by: usize) -> Parsed<Next<'a>> {
        let Some(token) = self.tokens.get(self.at + by) else {
            return match self.ending {
                Ending::Closed(_) => Ok(Next::Close),
                Ending::Unfinished => Ok(Next::End),
                Ending::Bad { message, at } => Err(Wrong { message: message.clone(), at: *at }),
            };
        };
        Ok(match token.kind {
            Kind::Name => Next::Name(token.text),
            Kind::Text => Next::Text,
            Kind::Number if token.text.contains('.') => Next::Float,
            Kind::Number => Next::Integer,
            Kind::Operator => Next::Sign(token.text),
        })
    }

    fn next(&self) -> Parsed<Next<'a>> {
        self.ahead(0)
    }

    /// Where the next token begins.
    fn place(&self) -> usize {
        match self.tokens.get(self.at) {
            Some(token) => token.start,
            None => self.tokens.last().map_or(0, |token| token.end),
        }
    }

    /// Where the last token that was taken ended.
    fn behind(&self) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.end)
    }

    fn describe(&self, next: Next<'a>) -> &'a str {
        match next {
            Next::Name(text) | Next::Sign(text) => text,
            Next::Integer => "integer",
            Next::Float => "float",
            Next::Text => "string",
            Next::Close if self.is_block => "end of statement block",
            Next::Close => "end of print statement",
            Next::End => "end of template",
        }
    }

    fn wrong<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Wrong { message: message.into(), at: self.place() })
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        match self.next()? {
            Next::End => self.wrong(format!("unexpected end of template, expected '{what}'.")),
            next => self.wrong(format!("expected token '{what}', got '{}'", self.describe(next))),
        }
    }

    fn skip(&mut self, by: usize) {
        self.at += by;
    }

    fn is_sign(&self, sign: &str) -> Parsed<bool> {
        Ok(self.next()? == Next::Sign(sign))
    }

    fn is_word(&self, word: &str) -> Parsed<bool> {
        Ok(self.next()? == Next::Name(word))
    }

    fn take_sign(&mut self, sign: &str) -> Parsed<bool> {
        let is = self.is_sign(sign)?;
        self.skip(usize::from(is));
        Ok(is)
    }

    fn take_word(&mut self, word: &str) -> Parsed<bool> {
        let is = self.is_word(word)?;
        self.skip(usize::from(is));
        Ok(is)
    }

    fn expect_sign(&mut self, sign: &str) -> Parsed<()> {
        if self.take_sign(sign)? { Ok(()) } else { self.expected(sign) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.take_word(word)? { Ok(()) } else { self.expected(word) }
    }

    fn expect_name(&mut self) -> Parsed<&'a str> {
        match self.next()? {
            Next::Name(name) => {
                self.skip(1);
                Ok(name)
            }
            _ => self.expected("name"),
        }
    }

    /// That the tag ends here.
    pub(super) fn close(&self) -> Parsed<()> {
        let name = self.describe(Next::Close);
        if self.next()? == Next::Close { Ok(()) } else { self.expected(name) }
    }

    /// What a `{{ }}` tag has.
    pub(super) fn print(&mut self) -> Parsed {
        let printed = self.tuple(true)?;
        self.close()?;
        Ok(printed)
    }

    /// Several expressions with commas between them, or one.
    fn tuple(&mut self, with_condition: bool) -> Parsed {
        self.several(false, |parser| if with_condition { parser.expression() } else { parser.either() })
    }

    fn several(&mut self, in_brackets: bool, item: impl Fn(&mut Self) -> Parsed) -> Parsed {
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
            _ => Ok(Node { start, end: self.behind(), at: start, is: Is::Other }),
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
    pub(super) fn expression(&mut self) -> Parsed {
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
        let (mut count, mut last, mut change) = (0, first, Vec::new());
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
            let is_not_in = name.starts_with("(not");
            self.skip(1 + usize::from(is_not_in));
            let before = self.edits.len();
            let is_list = self.is_sign("[")?;
            let right = self.sum()?;
            // A list that is only looked at need not be one that can change.
            if is_list && name.contains("in") && self.edits.len() == before + 2 {
                self.edits.truncate(before);
            }
            if !name.is_empty() {
                change.extend(Edit::around(first.start, right.end, name, if is_not_in { "))" } else { ")" }));
                change.push(Edit::replace(&self.tokens[sign], ","));
                if is_not_in {
                    change.push(Edit::replace(&self.tokens[sign + 1], ""));
                }
            }
            (count, last) = (count + 1, right);
        }
        match count {
            0 => return Ok(first),
            1 => self.edits.append(&mut change),
            // A chain such as `a < b < c` stays as it is.
            _ => {}
        }
        Ok(Node { start: first.start, end: last.end, at, is: Is::Other })
    }

    fn sum(&mut self) -> Parsed {
        self.binary(
            |parser| parser.text(),
            |sign| match sign {
                "+" => Some("__add__("),
                "-" => Some("__sub__("),
                _ => None,
            },
        )
    }

    /// Values put together with `~`.
    fn text(&mut self) -> Parsed {
        let at = self.place();
        let mut node = self.product()?;
        while self.take_sign("~")? {
            let right = self.product()?;
            node = Node { start: node.start, end: right.end, at, is: Is::Other };
        }
        Ok(node)
    }

    fn product(&mut self) -> Parsed {
        self.binary(
            |parser| parser.power(),
            |sign| match sign {
                "*" => Some("__mul__("),
                "/" => Some("__div__("),
                "//" => Some("__floordiv__("),
                "%" => Some("__mod__("),
                _ => None,
            },
        )
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

    fn primary(&mut self) -> Parsed {
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
        if let Some(name) = super::method(&self.tokens[open..]) {
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
        let at = self.place();
        self.arguments()?;
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
    fn filter(&mut self) -> Parsed<()> {
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

    /// What a `{% %}` tag has, after which more is in the template for `closing`. What is not known is told by nothing.
    pub(super) fn statement(&mut self) -> Parsed<Option<Statement>> {
        let Next::Name(tag) = self.next()? else { return self.wrong("tag name expected") };
        self.skip(1);
        let closing: &[&str] = match tag {
            "print" | "do" => {
                self.tuple(true)?;
                &[]
            }
            "if" => {
                self.tuple(false)?;
                &["elif", "else", "endif"]
            }
            "for" => {
                self.target()?;
                self.expect_word("in")?;
                self.tuple(false)?;
                if self.take_word("if")? {
                    self.expression()?;
                }
                self.take_word("recursive")?;
                &["endfor", "else"]
            }
            "set" => {
                if self.ahead(1)? == Next::Sign(".") {
                    self.expect_name()?;
                    self.skip(1);
                    self.expect_name()?;
                } else {
                    self.target()?;
                }
                if self.take_sign("=")? {
                    self.tuple(true)?;
                    &[]
                } else {
                    while self.take_sign("|")? {
                        self.filter()?;
                    }
                    &["endset"]
                }
            }
            "macro" => {
                self.expect_name()?;
                self.signature()?;
                &["endmacro"]
            }
            "call" => {
                if self.is_sign("(")? {
                    self.signature()?;
                }
                let called = self.expression()?;
                if called.is != Is::Call {
                    return Err(Wrong { message: "expected call".to_owned(), at: called.at });
                }
                &["endcall"]
            }
            "filter" => {
                self.filter()?;
                while self.take_sign("|")? {
                    self.filter()?;
                }
                &["endfilter"]
            }
            "with" => {
                let mut is_first = true;
                while !matches!(self.next()?, Next::Close) {
                    if !is_first {
                        self.expect_sign(",")?;
                    }
                    is_first = false;
                    self.target()?;
                    self.expect_sign("=")?;
                    self.expression()?;
                }
                &["endwith"]
            }
            "block" => {
                self.expect_name()?;
                self.take_word("scoped")?;
                self.take_word("required")?;
                &["endblock"]
            }
            "extends" => {
                self.expression()?;
                &[]
            }
            "include" => {
                self.expression()?;
                if self.is_word("ignore")? && self.ahead(1)? == Next::Name("missing") {
                    self.skip(2);
                }
                self.context()?;
                &[]
            }
            "import" | "import_yaml" | "import_json" | "import_text" => {
                self.expression()?;
                self.expect_word("as")?;
                self.expect_name()?;
                self.context()?;
                &[]
            }
            "from" => {
                self.names()?;
                &[]
            }
            "load_yaml" | "load_json" | "load_text" => {
                self.expect_word("as")?;
                self.target()?;
                &["endload"]
            }
            "profile" => {
                self.expect_word("as")?;
                self.expression()?;
                &["endprofile"]
            }
            "break" | "continue" => &[],
            _ => return Ok(None),
        };
        if !closing.is_empty() {
            self.take_sign(":")?;
        }
        self.close()?;
        Ok(Some(Statement { closing }))
    }

    /// What follows the word of a tag that goes on with a block, or ends one: `elif x`, `else`, `endblock name`.
    pub(super) fn goes_on(&mut self) -> Parsed<()> {
        let Next::Name(tag) = self.next()? else { return self.wrong("tag name expected") };
        self.skip(1);
        match tag {
            "elif" => {
                self.tuple(false)?;
                self.take_sign(":")?;
            }
            "else" => _ = self.take_sign(":")?,
            "endblock" if matches!(self.next()?, Next::Name(_)) => self.skip(1),
            _ => {}
        }
        self.close()
    }

    fn target(&mut self) -> Parsed<()> {
        let before = self.edits.len();
        let target = self.several(false, Self::primary)?;
        self.edits.truncate(before);
        match target.is {
            Is::Text | Is::Number | Is::Constant => {
                Err(Wrong { message: "can't assign to 'const'".to_owned(), at: target.at })
            }
            _ => Ok(()),
        }
    }

    fn signature(&mut self) -> Parsed<()> {
        self.expect_sign("(")?;
        let (mut is_first, mut has_default) = (true, false);
        while !self.is_sign(")")? {
            if !is_first {
                self.expect_sign(",")?;
            }
            is_first = false;
            self.expect_name()?;
            if self.take_sign("=")? {
                has_default = true;
                self.expression()?;
            } else if has_default {
                return self.wrong("non-default argument follows default argument");
            }
        }
        self.expect_sign(")")
    }

    /// `with context`, `without context`.
    fn context(&mut self) -> Parsed<bool> {
        let is = matches!(self.next()?, Next::Name("with" | "without")) && self.ahead(1)? == Next::Name("context");
        self.skip(if is { 2 } else { 0 });
        Ok(is)
    }

    /// `from x import a, b as c with context`.
    fn names(&mut self) -> Parsed<()> {
        self.expression()?;
        self.expect_word("import")?;
        let mut is_first = true;
        loop {
            if !is_first {
                self.expect_sign(",")?;
            }
            if matches!(self.next()?, Next::Name(_)) && self.context()? {
                return Ok(());
            }
            let at = self.place();
            if self.expect_name()?.starts_with('_') {
                let message = "names starting with an underline can not be imported".to_owned();
                return Err(Wrong { message, at });
            }
            if self.take_word("as")? {
                self.expect_name()?;
            }
            is_first = false;
            if self.context()? || !self.is_sign(",")? {
                return Ok(());
            }
        }
    }
}

/// A tag that is known.
#[derive(Debug)]
pub(super) struct Statement {
    /// The tags that a block that it opens waits for.
    pub closing: &'static [&'static str],
}
