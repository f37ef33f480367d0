//! Statements: the content of `{% %}` tags.

use super::{Next, Parsed, Parser, SyntaxError};
use crate::syntax::nodes::{Expr, Form, Macro, Parameter, Statement};
use crate::syntax::tokens::Span;

/// The possible closing tags of a block.
pub(in crate::syntax) type Closing = &'static [&'static str];

impl Parser<'_, '_> {
    /// Parses a statement, and returns it with its closing tags if it opens a block. Unknown statements are not parsed.
    pub(in crate::syntax) fn statement(&mut self) -> Parsed<Option<(Statement, Closing)>> {
        let Next::Name(tag) = self.next()? else { return self.fail("tag name expected") };
        self.skip(1);
        let (statement, closing): (Statement, Closing) = match tag {
            "do" => (Statement::Do(self.tuple(true)?), &[]),
            "print" => (Statement::Other(vec![self.tuple(true)?]), &[]),
            "if" => (Statement::Other(vec![self.tuple(false)?]), &["elif", "else", "endif"]),
            "for" => (self.for_loop()?, &["endfor", "else"]),
            "set" => self.set()?,
            "macro" => {
                let name = self.expect_name()?;
                let (open, parameters, close) = self.signature()?;
                (Statement::Macro(Macro { name, open, parameters, close }), &["endmacro"])
            }
            "call" => {
                let parameters = if self.is_sign("(")? { self.signature()?.1 } else { Vec::new() };
                let called = self.expression()?;
                if !matches!(called.form, Form::Call { .. }) {
                    return Err(SyntaxError { message: "expected call".to_owned(), at: called.at });
                }
                (Statement::Call { parameters, called }, &["endcall"])
            }
            "filter" => {
                let (first, mut parts) = (self.position(), Vec::new());
                self.filter(&mut parts)?;
                while self.take_sign("|")?.is_some() {
                    self.filter(&mut parts)?;
                }
                (Statement::Filter { first, parts }, &["endfilter"])
            }
            "with" => (self.with()?, &["endwith"]),
            "block" => {
                self.expect_name()?;
                self.take_word("scoped")?;
                self.take_word("required")?;
                (Statement::Other(Vec::new()), &["endblock"])
            }
            "extends" => {
                let file = self.expression()?;
                (Statement::Import { file, names: Vec::new(), context: true }, &[])
            }
            "include" => {
                let file = self.expression()?;
                if self.is_word("ignore")? && self.ahead(1)? == Next::Name("missing") {
                    self.skip(2);
                }
                let context = self.context()?.unwrap_or(true);
                (Statement::Import { file, names: Vec::new(), context }, &[])
            }
            "import" => {
                let file = self.expression()?;
                self.expect_word("as")?;
                self.expect_name()?;
                let context = self.context()?.unwrap_or(false);
                (Statement::Import { file, names: Vec::new(), context }, &[])
            }
            "import_yaml" | "import_json" | "import_text" => {
                let file = self.expression()?;
                self.expect_word("as")?;
                let name = self.expect_name()?;
                let context = self.context()?.unwrap_or(false);
                (Statement::ImportData { file, name, context }, &[])
            }
            "from" => (self.import_names()?, &[]),
            "load_yaml" | "load_json" | "load_text" => {
                let word = self.expect_word("as")?;
                let target = self.target()?;
                let statement = match target.form {
                    Form::Name => Statement::Load { word, name: target.span },
                    _ => Statement::Other(Vec::new()),
                };
                (statement, &["endload"])
            }
            "profile" => {
                let word = self.expect_word("as")?;
                (Statement::Profile { word, name: self.expression()? }, &["endprofile"])
            }
            "break" | "continue" => (Statement::Other(Vec::new()), &[]),
            _ => return Ok(None),
        };
        if !closing.is_empty() {
            self.take_sign(":")?;
        }
        self.close()?;
        Ok(Some((statement, closing)))
    }

    /// Parses a tag that continues or ends a block: `elif x`, `else`, `endblock name`.
    pub(in crate::syntax) fn continuation(&mut self) -> Parsed<Statement> {
        let Next::Name(tag) = self.next()? else { return self.fail("tag name expected") };
        self.skip(1);
        let mut parts = Vec::new();
        match tag {
            "elif" => {
                parts.push(self.tuple(false)?);
                self.take_sign(":")?;
            }
            "else" => _ = self.take_sign(":")?,
            "endblock" if matches!(self.next()?, Next::Name(_)) => self.skip(1),
            _ => {}
        }
        self.close()?;
        Ok(Statement::Other(parts))
    }

    fn for_loop(&mut self) -> Parsed<Statement> {
        let targets = count(&self.target()?);
        self.expect_word("in")?;
        let items = self.tuple(false)?;
        let condition = if self.take_word("if")?.is_some() { Some(self.expression()?) } else { None };
        self.take_word("recursive")?;
        Ok(Statement::For { targets, items, condition })
    }

    fn set(&mut self) -> Parsed<(Statement, Closing)> {
        let targets = if self.ahead(1)? == Next::Sign(".") {
            self.expect_name()?;
            self.skip(1);
            self.expect_name()?;
            None
        } else {
            count(&self.target()?)
        };
        if self.take_sign("=")?.is_some() {
            return Ok((Statement::Set { targets, value: self.tuple(true)? }, &[]));
        }
        let (mut filter, mut parts) = (None, Vec::new());
        while self.take_sign("|")?.is_some() {
            filter.get_or_insert(self.position());
            self.filter(&mut parts)?;
        }
        Ok((Statement::Capture { filter, parts }, &["endset"]))
    }

    fn with(&mut self) -> Parsed<Statement> {
        let mut parts = Vec::new();
        while !matches!(self.next()?, Next::Close) {
            if !parts.is_empty() {
                self.expect_sign(",")?;
            }
            self.target()?;
            self.expect_sign("=")?;
            parts.push(self.expression()?);
        }
        Ok(Statement::Other(parts))
    }

    fn target(&mut self) -> Parsed {
        let target = self.several(false, Self::primary)?;
        match target.form {
            Form::String(_) | Form::Number | Form::Constant => {
                Err(SyntaxError { message: "can't assign to 'const'".to_owned(), at: target.at })
            }
            _ => Ok(target),
        }
    }

    fn signature(&mut self) -> Parsed<(Span, Vec<Parameter>, Span)> {
        let open = self.expect_sign("(")?;
        let (mut parameters, mut has_default): (Vec<Parameter>, _) = (Vec::new(), false);
        loop {
            if self.is_sign(")")? {
                break;
            }
            if let Some(last) = parameters.last_mut() {
                last.comma = Some(self.expect_sign(",")?);
            }
            let name = self.expect_name()?;
            let default = if self.take_sign("=")?.is_some() {
                has_default = true;
                Some(self.expression()?)
            } else if has_default {
                return self.fail("non-default argument follows default argument");
            } else {
                None
            };
            parameters.push(Parameter { name, default, comma: None });
        }
        let close = self.expect_sign(")")?;
        Ok((open, parameters, close))
    }

    /// Parses `with context` or `without context`.
    fn context(&mut self) -> Parsed<Option<bool>> {
        let context = match self.next()? {
            Next::Name("with") => true,
            Next::Name("without") => false,
            _ => return Ok(None),
        };
        if self.ahead(1)? != Next::Name("context") {
            return Ok(None);
        }
        self.skip(2);
        Ok(Some(context))
    }

    /// Parses `from x import a, b as c with context`.
    fn import_names(&mut self) -> Parsed<Statement> {
        let file = self.expression()?;
        self.expect_word("import")?;
        let (mut names, mut is_first) = (Vec::new(), true);
        let context = loop {
            if !is_first {
                self.expect_sign(",")?;
            }
            if matches!(self.next()?, Next::Name(_))
                && let Some(context) = self.context()?
            {
                break Some(context);
            }
            let name = self.expect_name()?;
            if name.of(self.source).starts_with('_') {
                let message = "names starting with an underline can not be imported".to_owned();
                return Err(SyntaxError { message, at: name.start });
            }
            names.push(if self.take_word("as")?.is_some() { self.expect_name()? } else { name });
            is_first = false;
            if let Some(context) = self.context()? {
                break Some(context);
            }
            if !self.is_sign(",")? {
                break None;
            }
        };
        Ok(Statement::Import { file, names, context: context.unwrap_or(false) })
    }
}

/// Returns the number of names in the target of an assignment, if it is a tuple.
fn count(target: &Expr) -> Option<usize> {
    match (&target.form, &target.parts[..]) {
        (Form::Tuple, parts) => Some(parts.len()),
        // `(a, b)`
        (Form::Plain, [inner]) if matches!(inner.form, Form::Plain) && inner.parts.len() > 1 => Some(inner.parts.len()),
        _ => None,
    }
}
