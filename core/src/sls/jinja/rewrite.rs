//! From the Jinja that Salt's users write to the Jinja that minijinja knows, by small changes inside of
//! tags that never add or take a line.
//!
//! | written | becomes |
//! |---|---|
//! | `[1]`, `{'a': 1}` | `__list__([1])`, `__dict__({'a': 1})`: these can change in place |
//! | `set x = y + [1]` | `set x = __own__(y + [1])`: what an operator made can, too |
//! | `do x` | `set __do__ = x`: minijinja's `do` takes calls only |
//! | `'%s' % x` | `__percent__('%s', x)` |
//! | `load_yaml as x` ... `endload` | `set x \| __load_yaml__` ... `endset` |
//! | `import_yaml 'f' as x` | the same around an `include` |
//! | `import 'f' as x`, `from`, `include` | the name as `__template__('f', with_context)` |
//! | `profile as x` ... `endprofile` | `with` ... `endwith` |
//! | `a < b` | `__lt__(a, b)`: a text and a number have no order |
//! | `for x in y` | `for x in __each__(y)`: nothing is not an empty list |
//! | `x['get'](y)` | `x.get(y)`: what is called may be a method |
//! | `macro m(a)` with `varargs` or `kwargs` in it | these are parameters, and `set m = __varargs__(m)` behind it |
//!
//! What is not understood is left as it is: the compiler has the better words for what is wrong.

mod tags;
mod tokens;

use tokens::{Kind, Token, tokenize};

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

/// Rewrites a source.
pub(super) fn rewrite(source: &str) -> Rewritten {
    let mut out = Rewritten { text: String::with_capacity(source.len() + source.len() / 8), imports: false };
    let mut rest = source;
    let mut macros = Vec::new();
    while let Some(at) = next_tag(rest) {
        let (before, tag) = rest.split_at(at);
        out.text.push_str(before);
        let Some(length) = one_tag(tag, &mut macros, &mut out) else {
            rest = tag;
            break;
        };
        rest = &tag[length..];
    }
    out.text.push_str(rest);
    out
}

/// What is said of a template whose blocks are not all closed, and the line of the last tag.
pub(super) fn unfinished(source: &str) -> Option<(String, usize)> {
    let mut open: Vec<(&str, &[&str])> = Vec::new();
    let (mut at, mut last) = (0, 0);
    while let Some(next) = next_tag(&source[at..]) {
        at += next;
        let text = &source[at..];
        let is_block = text.starts_with("{%");
        let (tokens, end) = match text.as_bytes().get(1) {
            Some(b'#') => (Vec::new(), text.find("#}")? + 2),
            _ => tokenize(text, if is_block { "%}" } else { "}}" })?,
        };
        let length = match tokens.first().filter(|_| is_block).map(|token| token.text) {
            Some("raw") if tokens.len() == 1 => raw_end(text, end)?,
            Some(tag) => {
                match tag {
                    "else" | "elif" => {
                        if let Some((block, closing)) = open.last_mut().filter(|_| tag == "else") {
                            *closing = if *block == "for" { &["endfor"] } else { &["endif"] };
                        }
                    }
                    _ if tag.starts_with("end") => _ = open.pop(),
                    _ => open.extend(tags::closing(&tokens).map(|closing| (tag, closing))),
                }
                end
            }
            None => end,
        };
        at += length;
        last = at;
    }
    let (block, closing) = open.last()?;
    let wanted: Vec<String> = closing.iter().map(|tag| format!("'{tag}'")).collect();
    let message = format!(
        "Unexpected end of template. Jinja was looking for the following tags: {}. The innermost block that needs to \
         be closed is '{block}'.",
        wanted.join(" or ")
    );
    Some((message, source[..last].matches('\n').count() + 1))
}

fn next_tag(text: &str) -> Option<usize> {
    text.match_indices('{').map(|(at, _)| at).find(|at| text[at + 1..].starts_with(['{', '%', '#']))
}

/// Writes the tag at the start of `text`, rewritten, and gives how long it was. Nothing if it does not end.
/// `macros` are those that are open: the name, if more arguments than it has go to it.
fn one_tag(text: &str, macros: &mut Vec<Option<String>>, out: &mut Rewritten) -> Option<usize> {
    if text.starts_with("{#") {
        let length = text.find("#}")? + 2;
        out.text.push_str(&text[..length]);
        return Some(length);
    }
    let is_block = text.starts_with("{%");
    let (tokens, end) = tokenize(text, if is_block { "%}" } else { "}}" })?;
    if is_block && tokens.len() == 1 && tokens[0].text == "raw" {
        let length = raw_end(text, end)?;
        out.text.push_str(&text[..length]);
        return Some(length);
    }
    let mut edits = Vec::new();
    if is_block {
        out.imports |= tags::rewrite(text, &tokens, end, &mut edits);
        tags::macros(text, &tokens, end, macros, &mut edits);
    } else {
        expression(&tokens, &mut edits);
    }
    blanks(&text[..end], &tokens, &mut edits);
    apply(&text[..end], edits, &mut out.text);
    Some(end)
}

/// Makes blanks between tokens that are not ASCII, such as what editors put in as hard spaces, plain ones.
fn blanks(tag: &str, tokens: &[Token<'_>], edits: &mut Vec<Edit>) {
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
    // Of two around the same, the one that was found first is the outer.
    let mut edits: Vec<_> = edits.into_iter().enumerate().collect();
    edits.sort_by_key(|(i, edit)| match edit.pair {
        Some((Side::Closes, from)) => (edit.start, 0, usize::MAX - from, usize::MAX - i),
        None => (edit.start, 1, 0, *i),
        Some((Side::Opens, to)) => (edit.start, 2, usize::MAX - to, *i),
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

/// The changes that the expressions in these tokens need.
fn expression(tokens: &[Token<'_>], edits: &mut Vec<Edit>) {
    for (i, token) in tokens.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| tokens.get(i));
        match (token.kind, token.text) {
            (Kind::Operator, "[") if ends_operand(before) && method(&tokens[i..]).is_some() => {
                edits.push(Edit::replace(token, "."));
                edits.extend(method(&tokens[i..]).map(|name| Edit::replace(&tokens[i + 1], name)));
                edits.push(Edit::replace(&tokens[i + 2], ""));
            }
            (Kind::Operator, "[") if !ends_operand(before) && !before.is_some_and(|token| token.is_name("in")) => {
                if let Some(close) = closing(tokens, i) {
                    edits.extend(Edit::around(token.start, tokens[close].end, "__list__(", ")"));
                }
            }
            (Kind::Operator, "{") => {
                if let Some(close) = closing(tokens, i) {
                    edits.extend(Edit::around(token.start, tokens[close].end, "__dict__(", ")"));
                }
            }
            (Kind::Operator, "<" | ">" | "<=" | ">=") => comparison(tokens, i, edits),
            (Kind::Operator, "%") if before.is_some_and(|token| token.kind == Kind::Text) => {
                if let Some(end) = operand_end(tokens, i + 1) {
                    edits.extend(Edit::around(tokens[i - 1].start, tokens[end].end, "__percent__(", ")"));
                    edits.push(Edit::replace(token, ","));
                }
            }
            _ => {}
        }
    }
}

/// The name in `['name'](`, at the start of these tokens.
fn method<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let [_, name, close, open, ..] = tokens else { return None };
    let text = name.text.get(1..name.text.len().checked_sub(1)?)?;
    let is_name = text.starts_with(|c: char| c == '_' || c.is_alphabetic())
        && text.chars().all(|c| c == '_' || c.is_alphanumeric());
    (name.kind == Kind::Text && is_name && close.is_operator("]") && open.is_operator("(")).then_some(text)
}

/// `a < b`, both with all that binds closer. A chain such as `a < b < c` stays as it is.
fn comparison(tokens: &[Token<'_>], at: usize, edits: &mut Vec<Edit>) {
    let is_comparison =
        |token: &Token<'_>| token.kind == Kind::Operator && matches!(token.text, "<" | ">" | "<=" | ">=" | "==" | "!=");
    let ends = |i: usize| {
        let token = &tokens[i];
        let after_is = i.checked_sub(1).is_some_and(|before| tokens[before].is_name("is"));
        match token.kind {
            Kind::Name if token.text == "not" || token.text == "in" => !after_is,
            Kind::Name => matches!(token.text, "and" | "or" | "if" | "else" | "elif" | "recursive"),
            Kind::Operator => is_comparison(token) || matches!(token.text, "," | "=" | ":"),
            _ => false,
        }
    };
    let (mut first, mut depth) = (at, 0usize);
    while let Some(before) = first.checked_sub(1) {
        match (tokens[before].kind, tokens[before].text) {
            (Kind::Operator, ")" | "]" | "}") => depth += 1,
            (Kind::Operator, "(" | "[" | "{") if depth == 0 => break,
            (Kind::Operator, "(" | "[" | "{") => depth -= 1,
            // The word that begins a tag, or the name of what a tag sets.
            (Kind::Name, "set" | "do" | "with" | "call" | "filter" | "for") if before == 0 => break,
            _ if depth == 0 && ends(before) => break,
            _ => {}
        }
        first = before;
    }
    let mut last = at;
    while last + 1 < tokens.len() {
        let next = last + 1;
        match (tokens[next].kind, tokens[next].text) {
            (Kind::Operator, "(" | "[" | "{") => match closing(tokens, next) {
                Some(close) => last = close,
                None => return,
            },
            (Kind::Operator, ")" | "]" | "}") => break,
            _ if ends(next) => break,
            _ => last = next,
        }
    }
    let chained = |i: usize| tokens.get(i).is_some_and(|token| is_comparison(token) || token.is_name("in"));
    if first == at || last == at || chained(last + 1) || first.checked_sub(1).is_some_and(chained) {
        return;
    }
    let name = match tokens[at].text {
        "<" => "__lt__(",
        ">" => "__gt__(",
        "<=" => "__le__(",
        _ => "__ge__(",
    };
    edits.extend(Edit::around(tokens[first].start, tokens[last].end, name, ")"));
    edits.push(Edit::replace(&tokens[at], ","));
}

/// Whether an operand can end with this token, so that a bracket after it looks something up in it.
fn ends_operand(token: Option<&Token<'_>>) -> bool {
    const WORDS: [&str; 12] =
        ["in", "not", "and", "or", "if", "else", "elif", "is", "include", "import", "from", "extends"];
    token.is_some_and(|token| match token.kind {
        Kind::Name => !WORDS.contains(&token.text) && token.text != "do",
        Kind::Number | Kind::Text => true,
        Kind::Operator => matches!(token.text, ")" | "]" | "}"),
    })
}

/// The bracket that closes the one at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match (token.kind, token.text) {
            (Kind::Operator, "(" | "[" | "{") => depth += 1,
            (Kind::Operator, ")" | "]" | "}") => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

/// The last token of the operand that starts at `at`: a name, literal or bracket, and what hangs on it.
fn operand_end(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let first = tokens.get(at)?;
    let mut end = match (first.kind, first.text) {
        (Kind::Operator, "(" | "[" | "{") => closing(tokens, at)?,
        (Kind::Operator, "-") => operand_end(tokens, at + 1)?,
        (Kind::Operator, _) => return None,
        _ => at,
    };
    while let Some(next) = tokens.get(end + 1) {
        end = match (next.kind, next.text) {
            (Kind::Operator, "(" | "[") => closing(tokens, end + 1)?,
            (Kind::Operator, "." | "|") if tokens.get(end + 2)?.kind == Kind::Name => end + 2,
            _ => break,
        };
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_minijinja_does_not_know_is_rewritten() {
        for (written, becomes) in [
            ("{{ a[0] }} [x] {y} {# {{ [1] }} #}", "{{ a[0] }} [x] {y} {# {{ [1] }} #}"),
            ("{{ [1, [2]] }}", "{{ __list__([1, __list__([2])]) }}"),
            ("{{\u{a0}a\u{a0}~ '\u{a0}'\u{a0}}}", "{{ a ~ '\u{a0}' }}"),
            ("{{ {'a': {}}['a'] }}", "{{ __dict__({'a': __dict__({})})['a'] }}"),
            ("{% if x in ['a'] %}", "{% if x in ['a'] %}"),
            ("{{ '}} %} [' }}{{ [1] }}", "{{ '}} %} [' }}{{ __list__([1]) }}"),
            ("{% raw %}{{ [1] }}{%- endraw -%}{{ [1] }}", "{% raw %}{{ [1] }}{%- endraw -%}{{ __list__([1]) }}"),
            ("{% set x = y + [1] %}", "{% set x = __own__(y + __list__([1])) %}"),
            ("{% set a, b = 1, 2 %}", "{% set a, b = 1, 2 %}"),
            ("{% set x %}[1]{% endset %}", "{% set x %}[1]{% endset %}"),
            ("{%- do x.append(1) -%}", "{%- set __do__ = x.append(1) -%}"),
            ("{{ '%s-%s' % (a, b.c[0]) }}", "{{ __percent__('%s-%s' , (a, b.c[0])) }}"),
            ("{% if not a|int < b.c[1] + 2 and d %}", "{% if not __lt__(a|int , b.c[1] + 2) and d %}"),
            ("{{ f(x=a >= 2, y=[1 > n]) }}", "{{ f(x=__ge__(a , 2), y=__list__([__gt__(1 , n)])) }}"),
            ("{{ 'a' if b is not none and c <= d else e }}", "{{ 'a' if b is not none and __le__(c , d) else e }}"),
            ("{{ [1] < [2] }}", "{{ __lt__(__list__([1]) , __list__([2])) }}"),
            ("{% set x = a < 1 %}", "{% set x = __own__(__lt__(a , 1)) %}"),
            ("{{ 1 < 2 < 3 }}", "{{ 1 < 2 < 3 }}"),
            ("{% for x in l if x > 1 %}", "{% for x in __each__(l) if __gt__(x , 1) %}"),
            (
                "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro -%}",
                "{% macro m(a, varargs=(), kwargs=none) %}{{ a }}{{ varargs }}{% endmacro %}{% set m = __varargs__(m) -%}",
            ),
            ("{% load_yaml as x -%}a{% endload %}", "{% set  x | __load_yaml__ -%}a{% endset %}"),
            (
                "{%- import_yaml 'f' as x with context %}",
                "{%- set x | __load_yaml__ %}{% with %}{% include __template__('f', true) %}{% endwith %}{% endset %}",
            ),
            ("{% from './l' import a, b %}", "{% from __template__('./l', false) import a, b %}"),
            (
                "{% import t ~ '/l' as l with context -%}",
                "{% import __template__(t ~ '/l', true) as l with context -%}",
            ),
            (
                "{% include 'x' ignore missing %}",
                "{% with %}{% include __template__('x', true) ignore missing %}{% endwith %}",
            ),
            ("{{ x", "{{ x"),
            ("{{ [1 }}{{ [2] }}", "{{ [1 }}{{ [2] }}"),
        ] {
            assert_eq!(rewrite(written).text, becomes);
        }
    }

    proptest::proptest! {
        #[test]
        fn lines_are_kept(source in "([a-z.,'|=(\\[{}\\])\n -]|\\{%|%\\}|\\{\\{|\\}\\}|import_yaml|from|as|set|do){0,60}") {
            let lines = |text: &str| text.matches('\n').count();
            proptest::prop_assert_eq!(lines(&rewrite(&source).text), lines(&source));
        }
    }
}
