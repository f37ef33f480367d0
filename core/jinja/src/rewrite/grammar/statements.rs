//! Statements: what each `{% %}` tag takes, and what it opens.

use super::{Is, Next, Parsed, Parser, Wrong};

impl Parser<'_, '_> {
    /// What a `{% %}` tag has, after which more is in the template for `closing`. What is not known is told by nothing.
    pub(in crate::rewrite) fn statement(&mut self) -> Parsed<Option<Statement>> {
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
    pub(in crate::rewrite) fn goes_on(&mut self) -> Parsed<()> {
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
pub(in crate::rewrite) struct Statement {
    /// The tags that a block that it opens waits for.
    pub(in crate::rewrite) closing: &'static [&'static str],
}
