//! Whole tags: Salt's own, and those that read other templates.

use super::tokens::{Kind, Token};
use super::{Edit, apply};

/// The changes that one `{% %}` tag needs, and whether it reads another template. `end` is where the tag
/// ends in `text`.
pub(super) fn rewrite(text: &str, tokens: &[Token<'_>], end: usize, edits: &mut Vec<Edit>) -> bool {
    let Some((tag, rest)) = tokens.split_first() else { return false };
    match tag.text {
        "set" => set(rest, edits),
        "for" => each(rest, edits),
        // A name that starts with `_` is not exported to those who import the template.
        "do" if !rest.is_empty() => edits.push(Edit::replace(tag, "set __do__ =")),
        "load_yaml" | "load_json" | "load_text" => {
            if let [word, name] = rest
                && word.is_name("as")
            {
                edits.push(Edit::replace(tag, "set"));
                edits.push(remove(word));
                edits.push(Edit::insert(name.end, format!(" | __{}__", tag.text)));
            }
        }
        "endload" => edits.push(Edit::replace(tag, "endset")),
        "profile" => {
            if let Some(word) = rest.first().filter(|word| word.is_name("as")) {
                edits.push(Edit::replace(tag, "with __profile__ ="));
                edits.push(remove(word));
            }
        }
        "endprofile" => edits.push(Edit::replace(tag, "endwith")),
        "import_yaml" | "import_json" | "import_text" => {
            if let Some(edit) = import_data(text, tag, rest, end, edits) {
                edits.push(edit);
                return true;
            }
        }
        "import" | "from" | "include" | "extends" => {
            import(text, tag, rest, end, edits);
            return true;
        }
        _ => {}
    }
    false
}

/// `macro` and `endmacro`: a macro is wrapped behind its end into what calls it as Python does. One that looks at
/// `varargs` or `kwargs` gets them as parameters. `open` has the macros that are open, and whether they do.
pub(super) fn macros(
    text: &str,
    tokens: &[Token<'_>],
    end: usize,
    open: &mut Vec<(String, bool)>,
    edits: &mut Vec<Edit>,
) {
    match tokens {
        [tag, name, rest @ ..] if tag.is_name("macro") => {
            let body = &text[end..];
            let body = &body[..body.find("endmacro").unwrap_or(body.len())];
            let takes_more = body.contains("varargs") || body.contains("kwargs");
            if let [open, parameters @ .., close] = rest
                && close.is_operator(")")
                && !defaults_in_body(open, parameters, close, takes_more, edits)
                && takes_more
            {
                let comma = if parameters.is_empty() { "" } else { ", " };
                edits.push(Edit::insert(close.start, format!("{comma}{MORE}")));
            }
            open.push((name.text.to_owned(), takes_more));
        }
        [tag, ..] if tag.is_name("endmacro") => {
            if let Some((name, takes_more)) = open.pop() {
                let last = tokens.last().unwrap_or(tag);
                edits.push(Edit::insert(last.end, format!(" %}}{{% set {name} = __macro__({name}, {takes_more})")));
            }
        }
        _ => {}
    }
}

/// What a macro has as parameters that looks at more than it names.
const MORE: &str = "varargs=(), kwargs=none";

/// Defaults that look at parameters before them: minijinja computes the last one first, so these are set in the body.
/// Whether there are any.
fn defaults_in_body(
    open: &Token<'_>,
    parameters: &[Token<'_>],
    close: &Token<'_>,
    takes_more: bool,
    edits: &mut Vec<Edit>,
) -> bool {
    let each = split(parameters);
    let names: Vec<&str> = each.iter().filter_map(|(one, _)| Some(one.first()?.text)).collect();
    let looks_back = each.iter().enumerate().any(|(place, (one, _))| {
        let default = one.get(2..).unwrap_or_default();
        default.iter().any(|token| token.kind == Kind::Name && names[..place.min(names.len())].contains(&token.text))
    });
    if !looks_back {
        return false;
    }
    let more = if takes_more { format!(", {MORE}") } else { String::new() };
    edits.push(Edit::replace(open, format!("({}{more}) %}}", names.join(", "))));
    for (one, comma) in each {
        let Some(name) = one.first() else { continue };
        let is_set = one.len() > 1;
        if is_set {
            edits.push(Edit::replace(name, format!("{{%- if {0} is undefined %}}{{% set {0}", name.text)));
        } else {
            edits.push(remove(name));
        }
        edits.extend(comma.map(|comma| Edit::replace(comma, if is_set { " %}{% endif %}" } else { "" })));
    }
    // The last one has a default if any has, and ends as the tag does.
    edits.push(Edit::replace(close, " %}{% endif"));
    true
}

/// What stands between commas, each with the comma behind it.
fn split<'t, 'a>(mut tokens: &'t [Token<'a>]) -> Vec<(&'t [Token<'a>], Option<&'t Token<'a>>)> {
    let mut parts = Vec::new();
    while let Some(comma) = position(tokens, |token| token.is_operator(",")) {
        parts.push((&tokens[..comma], tokens.get(comma)));
        tokens = &tokens[comma + 1..];
    }
    if !tokens.is_empty() {
        parts.push((tokens, None));
    }
    parts
}

/// Takes a word out, and the blank after it.
fn remove(token: &Token<'_>) -> Edit {
    Edit::replace(token, "")
}

/// `set name = value`: the value is made one that can change. Several names at once take a tuple apart,
/// which nobody changes.
fn set(rest: &[Token<'_>], edits: &mut Vec<Edit>) {
    let Some(equals) = position(rest, |token| token.is_operator("=")) else { return };
    let (names, value) = (&rest[..equals], &rest[equals + 1..]);
    let (Some(first), Some(last)) = (value.first(), value.last()) else { return };
    let is_literal = value.len() == 1 && first.kind != Kind::Name;
    match (commas(without_brackets(names)), commas(value)) {
        (0, 0) if !is_literal => edits.extend(Edit::around(first.start, last.end, "__own__(", ")")),
        (0, _) | (_, 1..) => {}
        (several, 0) => {
            edits.extend(Edit::around(first.start, last.end, &format!("__unpack__({}, ", several + 1), ")"));
        }
    }
}

/// The names of `(a, b)`.
fn without_brackets<'t, 'a>(names: &'t [Token<'a>]) -> &'t [Token<'a>] {
    match names {
        [open, inside @ .., close]
            if open.is_operator("(")
                && close.is_operator(")")
                && !inside.iter().any(|token| token.is_operator("(") || token.is_operator(")")) =>
        {
            inside
        }
        names => names,
    }
}

/// How many commas there are outside of brackets.
fn commas(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0usize;
    let is_comma = |token: &&Token<'_>| {
        match (token.kind, token.text) {
            (Kind::Operator, "(" | "[" | "{") => depth += 1,
            (Kind::Operator, ")" | "]" | "}") => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.is_operator(",")
    };
    tokens.iter().filter(is_comma).count()
}

/// `for x in y`: what is gone through.
fn each(rest: &[Token<'_>], edits: &mut Vec<Edit>) {
    let Some(word) = position(rest, |token| token.is_name("in")) else { return };
    let items = &rest[word + 1..];
    let ends = |token: &Token<'_>| token.is_name("if") || token.is_name("recursive");
    let items = &items[..position(items, ends).unwrap_or(items.len())];
    if let (Some(first), Some(last)) = (items.first(), items.last()) {
        let function = match commas(without_brackets(&rest[..word])) {
            0 => "__each__(".to_owned(),
            several => format!("__each_of__({}, ", several + 1),
        };
        edits.extend(Edit::around(first.start, last.end, &function, ")"));
    }
}

/// `import`, `from`, `include`, `extends`: the name of the template goes through a function that knows
/// what it is relative to.
fn import(text: &str, tag: &Token<'_>, rest: &[Token<'_>], end: usize, edits: &mut Vec<Edit>) {
    let name_ends = |token: &Token<'_>| match tag.text {
        "import" => token.is_name("as"),
        "from" => token.is_name("import"),
        _ => token.is_name("ignore") || token.is_name("with") || token.is_name("without"),
    };
    let length = position(rest, name_ends).unwrap_or(rest.len());
    let (Some(first), Some(last)) = (rest.first(), rest[..length].last()) else { return };
    let context = has_context(rest).unwrap_or(matches!(tag.text, "include" | "extends"));
    edits.extend(Edit::around(first.start, last.end, "__template__(", &format!(", {context})")));
    if tag.text == "include" {
        // What an included template sets is its own.
        let marker = usize::from(matches!(text.as_bytes().get(2), Some(b'-' | b'+')));
        let closing = usize::from(matches!(text.as_bytes().get(end.saturating_sub(3)), Some(b'-' | b'+')));
        let names = names(&rest[..length]);
        // A macro of minijinja's takes along the names that it sees in it, and it does not see those of an include.
        let seen = if names.is_empty() { String::new() } else { format!(" __names__ = [{}]", names.join(", ")) };
        edits.push(Edit::insert(2 + marker, format!(" with{seen} %}}{{%")));
        edits.push(Edit::insert(end - 2 - closing, "%}{% endwith "));
    }
}

/// The variables in an expression.
fn names<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let words = ["and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"];
    let before = [None].into_iter().chain(tokens.iter().map(Some));
    before
        .zip(tokens)
        .filter(|(before, token)| {
            let is_part =
                before.is_some_and(|before| before.is_operator(".") || before.is_operator("|") || before.is_name("is"));
            token.kind == Kind::Name && !is_part && !words.contains(&token.text)
        })
        .map(|(_, token)| token.text)
        .collect()
}

/// `import_yaml name as variable`, as a whole.
fn import_data(text: &str, tag: &Token<'_>, rest: &[Token<'_>], end: usize, edits: &mut Vec<Edit>) -> Option<Edit> {
    let word = position(rest, |token| token.is_name("as"))?;
    let (first, last) = (rest.first()?, rest[..word].last()?);
    let variable = rest.get(word + 1).filter(|token| token.kind == Kind::Name)?;
    // `a % as b` has its `as` for an operand, and is no import: minijinja says what it is not.
    if edits.iter().any(|edit| edit.end > last.end) {
        return None;
    }
    let mut name = String::new();
    let mut inside = std::mem::take(edits);
    for edit in &mut inside {
        edit.start = edit.start.saturating_sub(first.start);
        edit.end = edit.end.saturating_sub(first.start);
        edit.pair = edit.pair.map(|(side, at)| (side, at.saturating_sub(first.start)));
    }
    apply(&text[first.start..last.end], inside, &mut name);
    let context = has_context(rest).unwrap_or(false);
    let last = rest.last()?;
    let lines = text[tag.start..last.end].matches('\n').count().saturating_sub(name.matches('\n').count());
    let (variable, lines, kind) = (variable.text, "\n".repeat(lines), tag.text.trim_start_matches("import_"));
    let text = format!(
        "set {variable} | __load_{kind}__ %}}{{% with %}}{{% include __template__({name}, {context}) %}}\
         {{% endwith %}}{{% endset{lines}"
    );
    (last.end <= end).then_some(Edit { start: tag.start, end: last.end, text, pair: None })
}

/// Whether the tag says `with context` or `without context`.
fn has_context(tokens: &[Token<'_>]) -> Option<bool> {
    tokens.windows(2).rev().filter(|pair| pair[1].is_name("context")).find_map(|pair| match pair[0].text {
        "with" => Some(true),
        "without" => Some(false),
        _ => None,
    })
}

/// The first token outside of brackets for which this holds.
fn position(tokens: &[Token<'_>], holds: impl Fn(&Token<'_>) -> bool) -> Option<usize> {
    let mut depth = 0usize;
    tokens.iter().position(|token| {
        match (token.kind, token.text) {
            (Kind::Operator, "(" | "[" | "{") => depth += 1,
            (Kind::Operator, ")" | "]" | "}") => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && holds(token)
    })
}
