//! Expressions in the engine's language: Python's operators and literals as functions.

use super::{Emitter, Purpose};
use crate::syntax::nodes::{Expr, Form, Slice};
use crate::syntax::tokens::Span;

impl Emitter<'_> {
    pub(super) fn all(&mut self, expressions: &[Expr]) {
        for expression in expressions {
            self.expr(expression);
        }
    }

    /// Writes an expression as the last arguments of a function.
    pub(super) fn around(&mut self, expression: &Expr, open: &str) {
        self.to(expression.span.start);
        self.put(open);
        self.expr(expression);
        self.put(")");
    }

    pub(super) fn expr(&mut self, expression: &Expr) {
        self.operand(expression, false);
    }

    /// Writes an expression; `is_called` is true if a call follows it.
    fn operand(&mut self, expression: &Expr, is_called: bool) {
        let Expr { span, form, parts, .. } = expression;
        let records = matches!(self.purpose, Purpose::Diagnose) && !is_called;
        self.to(span.start);
        match form {
            Form::Name | Form::Number | Form::Constant => {}
            Form::String(others) if others.is_empty() => {}
            Form::String(others) => {
                self.put("(");
                for other in others {
                    self.to(*other);
                    self.put("~ ");
                }
                self.to(span.end);
                self.put(")");
            }
            Form::List => self.function("__list__(", expression),
            Form::Dict => self.function("__dict__(", expression),
            Form::Sign { function: "__neg__(", .. } if matches!(parts[..], [Expr { form: Form::Number, .. }]) => {
                self.function("(", expression);
            }
            Form::Sign { function, sign } => {
                self.replace(*sign, function);
                self.all(parts);
                self.put(")");
            }
            Form::Binary { function, sign } => self.separated(function, parts, std::slice::from_ref(sign)),
            Form::Concat(signs) => self.separated("__concat__(", parts, signs),
            Form::Compare(_) => self.compare(expression),
            Form::Attribute { dot, name, is_tested: true } => self.attribute("__tested__(", parts, *dot, *name),
            Form::Attribute { dot, name, .. } if records => {
                self.attribute("__attribute__(", parts, *dot, *name);
            }
            Form::Method { open, name, close } => {
                self.all(parts);
                self.replace(*open, ".");
                self.to(name.start);
                self.at = name.start + 1;
                self.verbatim(name.end - 1);
                self.at = name.end;
                self.replace(*close, "");
            }
            Form::Item { open, close, is_tested } if *is_tested || records => {
                self.put(if *is_tested { "__tested_item__(" } else { "__item__(" });
                let (of, item) = parts.split_at(1);
                self.all(of);
                self.replace(*open, ",");
                self.all(item);
                self.replace(*close, "");
                self.put(")");
            }
            Form::Slice(slice) => self.slice(parts, slice),
            Form::Call { .. } => self.call(expression, false),
            Form::Tuple | Form::Attribute { .. } | Form::Item { .. } | Form::Plain => self.all(parts),
        }
        self.to(span.end);
    }

    /// Writes an expression as the argument of a function; only its parts are rewritten.
    fn function(&mut self, open: &str, expression: &Expr) {
        self.put(open);
        self.all(&expression.parts);
        self.to(expression.span.end);
        self.put(")");
    }

    /// Writes the lookup of an attribute as a function of the value and the name.
    fn attribute(&mut self, open: &str, of: &[Expr], dot: Span, name: Span) {
        self.put(open);
        self.all(of);
        self.replace(dot, ",");
        let quoted = format!("'{}'", name.of(&self.document.source));
        self.replace(name, &quoted);
        self.put(")");
    }

    /// Writes a function of operands, with commas in place of the operators.
    fn separated(&mut self, function: &str, parts: &[Expr], signs: &[Span]) {
        self.put(function);
        let signs = signs.iter().map(Some).chain([None]);
        for (part, sign) in parts.iter().zip(signs) {
            self.expr(part);
            if let Some(sign) = sign {
                self.replace(*sign, ",");
            }
        }
        self.put(")");
    }

    fn compare(&mut self, expression: &Expr) {
        let Expr { form: Form::Compare(comparisons), parts: operands, .. } = expression else { return };
        let Some((first, others)) = operands.split_first() else { return };
        let is_chain = comparisons.len() > 1;
        let function = comparisons.first().and_then(|comparison| comparison.function);
        self.put(if is_chain { "__chain__(" } else { function.unwrap_or_default() });
        self.expr(first);
        for (comparison, operand) in comparisons.iter().zip(others) {
            let is_not = comparison.word.is_some();
            if is_chain {
                let sign = if is_not { "not in" } else { comparison.sign.of(&self.document.source) };
                self.replace(comparison.sign, &format!(", '{sign}',"));
            } else if comparison.function.is_some() {
                self.replace(comparison.sign, ",");
            }
            comparison.word.iter().for_each(|word| self.replace(*word, ""));
            // A list that is only searched need not be mutable.
            let is_searched = is_not || comparison.sign.of(&self.document.source) == "in";
            match operand.form {
                Form::List if is_searched => {
                    self.all(&operand.parts);
                    self.to(operand.span.end);
                }
                _ => self.expr(operand),
            }
        }
        self.put(match function {
            _ if is_chain => ")",
            None => "",
            Some(function) if function.starts_with('(') => "))",
            Some(_) => ")",
        });
    }

    fn slice(&mut self, parts: &[Expr], slice: &Slice) {
        let Slice { open, close, has_start, bounds } = slice;
        let mut parts = parts.iter();
        self.put("__slice__(");
        parts.next().into_iter().for_each(|of| self.expr(of));
        self.replace(*open, ", ");
        if *has_start {
            parts.next().into_iter().for_each(|start| self.expr(start));
        } else {
            bounds.first().into_iter().for_each(|(colon, _)| self.to(colon.start));
            self.put("none");
        }
        let next = bounds.iter().skip(1).map(|(colon, _)| colon.start).chain([close.start]);
        for ((colon, is_given), next) in bounds.iter().zip(next) {
            self.replace(*colon, ", ");
            if *is_given {
                parts.next().into_iter().for_each(|bound| self.expr(bound));
            } else {
                self.to(next);
                self.put("none");
            }
        }
        self.replace(*close, "");
        self.put(")");
    }

    /// Writes a call. A recursive loop iterates like the loop itself; `is_block` marks a guarded call block.
    pub(super) fn call(&mut self, expression: &Expr, is_block: bool) {
        let Expr { form: Form::Call { arguments }, parts, span, .. } = expression else { return };
        let Some((called, parts)) = parts.split_first() else { return };
        // The engine takes no call after a filter.
        let in_brackets = matches!(called.form, Form::Plain) && !is_block;
        self.put(if is_block { "__guard__.block(" } else { "" });
        self.put(if in_brackets { "(" } else { "" });
        self.operand(called, true);
        self.put(if is_block || in_brackets { ")" } else { "" });
        let is_loop = matches!(called.form, Form::Name) && called.span.of(&self.document.source) == "loop";
        let items = arguments.filter(|_| is_loop);
        if let Some(items) = items {
            self.to(items.start);
            self.put("__each__(");
        }
        self.all(parts);
        if let Some(items) = items {
            self.to(items.end);
            self.put(")");
        }
        self.to(span.end);
    }
}
