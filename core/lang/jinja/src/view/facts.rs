//! What a template refers to, with ranges in the source.

use std::collections::HashSet;
use std::ops::Range;

use crate::environment::known_names;
use crate::syntax::Document;
use crate::syntax::nodes::{Body, Expr, Form, Statement, Tag};
use crate::syntax::parser::Called;
use crate::syntax::tokens::{Kind as TokenKind, Span};

/// A reference or a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The name or the expression.
    pub span: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// The mapping in which a path is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    /// The pillar.
    Pillar,
    /// The grains.
    Grains,
}

/// A tag that reads another template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inclusion {
    /// `import 'f' as x`
    Import,
    /// `from 'f' import a`
    From,
    /// `include 'f'`
    Include,
    /// `extends 'f'`
    Extends,
    /// `import_yaml`, `import_json`, `import_text`
    Data,
}

/// What a fact is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A variable is read.
    Use {
        /// The name.
        name: String,
        /// Whether the template asks somewhere whether it is defined, or gives a default.
        is_guarded: bool,
    },
    /// A variable is assigned: `set`, `for`, parameters, `import`.
    Assign {
        /// The name.
        name: String,
    },
    /// A macro is defined.
    Macro {
        /// The name.
        name: String,
        /// The parameters.
        parameters: Vec<String>,
    },
    /// Another template is read.
    Template {
        /// Its path, if it is a literal.
        path: Option<String>,
        /// The tag.
        by: Inclusion,
        /// The names that are imported from it.
        names: Vec<String>,
        /// Whether it may be missing.
        may_be_missing: bool,
    },
    /// A function of the host is called.
    Call {
        /// The full name.
        function: String,
        /// The number of positional arguments.
        positional: usize,
        /// The names of keyword arguments, with their ranges.
        keywords: Vec<(String, Range<usize>)>,
        /// Whether there are `*args` or `**kwargs`.
        is_open: bool,
        /// Whether the template asks somewhere whether the function exists.
        is_guarded: bool,
    },
    /// A path is looked up in the pillar or the grains.
    Lookup {
        /// The mapping.
        root: Root,
        /// The keys that are known.
        path: Vec<String>,
        /// Whether a missing key is no error.
        has_default: bool,
    },
    /// A filter is applied.
    Filter {
        /// The name.
        name: String,
        /// Whether there is such a filter.
        is_known: bool,
    },
    /// A test is applied.
    Test {
        /// The name.
        name: String,
        /// Whether there is such a test.
        is_known: bool,
    },
}

/// Returns the facts of a template.
pub(super) fn of(document: &Document, lookups: Lookups) -> Vec<Fact> {
    let mut reader =
        Reader { document, lookups, source: document.source(), facts: Vec::new(), guarded: HashSet::new() };
    for tag in &document.tags {
        match &tag.body {
            Body::Print(Some(printed)) => reader.expression(printed),
            Body::Block(Some(statement)) => reader.statement(tag, statement),
            Body::Print(None) | Body::Block(None) | Body::Raw | Body::Unfinished => {}
        }
    }
    let is_known_name = known_names();
    for used in &document.used {
        let name = used.name.of(document.source()).to_owned();
        let is_known = is_known_name(used.kind, &name);
        let kind = match used.kind {
            Called::Filter => Kind::Filter { name, is_known },
            Called::Test => Kind::Test { name, is_known },
        };
        reader.add(used.name, kind);
    }
    let Reader { mut facts, guarded, .. } = reader;
    for fact in &mut facts {
        match &mut fact.kind {
            Kind::Use { name, is_guarded } => *is_guarded |= guarded.contains(name),
            Kind::Call { function, is_guarded, .. } => *is_guarded |= guarded.contains(function),
            _ => {}
        }
    }
    facts.sort_by_key(|fact| fact.span.start);
    facts
}

/// Functions of the host whose first argument is a path with `:` between its parts: the name, the mapping, and whether a
/// missing key is no error.
pub type Lookups = &'static [(&'static str, Root, bool)];

struct Reader<'d> {
    document: &'d Document,
    lookups: Lookups,
    source: &'d str,
    facts: Vec<Fact>,
    /// The variables and functions for which the template asks.
    guarded: HashSet<String>,
}

impl Reader<'_> {
    fn add(&mut self, span: Span, kind: Kind) {
        self.facts.push(Fact { span: span.start..span.end, kind });
    }

    fn assign(&mut self, name: Span) {
        let kind = Kind::Assign { name: name.of(self.source).to_owned() };
        self.add(name, kind);
    }

    /// Assigns the names between two words of a tag, but no attributes.
    fn assign_between(&mut self, tag: &Tag, from: &str, to: &[&str]) {
        let texts: Vec<(TokenKind, Span, &str)> =
            tag.tokens.iter().map(|token| (token.kind, token.span, token.span.of(self.source))).collect();
        let begin = texts.iter().position(|(_, _, text)| *text == from).map_or(0, |at| at + 1);
        let end = texts.iter().skip(begin).position(|(_, _, text)| to.contains(text));
        let end = end.map_or(texts.len(), |end| begin + end);
        let is_dotted = |at: usize| texts.get(at).is_some_and(|(_, _, text)| *text == ".");
        for (at, (kind, span, _)) in texts.iter().enumerate().take(end).skip(begin) {
            if *kind == TokenKind::Name && !is_dotted(at + 1) && !(at > 0 && is_dotted(at - 1)) {
                self.assign(*span);
            }
        }
    }

    fn statement(&mut self, tag: &Tag, statement: &Statement) {
        match statement {
            Statement::Set { value, .. } => {
                self.assign_between(tag, "set", &["="]);
                self.expression(value);
            }
            Statement::Capture { parts, .. } => {
                self.assign_between(tag, "set", &["|"]);
                self.expressions(parts);
            }
            Statement::For { items, condition, .. } => {
                self.assign_between(tag, "for", &["in"]);
                self.expression(items);
                if let Some(condition) = condition {
                    self.expression(condition);
                }
            }
            Statement::Do(value) => self.expression(value),
            Statement::Load { name, .. } => self.assign(*name),
            Statement::Profile { .. } => {}
            Statement::ImportData { file, name, .. } => {
                self.template(tag, file, Inclusion::Data, Vec::new());
                self.assign(*name);
            }
            Statement::Import { file, names, .. } => {
                let by = match self.document.word(tag) {
                    "import" => Inclusion::Import,
                    "from" => Inclusion::From,
                    "extends" => Inclusion::Extends,
                    _ => Inclusion::Include,
                };
                let imported = if by == Inclusion::From { self.imported(tag) } else { Vec::new() };
                self.template(tag, file, by, imported);
                for name in names {
                    self.assign(*name);
                }
                if by == Inclusion::Import {
                    self.assign_between(tag, "as", &["with", "without"]);
                }
            }
            Statement::Macro(declared) => {
                let parameters = declared.parameters.iter().map(|one| one.name.of(self.source).to_owned()).collect();
                self.add(declared.name, Kind::Macro { name: declared.name.of(self.source).to_owned(), parameters });
                for parameter in &declared.parameters {
                    self.assign(parameter.name);
                    if let Some(default) = &parameter.default {
                        self.expression(default);
                    }
                }
            }
            Statement::Call { parameters, called } => {
                for parameter in parameters {
                    self.assign(parameter.name);
                }
                self.expression(called);
            }
            Statement::Filter { parts, .. } => self.expressions(parts),
            Statement::Other(parts) => {
                if self.document.word(tag) == "with" {
                    let pairs = tag.tokens.windows(2);
                    let named = pairs.filter(|pair| pair[1].span.of(self.source) == "=").map(|pair| pair[0].span);
                    let named: Vec<Span> = named.collect();
                    for name in named {
                        self.assign(name);
                    }
                }
                self.expressions(parts);
            }
        }
    }

    /// Returns the names that `from` imports, as the other template calls them.
    fn imported(&self, tag: &Tag) -> Vec<String> {
        let words: Vec<&str> = tag.tokens.iter().map(|token| token.span.of(self.source)).collect();
        let begin = words.iter().position(|word| *word == "import").map_or(words.len(), |at| at + 1);
        let mut names = Vec::new();
        for part in words[begin..].split(|word| *word == ",") {
            if let Some(name) = part.first().filter(|name| !matches!(**name, "with" | "without")) {
                names.push((*name).to_owned());
            }
        }
        names
    }

    fn template(&mut self, tag: &Tag, file: &Expr, by: Inclusion, names: Vec<String>) {
        let path = self.literal(file);
        let may_be_missing = tag.tokens.iter().any(|token| token.span.of(self.source) == "missing");
        self.add(file.span, Kind::Template { path, by, names, may_be_missing });
        self.expression(file);
    }

    fn expressions(&mut self, parts: &[Expr]) {
        for part in parts {
            self.expression(part);
        }
    }

    fn literal(&self, expression: &Expr) -> Option<String> {
        let text = expression.span.of(self.source);
        expression.is_string_literal().then(|| text.get(1..text.len() - 1).unwrap_or_default().to_owned())
    }

    fn expression(&mut self, expression: &Expr) {
        if self.call(expression) || self.lookup(expression) {
            return;
        }
        match (&expression.form, &expression.parts[..]) {
            (Form::Name, _) => {
                let name = expression.span.of(self.source).to_owned();
                self.add(expression.span, Kind::Use { name, is_guarded: false });
            }
            // `x is defined`, `x | default(1)`
            (Form::Plain, [first, ..]) => {
                if let Some(name) = self.asked(first) {
                    self.guarded.insert(name);
                }
            }
            // `'x.y' in salt`
            (Form::Compare(_), [function, Expr { form: Form::Name, span, .. }]) if span.of(self.source) == "salt" => {
                self.guarded.extend(self.literal(function));
            }
            _ => {}
        }
        self.expressions(&expression.parts);
    }

    /// Returns the variable of which a filter or a test makes sure that it is defined.
    fn asked(&self, first: &Expr) -> Option<String> {
        let mut inner = first;
        while !matches!(inner.form, Form::Name) {
            inner = inner.parts.first()?;
        }
        let after = self.source.get(first.span.end..)?.trim_start();
        let is_asked = match after.strip_prefix('|') {
            Some(filter) => ["default", "d("].iter().any(|name| filter.trim_start().starts_with(name)),
            None => after.strip_prefix("is ").is_some_and(|test| {
                let test = test.trim_start().trim_start_matches("not ").trim_start();
                test.starts_with("defined") || test.starts_with("undefined")
            }),
        };
        is_asked.then(|| inner.span.of(self.source).to_owned())
    }

    /// Returns the name of the function of the host that an expression is.
    fn function(&self, expression: &Expr) -> Option<(String, Span)> {
        let of_salt = |inner: &Expr| matches!(inner.form, Form::Name) && inner.span.of(self.source) == "salt";
        match (&expression.form, &expression.parts[..]) {
            (Form::Item { .. }, [of, name]) if of_salt(of) => Some((self.literal(name)?, name.span)),
            (Form::Attribute { name, .. }, [of]) => match (&of.form, &of.parts[..]) {
                (Form::Attribute { name: module, .. }, [salt]) if of_salt(salt) => {
                    let full = format!("{}.{}", module.of(self.source), name.of(self.source));
                    Some((full, Span::new(module.start, name.end)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Adds the call of a function of the host, and what it looks up.
    fn call(&mut self, expression: &Expr) -> bool {
        let (Form::Call { .. }, [called, arguments @ ..]) = (&expression.form, &expression.parts[..]) else {
            return false;
        };
        let Some((function, span)) = self.function(called) else { return false };
        let (mut positional, mut keywords, mut is_open) = (0, Vec::new(), false);
        for (at, argument) in arguments.iter().enumerate() {
            let before = at.checked_sub(1).map_or(called.span.end, |before| arguments[before].span.end);
            let gap = self.source.get(before..argument.span.start).unwrap_or_default().trim_end();
            if let Some(name) = gap.strip_suffix('=') {
                let name = name.trim_end();
                let start = name.rfind(|c: char| c != '_' && !c.is_alphanumeric()).map_or(0, |at| at + 1);
                keywords.push((name[start..].to_owned(), before + start..before + name.len()));
            } else if gap.ends_with('*') {
                is_open = true;
            } else {
                positional += 1;
            }
        }
        let root = self.lookups.iter().find(|(name, ..)| *name == function);
        if let Some((_, root, has_default)) = root
            && let Some(first) = arguments.first()
            && let Some(path) = self.literal(first).filter(|_| positional > 0)
        {
            let path = path.split(':').map(str::to_owned).collect();
            self.add(first.span, Kind::Lookup { root: *root, path, has_default: *has_default });
        }
        self.add(span, Kind::Call { function, positional, keywords, is_open, is_guarded: false });
        self.expressions(arguments);
        true
    }

    /// Returns the path of `pillar.a['b']`.
    fn path(&self, expression: &Expr) -> Option<(Root, Vec<String>)> {
        match (&expression.form, &expression.parts[..]) {
            (Form::Name, _) => match expression.span.of(self.source) {
                "pillar" => Some((Root::Pillar, Vec::new())),
                "grains" => Some((Root::Grains, Vec::new())),
                _ => None,
            },
            (Form::Attribute { name, .. }, [of]) => {
                let (root, mut path) = self.path(of)?;
                path.push(name.of(self.source).to_owned());
                Some((root, path))
            }
            (Form::Item { .. }, [of, key]) => {
                let (root, mut path) = self.path(of)?;
                path.push(self.literal(key)?);
                Some((root, path))
            }
            _ => None,
        }
    }

    /// Adds a look-up in the pillar or the grains.
    fn lookup(&mut self, expression: &Expr) -> bool {
        // `grains.get('os', default)`
        if let (Form::Call { .. }, [called, arguments @ ..]) = (&expression.form, &expression.parts[..])
            && let Some((get, of)) = match (&called.form, &called.parts[..]) {
                (Form::Attribute { name, .. } | Form::Method { name, .. }, [of]) => Some((name, of)),
                _ => None,
            }
            && let Some((root, mut path)) = self.path(of)
        {
            let method = get.of(self.source).trim_matches(['\'', '"']);
            if method == "get"
                && let Some(key) = arguments.first().and_then(|first| self.literal(first))
            {
                path.push(key);
                self.add(expression.span, Kind::Lookup { root, path, has_default: true });
            } else if !path.is_empty() {
                self.add(of.span, Kind::Lookup { root, path, has_default: false });
            }
            self.expressions(arguments);
            return true;
        }
        match self.path(expression) {
            Some((root, path)) if !path.is_empty() => {
                let after = self.source.get(expression.span.end..).unwrap_or_default().trim_start();
                let after = after.trim_start_matches(')').trim_start();
                let is_asked = after.starts_with("is ")
                    || after.strip_prefix('|').is_some_and(|filter| {
                        ["default", "d("].iter().any(|name| filter.trim_start().starts_with(name))
                    });
                self.add(expression.span, Kind::Lookup { root, path, has_default: is_asked });
                true
            }
            _ => false,
        }
    }
}
