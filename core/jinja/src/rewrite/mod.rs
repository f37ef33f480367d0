//! From the Jinja that Salt's users write to the Jinja that minijinja knows, by small changes inside of
//! tags that never add or take a line.
//!
//! | written | becomes |
//! |---|---|
//! | `[1]`, `{'a': 1}` | `__list__([1])`, `__dict__({'a': 1})`: these can change in place |
//! | `set x = y + [1]` | `set x = __own__(y + [1])`: what an operator made can, too |
//! | `do x` | `set __do__ = x`: minijinja's `do` takes calls only |
//! | `a + b`, `x % y` | `__add__(a, b)`, `__mod__(x, y)`: Python's operators |
//! | `a in b`, `a not in b` | `__in__(a, b)`, `(not __in__(a, b))` |
//! | `a ~ b ~ c` | `__concat__(a, b, c)`: the limits of memory hold |
//! | `'a' 'b'` | `('a' ~ 'b')` |
//! | `load_yaml as x` ... `endload` | `set x \| __load_yaml__` ... `endset` |
//! | `import_yaml 'f' as x` | the same around an `include` |
//! | `import 'f' as x`, `from`, `include` | the name as `__template__('f', with_context)` |
//! | `profile as x` ... `endprofile` | `with` ... `endwith` |
//! | `a < b` | `__lt__(a, b)`: a text and a number have no order |
//! | `a[1:]` | `__slice__(a, 1, none)`: steps go back as in Python |
//! | `for x in y`, `for a, b in y` | `__each__(y)`, `__each_of__(2, y)`: nothing is not an empty list |
//! | `loop(x)` | `loop(__each__(x))`, as the loop itself |
//! | `set a, b = y` | `__unpack__(2, y)` |
//! | `x['get'](y)` | `x.get(y)`: what is called may be a method |
//! | `a < b <= c` | `__chain__(a, '<', b, '<=', c)` |
//! | `macro m(a, b=a)` | `macro m(a, b)`, and `if b is undefined`, `set b = a` in the body |
//! | `macro m(a)` | with `varargs` or `kwargs` in it these are parameters; `set m = __macro__(m, true)` behind it |
//!
//! What is not understood is left as it is: the compiler has the better words for what is wrong.

pub(super) mod cover;
mod grammar;
pub(super) mod syntax;
mod tags;
mod tokens;

use grammar::Parser;
use tokens::{Ending, Kind, Token, tokenize};

/// A source in minijinja's language.
pub(super) struct Rewritten {
    /// The source, with the lines of the original.
    pub text: String,
    /// Whether it reads other templates.
    pub imports: bool,
}

/// One change: the bytes from `start` to `end` become `text`.
struct Edit {
    start: usize,
    end: usize,
    text: String,
    /// Of one that opens something, where it closes; of one that closes, where it was opened.
    pair: Option<(Side, usize)>,
}

/// Which of two edits that belong together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Opens,
    Closes,
}

impl Edit {
    fn insert(at: usize, text: impl Into<String>) -> Self {
        Edit { start: at, end: at, text: text.into(), pair: None }
    }

    /// Text around what is between two places.
    fn around(from: usize, to: usize, open: &str, close: &str) -> [Self; 2] {
        let opens = Edit { pair: Some((Side::Opens, to)), ..Edit::insert(from, open) };
        [opens, Edit { pair: Some((Side::Closes, from)), ..Edit::insert(to, close) }]
    }

    fn replace(token: &Token<'_>, text: impl Into<String>) -> Self {
        Edit { start: token.start, end: token.end, text: text.into(), pair: None }
    }
}

/// For what a source is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// To be rendered.
    First,
    /// To be rendered once more, to see what it failed of: what is looked up in what goes through functions that take
    /// notes.
    Again,
}

/// Rewrites a source.
pub(super) fn rewrite(source: &str, look: Look) -> Rewritten {
    let mut out = Rewritten { text: String::with_capacity(source.len() + source.len() / 8), imports: false };
    let mut rest = source;
    let mut macros = Vec::new();
    while let Some(at) = next_tag(rest) {
        let (before, tag) = rest.split_at(at);
        out.text.push_str(before);
        let Some(length) = one_tag(tag, look, &mut macros, &mut out) else {
            rest = tag;
            break;
        };
        rest = &tag[length..];
    }
    out.text.push_str(rest);
    out
}

fn next_tag(text: &str) -> Option<usize> {
    text.match_indices('{').map(|(at, _)| at).find(|at| text[at + 1..].starts_with(['{', '%', '#']))
}

/// Writes the tag at the start of `text`, rewritten, and gives how long it was. Nothing if it does not end.
/// `macros` are those that are open, and whether more arguments than they have go to them.
fn one_tag(text: &str, look: Look, macros: &mut Vec<(String, bool)>, out: &mut Rewritten) -> Option<usize> {
    if text.starts_with("{#") {
        let length = text.find("#}")? + 2;
        out.text.push_str(&text[..length]);
        return Some(length);
    }
    let is_block = text.starts_with("{%");
    let (tokens, ending) = tokenize(text, if is_block { "%}" } else { "}}" });
    let Ending::Closed(end) = ending else { return None };
    if is_block && tokens.len() == 1 && tokens[0].text == "raw" {
        let length = raw_end(text, end)?;
        out.text.push_str(&text[..length]);
        return Some(length);
    }
    let mut parser = Parser::new(&tokens, &ending, is_block, look);
    let is_end = |token: &Token<'_>| matches!(token.text, "elif" | "else") || token.text.starts_with("end");
    // The compiler finds what is wrong.
    _ = match tokens.first() {
        Some(token) if is_block && is_end(token) => parser.goes_on(),
        _ if is_block => parser.statement().map(|_| ()),
        _ => parser.print().map(|_| ()),
    };
    let mut edits = parser.edits;
    if is_block {
        out.imports |= tags::rewrite(text, &tokens, end, &mut edits);
        tags::macros(text, &tokens, end, macros, &mut edits);
    }
    blanks(&text[..end], &tokens, &mut edits);
    apart(&tokens, &mut edits);
    apply(&text[..end], edits, &mut out.text);
    Some(end)
}

/// Puts a blank between numbers that touch: minijinja would read `0600` as one, and has to see that these are two.
fn apart(tokens: &[Token<'_>], edits: &mut Vec<Edit>) {
    let mut number_ended = None;
    for token in tokens {
        let is_number = token.kind == Kind::Number;
        if is_number && number_ended == Some(token.start) {
            edits.push(Edit::insert(token.start, " "));
        }
        number_ended = is_number.then_some(token.end);
    }
}

/// Makes blanks between tokens that are not ASCII, such as what editors put in as hard spaces, plain ones.
fn blanks(tag: &str, tokens: &[Token<'_>], edits: &mut Vec<Edit>) {
    if tag.is_ascii() {
        return;
    }
    let starts = tokens.iter().map(|token| token.start).chain([tag.len()]);
    let ends = [0].into_iter().chain(tokens.iter().map(|token| token.end));
    for (from, to) in ends.zip(starts) {
        let odd = tag[from..to].char_indices().filter(|(_, c)| c.is_whitespace() && !c.is_ascii());
        edits.extend(odd.map(|(at, c)| Edit {
            start: from + at,
            end: from + at + c.len_utf8(),
            text: " ".into(),
            pair: None,
        }));
    }
}

/// Where the `endraw` tag of a raw block ends.
fn raw_end(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += text[at..].find("{%")?;
        let inside = text[at + 2..].trim_start_matches(['-', '+']).trim_start();
        if let Some(after) = inside.strip_prefix("endraw") {
            let close = after.trim_start().trim_start_matches(['-', '+']);
            if let Some(rest) = close.strip_prefix("%}") {
                return Some(text.len() - rest.len());
            }
        }
        at += 2;
    }
}

fn apply(text: &str, edits: Vec<Edit>, out: &mut String) {
    // At one place, what closes comes first, the inner before the outer; then what opens, the outer before the inner.
    // Of two around the same, the one that was found last is the outer.
    let mut edits: Vec<_> = edits.into_iter().enumerate().collect();
    edits.sort_by_key(|(i, edit)| match edit.pair {
        Some((Side::Closes, from)) => (edit.start, 0, usize::MAX - from, *i),
        None => (edit.start, 1, 0, *i),
        Some((Side::Opens, to)) => (edit.start, 2, usize::MAX - to, usize::MAX - i),
    });
    let mut at = 0;
    for (_, edit) in edits {
        // A tag that is replaced as a whole has its expressions rewritten inside of that.
        if edit.start < at {
            continue;
        }
        out.push_str(&text[at..edit.start]);
        out.push_str(&edit.text);
        at = edit.end;
    }
    out.push_str(&text[at..]);
}

/// The name in `['name'](`, at the start of these tokens.
fn method<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let [_, name, close, open, ..] = tokens else { return None };
    let text = name.text.get(1..name.text.len().checked_sub(1)?)?;
    let is_name = text.starts_with(|c: char| c == '_' || c.is_alphabetic())
        && text.chars().all(|c| c == '_' || c.is_alphanumeric());
    (name.kind == Kind::Text && is_name && close.is_operator("]") && open.is_operator("(")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_minijinja_does_not_know_is_rewritten() {
        for (written, becomes) in [
            ("{{ a[0] }} [x] {y} {# {{ [1] }} #}", "{{ a[0] }} [x] {y} {# {{ [1] }} #}"),
            ("{{ [1, [2]] }}", "{{ __list__([1, __list__([2])]) }}"),
            ("{{\u{a0}a\u{a0}~ '\u{a0}'\u{a0}}}", "{{ __concat__(a , '\u{a0}') }}"),
            ("{{ {'a': {}}['a'] }}", "{{ __dict__({'a': __dict__({})})['a'] }}"),
            ("{% if x in ['a'] %}", "{% if __in__(x , ['a']) %}"),
            ("{% if x not in y|f %}", "{% if (not __in__(x ,  y|f)) %}"),
            ("{{ '}} %} [' }}{{ [1] }}", "{{ '}} %} [' }}{{ __list__([1]) }}"),
            ("{% raw %}{{ [1] }}{%- endraw -%}{{ [1] }}", "{% raw %}{{ [1] }}{%- endraw -%}{{ __list__([1]) }}"),
            ("{% set x = y + [1] %}", "{% set x = __own__(__add__(y , __list__([1]))) %}"),
            ("{% set a, b = 1, 2 %}", "{% set a, b = 1, 2 %}"),
            ("{% set x %}[1]{% endset %}", "{% set x %}[1]{% endset %}"),
            ("{%- do x.append(1) -%}", "{%- set __do__ = x.append(1) -%}"),
            ("{{ '%s-%s' % (a, b.c[0]) }}", "{{ __mod__('%s-%s' , (a, b.c[0])) }}"),
            ("{% if not a|int < b.c[1] + 2 and d %}", "{% if not __lt__(a|int , __add__(b.c[1] , 2)) and d %}"),
            ("{{ f(x=a >= 2, y=[1 > n]) }}", "{{ f(x=__ge__(a , 2), y=__list__([__gt__(1 , n)])) }}"),
            ("{{ 'a' if b is not none and c <= d else e }}", "{{ 'a' if b is not none and __le__(c , d) else e }}"),
            ("{{ [1] < [2] }}", "{{ __lt__(__list__([1]) , __list__([2])) }}"),
            ("{% set x = a < 1 %}", "{% set x = __own__(__lt__(a , 1)) %}"),
            ("{{ 1 < 2 not in 3 }}", "{{ __chain__(1 , '<', 2 , 'not in',  3) }}"),
            ("{{ -a - -1 ** 2 }}", "{{ __sub__(__neg__(a) , __pow__((-1) , 2)) }}"),
            ("{{ 'a' 'b' * 2 }}", "{{ __mul__(('a' ~ 'b') , 2) }}"),
            ("{{ a[1:] }}{{ a[::-1] }}", "{{ __slice__(a, 1, none) }}{{ __slice__(a, none, none, (-1)) }}"),
            ("{{ a ~ b + c }}", "{{ __add__(__concat__(a , b) , c) }}"),
            (
                "{% for a, b in c %}{% set d, e = f %}",
                "{% for a, b in __each_of__(2, c) %}{% set d, e = __unpack__(2, f) %}",
            ),
            ("{% for x in l if x > 1 %}", "{% for x in __each__(l) if __gt__(x , 1) %}"),
            (
                "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro -%}",
                "{% macro m(a, varargs=(), kwargs=none) %}{{ a }}{{ varargs }}{% endmacro %}{% set m = __macro__(m, true) -%}",
            ),
            (
                "{% macro m(a, b = [a], c=b) -%}",
                "{% macro m(a, b, c) %} {%- if b is undefined %}{% set b = __list__([a]) %}{% endif %} {%- if c is undefined %}{% set c=b %}{% endif -%}",
            ),
            ("{% load_yaml as x -%}a{% endload %}", "{% set  x | __load_yaml__ -%}a{% endset %}"),
            (
                "{%- import_yaml 'f' as x with context %}",
                "{%- set x | __load_yaml__ %}{% with %}{% include __template__('f', true) %}{% endwith %}{% endset %}",
            ),
            ("{% from './l' import a, b %}", "{% from __template__('./l', false) import a, b %}"),
            (
                "{% import t ~ '/l' as l with context -%}",
                "{% import __template__(__concat__(t , '/l'), true) as l with context -%}",
            ),
            (
                "{% include 'x' ignore missing %}",
                "{% with %}{% include __template__('x', true) ignore missing %}{% endwith %}",
            ),
            (
                "{% include a.b ~ '/c' %}",
                "{% with __names__ = [a] %}{% include __template__(__concat__(a.b , '/c'), true) %}{% endwith %}",
            ),
            ("{{ loop(x.y) }}{{ a.loop(x) }}", "{{ loop(__each__(x.y)) }}{{ a.loop(x) }}"),
            ("{{ f(0600, 0, 00, 0.5, 10) }}", "{{ f(0 600, 0, 00, 0.5, 10) }}"),
            ("{{ x", "{{ x"),
            ("{{ [1 }}{{ [2] }}", "{{ [1 }}{{ [2] }}"),
        ] {
            assert_eq!(rewrite(written, Look::First).text, becomes);
        }
    }

    #[test]
    fn an_import_whose_name_takes_its_as_is_refused() {
        for source in ["{% import_yaml 'a'%as b %}", "{% import_json a ~ as b %}"] {
            let error = crate::Template::compile("t", source).unwrap_err();
            assert!(error.to_string().contains("import_"), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn lines_are_kept(source in "([a-z.,'|=(\\[{}\\])\n -]|\\{%|%\\}|\\{\\{|\\}\\}|import_yaml|from|as|set|do){0,60}") {
            let lines = |text: &str| text.matches('\n').count();
            proptest::prop_assert_eq!(lines(&rewrite(&source, Look::First).text), lines(&source));
        }
    }
}
