//! Statements in the engine's language: Salt's tags, imports and macros.

use super::Emitter;
use crate::syntax::nodes::{Body, Expr, Form, Macro, Statement, Tag};
use crate::syntax::tokens::{Kind, Span};

/// The parameters of a macro that takes more arguments than it names.
const MORE: &str = "varargs=(), kwargs=none";

impl<'d> Emitter<'d> {
    pub(super) fn statement(&mut self, index: usize, tag: &'d Tag, statement: &Statement) {
        let Some((word, end)) =
            tag.tokens.first().zip(tag.tokens.last()).map(|(word, last)| (word.span, last.span.end))
        else {
            return;
        };
        match statement {
            Statement::Set { targets, value } => {
                let is_literal = matches!(&value.form, Form::Number) || value.is_string_literal();
                match (targets, matches!(value.form, Form::Tuple)) {
                    // The result of an operator is mutable, too.
                    (None, false) if !is_literal => self.around(value, "__own__("),
                    (Some(names), false) => self.around(value, &format!("__unpack__({names}, ")),
                    _ => self.expr(value),
                }
            }
            Statement::Capture { filter, parts } => {
                if let Some(filter) = filter.filter(|_| self.guards()) {
                    self.to(filter);
                    self.put("__uncover__(__guard__) | ");
                }
                self.all(parts);
                if filter.is_none() && self.guards() {
                    self.to(end);
                    self.put(" | __captured__(__guard__)");
                }
            }
            Statement::For { targets, items, condition } => {
                match targets {
                    None => self.around(items, "__each__("),
                    Some(names) => self.around(items, &format!("__each_of__({names}, ")),
                }
                if let Some(condition) = condition {
                    self.expr(condition);
                }
            }
            // Names that begin with `_` are not exported.
            Statement::Do(expression) => {
                self.replace(word, "set __do__ =");
                self.expr(expression);
            }
            Statement::Load { word: preposition, name } => {
                self.replace(word, "set");
                self.replace(*preposition, "");
                self.to(name.end);
                self.loader(word.of(&self.document.source));
            }
            Statement::Profile { word: preposition, name } => {
                self.replace(word, "with __profile__ =");
                self.replace(*preposition, "");
                self.expr(name);
            }
            Statement::ImportData { file, name, context } => self.import_data(word, end, file, *name, *context),
            Statement::Import { file, context, .. } => self.import(tag, word, file, *context),
            Statement::Macro(declared) => self.declare(index, declared),
            Statement::Call { parameters, called } => {
                parameters.iter().filter_map(|parameter| parameter.default.as_ref()).for_each(|value| self.expr(value));
                self.to(called.span.start);
                self.call(called, self.guards());
            }
            Statement::Filter { first, parts } => {
                let arguments = self.guard_arguments();
                self.to(*first);
                if arguments.is_some() {
                    self.put("__uncover__(__guard__) | ");
                }
                self.all(parts);
                if let Some(arguments) = arguments {
                    self.to(end);
                    self.put(" | __cover__(__guard__, ");
                    self.put(&arguments);
                }
            }
            Statement::Other(parts) => {
                match word.of(&self.document.source) {
                    "endload" => self.replace(word, "endset"),
                    "endprofile" => self.replace(word, "endwith"),
                    "endmacro" => self.end_macro(end),
                    _ => {}
                }
                self.all(parts);
            }
        }
    }

    /// Writes the filter that loads captured text.
    fn loader(&mut self, tag: &str) {
        let kind = tag.rsplit('_').next().unwrap_or_default();
        let guard = if self.guards() { "(__guard__)" } else { "" };
        self.put(&format!(" | __load_{kind}__{guard}"));
    }

    /// `import_yaml file as name`: the file is included and captured.
    fn import_data(&mut self, word: Span, end: usize, file: &Expr, name: Span, context: bool) {
        let source = &self.document.source;
        self.to(word.start);
        self.put("set ");
        self.put(name.of(source));
        self.loader(word.of(source));
        self.put(" %}{% with %}{% include __template__(");
        let (start, lines) = (self.out.len(), newlines(source.get(word.start..end)));
        self.at = file.span.start;
        self.expr(file);
        let lines = lines.saturating_sub(newlines(self.out.get(start..)));
        self.put(&format!(", {context}) %}}{{% endwith %}}{{% endset{}", "\n".repeat(lines)));
        self.at = end;
    }

    /// `import`, `from`, `include`, `extends`: the name goes through a function that resolves relative paths.
    fn import(&mut self, tag: &Tag, word: Span, file: &Expr, context: bool) {
        let source = self.document.source.as_bytes();
        let is_include = word.of(&self.document.source) == "include";
        let is_control = |at: usize| usize::from(matches!(source.get(at), Some(b'-' | b'+')));
        if is_include {
            // Names that an included template sets stay in it. A macro of the engine captures the variables that its
            // tags name, except for those in an `include`.
            let mut names = Vec::new();
            file.each_name(&mut |name| names.push(name.of(&self.document.source)));
            let seen = if names.is_empty() { String::new() } else { format!(" __names__ = [{}]", names.join(", ")) };
            self.to(tag.span.start + 2 + is_control(tag.span.start + 2));
            self.put(&format!(" with{seen} %}}{{%"));
        }
        self.to(file.span.start);
        self.put("__template__(");
        self.expr(file);
        self.put(&format!(", {context})"));
        if is_include {
            self.to(tag.span.end - 2 - is_control(tag.span.end.saturating_sub(3)));
            self.put("%}{% endwith ");
        }
    }

    /// Opens a macro. The engine evaluates the last default first, so defaults that name other parameters are set in
    /// the body.
    fn declare(&mut self, index: usize, declared: &Macro) {
        let source = &self.document.source;
        let takes_more = self.takes_more(index);
        self.macros.push((declared.name, takes_more));
        let parameters = &declared.parameters;
        let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.of(source)).collect();
        let looks_back = parameters.iter().enumerate().any(|(index, parameter)| {
            let mut names_earlier = false;
            let mut look = |name: Span| names_earlier |= names[..index].contains(&name.of(source));
            parameter.default.iter().for_each(|default| default.each_name(&mut look));
            names_earlier
        });
        if !looks_back {
            parameters.iter().filter_map(|parameter| parameter.default.as_ref()).for_each(|value| self.expr(value));
            self.to(declared.close.start);
            if takes_more {
                self.put(if parameters.is_empty() { "" } else { ", " });
                self.put(MORE);
            }
            return;
        }
        let more = if takes_more { format!(", {MORE}") } else { String::new() };
        self.replace(declared.open, &format!("({}{more}) %}}", names.join(", ")));
        for (name, parameter) in names.iter().zip(parameters) {
            if let Some(default) = &parameter.default {
                self.replace(parameter.name, &format!("{{%- if {name} is undefined %}}{{% set {name}"));
                self.expr(default);
                parameter.comma.iter().for_each(|comma| self.replace(*comma, " %}{% endif %}"));
            } else {
                self.replace(parameter.name, "");
                parameter.comma.iter().for_each(|comma| self.replace(*comma, ""));
            }
        }
        // The last parameter has a default if any has.
        self.replace(declared.close, " %}{% endif");
    }

    /// Returns whether the body of a macro names `varargs` or `kwargs`.
    fn takes_more(&self, index: usize) -> bool {
        let mut depth = 1_usize;
        for tag in self.document.tags.get(index + 1..).unwrap_or_default() {
            match (&tag.body, self.document.word(tag)) {
                (Body::Block(_), "macro") => depth += 1,
                (Body::Block(_), "endmacro") => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            let names = tag.tokens.iter().filter(|token| token.kind == Kind::Name);
            if names.into_iter().any(|name| matches!(name.span.of(&self.document.source), "varargs" | "kwargs")) {
                return true;
            }
        }
        false
    }

    /// Closes a macro, and wraps it so that it is called as in Python.
    fn end_macro(&mut self, end: usize) {
        let Some((name, takes_more)) = self.macros.pop() else { return };
        self.to(end);
        let name = name.of(&self.document.source);
        let (open, close) = if self.guards() { ("__guard__.macro(", ")") } else { ("", "") };
        self.put(&format!(" %}}{{% set {name} = {open}__macro__({name}, {takes_more}){close}"));
    }
}

fn newlines(text: Option<&str>) -> usize {
    text.unwrap_or_default().matches('\n').count()
}
