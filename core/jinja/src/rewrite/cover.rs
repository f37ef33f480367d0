//! The second rewriting of a guarded template: its printing tags go through the guard of the render, and so does what
//! its blocks capture. Lines stay as they are.
//!
//! | rewritten | becomes |
//! |---|---|
//! | `{{ x }}` | `{{ __guard__((x), id, n) }}`, if `x` may be untrusted |
//! | `set m = __macro__(m, true)` | `set m = __guard__.macro(__macro__(m, true))` |
//! | `call m(x)` | `call __guard__.block(m)(x)` |
//! | `set x` | `set x \| __captured__(__guard__)` |
//! | `set x \| __load_yaml__` | `set x \| __load_yaml__(__guard__)` |
//! | `set x \| f` | `set x \| __uncover__(__guard__) \| f` |
//! | `filter f` | `filter __uncover__(__guard__) \| f \| __cover__(__guard__, id, n)` |

use super::syntax::{Inside, Tags};
use super::tokens::{Kind, Token};
use super::{Edit, apply};

/// Filters that load data, and do so guarded if they are given the guard.
const LOADERS: [&str; 3] = ["__load_yaml__", "__load_json__", "__load_text__"];

/// The printing tags and filter blocks of a template in their order, each with its line and as it is written.
pub(crate) fn printing(source: &str) -> Vec<(usize, &str)> {
    let (mut line, mut counted) = (1, 0);
    let mut found = Vec::new();
    for tag in Tags::new(source) {
        if prints(&tag.inside) {
            line += source[counted..tag.start].matches('\n').count();
            counted = tag.start;
            found.push((line, &source[tag.start..tag.end]));
        }
    }
    found
}

fn prints(inside: &Inside<'_>) -> bool {
    match inside {
        Inside::Print(..) => true,
        Inside::Block(tokens, _) => tokens.first().is_some_and(|tag| tag.is_name("filter")),
        Inside::Raw | Inside::Unfinished(_) => false,
    }
}

/// Rewrites a template, and counts its printing tags and filter blocks. `is_covered` is whether one goes through the
/// guard.
pub(crate) fn cover(text: &str, id: u64, is_covered: &dyn Fn(usize) -> bool) -> (String, usize) {
    let (mut edits, mut count) = (Vec::new(), 0);
    for tag in Tags::new(text) {
        let mut inside = Vec::new();
        match &tag.inside {
            Inside::Print(tokens, _) => {
                if let ([first, ..], [.., last], true) = (&tokens[..], &tokens[..], is_covered(count)) {
                    let close = format!("), {id}, {count})");
                    inside.extend(Edit::around(first.start, last.end, "__guard__((", &close));
                }
            }
            Inside::Block(tokens, _) => block(tokens, id, count, is_covered, &mut inside),
            Inside::Raw | Inside::Unfinished(_) => {}
        }
        count += usize::from(prints(&tag.inside));
        edits.extend(inside.into_iter().map(|edit| Edit {
            start: edit.start + tag.start,
            end: edit.end + tag.start,
            pair: edit.pair.map(|(side, at)| (side, at + tag.start)),
            ..edit
        }));
    }
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    apply(text, edits, &mut out);
    (out, count)
}

fn block(tokens: &[Token<'_>], id: u64, count: usize, is_covered: &dyn Fn(usize) -> bool, edits: &mut Vec<Edit>) {
    let (Some((tag, rest)), Some(last)) = (tokens.split_first(), tokens.last()) else { return };
    match (tag.text, rest) {
        ("filter", [first, ..]) if is_covered(count) => {
            edits.push(Edit::insert(first.start, "__uncover__(__guard__) | "));
            edits.push(Edit::insert(last.end, format!(" | __cover__(__guard__, {id}, {count})")));
        }
        ("set", [_, equals, made, open, ..])
            if equals.is_operator("=") && made.is_name("__macro__") && open.is_operator("(") =>
        {
            edits.extend(Edit::around(made.start, last.end, "__guard__.macro(", ")"));
        }
        // A `set` of a value has its sign before anything else that could be one.
        ("set", _) if !rest.iter().take_while(|token| !token.is_operator("|")).any(|token| token.is_operator("=")) => {
            match rest.iter().position(|token| token.is_operator("|")).and_then(|at| rest.get(at + 1)) {
                None => edits.push(Edit::insert(last.end, " | __captured__(__guard__)")),
                Some(filter) if LOADERS.contains(&filter.text) => {
                    edits.push(Edit::insert(filter.end, "(__guard__)"));
                }
                Some(filter) => edits.push(Edit::insert(filter.start, "__uncover__(__guard__) | ")),
            }
        }
        ("call", _) => call(rest, edits),
        _ => {}
    }
}

/// What a call block calls is between its own parameters, if it has any, and the last brackets.
fn call(tokens: &[Token<'_>], edits: &mut Vec<Edit>) {
    let start = match tokens.first() {
        Some(first) if first.is_operator("(") => {
            let mut depth = 0_usize;
            let closes = |token: &Token<'_>| {
                depth += usize::from(token.is_operator("("));
                depth = depth.saturating_sub(usize::from(token.is_operator(")")));
                depth == 0
            };
            tokens.iter().position(closes).map_or(0, |at| at + 1)
        }
        _ => 0,
    };
    let (mut depth, mut opened) = (0_usize, None);
    for (at, token) in tokens.iter().enumerate().rev() {
        match (token.kind, token.text) {
            (Kind::Operator, ")" | "]" | "}") => depth += 1,
            (Kind::Operator, "(" | "[" | "{") => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            opened = Some(at);
            break;
        }
    }
    if let (Some(first), Some(last)) = (tokens.get(start), opened.and_then(|at| tokens.get(at.checked_sub(1)?)))
        && first.start < last.end
    {
        edits.extend(Edit::around(first.start, last.end, "__guard__.block(", ")"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_prints_and_captures_goes_through_the_guard() {
        for (rewritten, becomes) in [
            ("{{ a }} {{- b.c -}}", "{{ __guard__((a), 7, 0) }} {{- __guard__((b.c), 7, 1) -}}"),
            ("{% raw %}{{ a }}{% endraw %}{{ b }}", "{% raw %}{{ a }}{% endraw %}{{ __guard__((b), 7, 0) }}"),
            ("{% set m = __macro__(m, true) %}", "{% set m = __guard__.macro(__macro__(m, true)) %}"),
            ("{% set x %}{% set y = 1 %}", "{% set x | __captured__(__guard__) %}{% set y = 1 %}"),
            ("{% set  x | __load_yaml__ -%}", "{% set  x | __load_yaml__(__guard__) -%}"),
            ("{% set x | f(a=1) %}", "{% set x | __uncover__(__guard__) | f(a=1) %}"),
            ("{% filter f %}", "{% filter __uncover__(__guard__) | f | __cover__(__guard__, 7, 0) %}"),
            ("{% call m(a, (b)) %}", "{% call __guard__.block(m)(a, (b)) %}"),
            ("{% call(x, y=()) l.m() -%}", "{% call(x, y=()) __guard__.block(l.m)() -%}"),
        ] {
            assert_eq!(cover(rewritten, 7, &|_| true).0, becomes);
        }
    }

    #[test]
    fn tags_have_their_lines() {
        let source = "{# {{ x }} #}\n{{ a }}\n\n{% filter f %}{{\nb }}{% endfilter %}\n{{ c }}";
        let expected = [(2, "{{ a }}"), (4, "{% filter f %}"), (4, "{{\nb }}"), (6, "{{ c }}")];
        assert_eq!(printing(source), expected);
    }
}
