//! Filters for strings: quoting, encoding, digests, times, paths.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_digest::{Digest, hex};
use brine_text::shell::quote;
use brine_value::{Value, percent_encoded, percent_encoded_path};
use minijinja::value::{Tuple, Value as JinjaValue, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State};
use rand::seq::IndexedRandom;

use super::super::data::{Dict, escape, pairs, raise, split_kwargs, text, type_name};
use super::super::limits;
use super::{Args, Defined, Options, by_name, bytes_of, defined, first_and_others, lacks, text_of};
use crate::formatting::percent;

/// The maximum length of generated text.
const MAX_LENGTH: usize = 1 << 20;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    by_name(environment, "replace", &["old", "new", "count"], replace);
    environment.add_filter("quote", |value: Defined| match value.as_str() {
        Some(text) => Ok(quote(text)),
        None if !value.is_true() => Ok("''".to_owned()),
        None => Err(raise(format_args!("expected string or bytes-like object, got '{}'", type_name(&value)))),
    });
    by_name(environment, "center", &["width"], |value: Defined, width: Option<usize>| {
        center(&text(&value), width.unwrap_or(80))
    });
    environment.add_filter("truncate", truncate);
    environment.add_filter("urlencode", |value: Defined| match value.kind() {
        ValueKind::Map => {
            // In a query, a space becomes a plus, and a slash is escaped.
            let quoted = |value: &JinjaValue| percent_encoded(&text(value)).replace("%20", "+");
            let pairs = pairs(&value);
            pairs.map(|(key, value)| std::format!("{}={}", quoted(&key), quoted(&value))).collect::<Vec<_>>().join("&")
        }
        _ => percent_encoded_path(&text(&value)),
    });
    for name in ["e", "escape"] {
        environment.add_filter(name, |value: Defined| {
            if value.is_safe() { value.0 } else { JinjaValue::from_safe_string(escape(&text(&value))) }
        });
    }
    environment.add_filter("pprint", |value: JinjaValue| {
        if value.is_tuple() || type_name(&value) == "range" {
            return Ok(text(&value));
        }
        defined(&value).map(|value| brine_value::python::repr(&brine_value::json::sorted(&value)))
    });
    environment.add_filter("format", |value: Defined, args: Args| -> Result<JinjaValue, Error> {
        let args: Vec<JinjaValue> = args.iter().cloned().map(ValueOrKwargs::into_value).collect();
        let (positional, named) = split_kwargs(&args)?;
        let has_named = !named.is_empty();
        if !positional.is_empty() && has_named {
            return Err(raise("can't handle positional and keyword arguments at the same time"));
        }
        let named = named.into_iter().map(|(name, value)| (JinjaValue::from(name), value));
        let named: Dict = named.collect();
        let values = if has_named { JinjaValue::from_object(named) } else { JinjaValue::from(Tuple::from(positional)) };
        percent(&JinjaValue::from(text(&value)), &values)
    });
    environment.add_filter("wordcount", |value: Defined| {
        text(&value).split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| !word.is_empty()).count()
    });
    environment.add_filter("contains_whitespace", |value: Defined| match value.as_str() {
        Some(text) => Ok(text.contains(char::is_whitespace)),
        None => Err(raise(format_args!("'{}' object is not iterable", type_name(&value)))),
    });
    environment.add_filter("base64_encode", |value: JinjaValue| bytes_of(&value).map(|bytes| STANDARD.encode(bytes)));
    environment.add_filter("base64_decode", |value: JinjaValue| bytes_of(&value).and_then(|text| decoded(&text)));
    for (name, digest) in
        [("md5", Digest::Md5), ("sha1", Digest::Sha1), ("sha256", Digest::Sha256), ("sha512", Digest::Sha512)]
    {
        environment.add_filter(name, move |value: JinjaValue| Ok::<_, Error>(hex(digest.of(bytes_of(&value)?))));
    }
    environment.add_filter("random_str", |length: usize| random(length));
    environment.add_filter("is_hex", |value: JinjaValue| {
        let Some(text) = value.as_str() else { return false };
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit())
    });
    environment.add_filter("to_bytes", |value: JinjaValue| bytes_of(&value).map(JinjaValue::from_bytes));
    environment.add_filter("to_snake_case", |value: Defined| match value.as_str() {
        Some("") => Err(raise("string index out of range")),
        Some(text) => Ok(snake_case(text)),
        None => Err(raise(format_args!("'{}' object is not subscriptable", type_name(&value)))),
    });
    environment.add_filter("to_camelcase", |value: Defined, args: Args| -> Result<String, Error> {
        let text = value.as_str().ok_or_else(|| lacks(&value, "split"))?;
        Ok(camel_case(text, Options::new(&args)?.flag(0, "uppercamel", false)))
    });
    by_name(
        environment,
        "xmlattr",
        &["autospace"],
        |value: JinjaValue, space: Option<bool>| -> Result<JinjaValue, Error> {
            let Value::Map(map) = defined(&value)? else { return Err(lacks(&value, "items")) };
            let entries = map.iter().filter(|(_, value)| !value.is_nil());
            let all: Vec<String> = entries
                .map(|(name, value)| std::format!("{}=\"{}\"", escape(&name.to_string()), escape(&value.to_string())))
                .collect();
            let blank = if all.is_empty() || space == Some(false) { "" } else { " " };
            Ok(JinjaValue::from_safe_string(std::format!("{blank}{}", all.join(" "))))
        },
    );
    by_name(
        environment,
        "hmac",
        &["shared_secret", "challenge_hmac"],
        |value: JinjaValue, secret: String, challenge: String| {
            Ok::<_, Error>(STANDARD.encode(signed(&bytes_of(&value)?, &secret)?) == challenge)
        },
    );
    by_name(environment, "hmac_compute", &["shared_secret"], |value: JinjaValue, secret: String| {
        Ok::<_, Error>(hex(&signed(&bytes_of(&value)?, &secret)?))
    });
    environment.add_filter("forceescape", |value: Defined| JinjaValue::from_safe_string(escape(&text(&value))));
    for name in ["random_hash", "rand_str"] {
        by_name(environment, name, &["hash_type"], |most: u64, form: Option<String>| {
            Ok::<_, Error>(hex(digest(form.as_deref().unwrap_or("md5"))?.of(rand::random_range(0..=most).to_string())))
        });
    }
    environment.add_filter("uuid", |value: JinjaValue| text_of(&value).map(|name| uuid(&name)));
    environment.add_filter("human_to_bytes", human_to_bytes);
    environment.add_filter("wordwrap", wordwrap);
    environment.add_filter("indent", indent);
    environment.add_filter("check_whitelist_blacklist", listed);
    environment.add_filter("method_call", |state: &mut State<'_, '_>, value: Defined, args: Args| {
        let (name, args) = first_and_others("f_name", args)?;
        let args: Vec<JinjaValue> = args.0.into_iter().map(ValueOrKwargs::into_value).collect();
        // Values without the method return nothing.
        match value.call_method(state, &name, &args) {
            Err(error) if error.kind() == ErrorKind::UnknownMethod => Ok(JinjaValue::from(())),
            called => called,
        }
    });
    environment.add_filter("xml", |value: JinjaValue| defined(&value).map(|value| xml(&value)));
}

/// `replace(old, new, count=None)`.
fn replace(value: Defined, old: Defined, new: Defined, count: Option<i64>) -> Result<String, Error> {
    let (text, old, new) = (text(&value), text(&old), text(&new));
    limits::reserve_replaced(&text, &old, &new)?;
    Ok(match count.and_then(|count| usize::try_from(count).ok()) {
        Some(count) => text.replacen(&old, &new, count),
        None => text.replace(&old, &new),
    })
}

/// Decodes base64. Invalid characters are skipped, as in Python.
fn decoded(text: &[u8]) -> Result<JinjaValue, Error> {
    let data: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
        .collect();
    let count = data.iter().filter(|byte| **byte != b'=').count();
    if count % 4 == 1 {
        let message = "Invalid base64-encoded string: number of data characters";
        return Err(raise(format_args!("{message} ({count}) cannot be 1 more than a multiple of 4")));
    }
    let bytes = STANDARD.decode(data).map_err(|_| raise("Incorrect padding"))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => JinjaValue::from(text),
        Err(error) => JinjaValue::from_bytes(error.into_bytes()),
    })
}

fn center(text: &str, width: usize) -> String {
    let missing = width.min(MAX_LENGTH).saturating_sub(text.chars().count());
    let left = missing / 2;
    std::format!("{}{text}{}", " ".repeat(left), " ".repeat(missing - left))
}

/// `truncate(length=255, killwords=False, end='...', leeway=5)`.
fn truncate(value: Defined, args: Args) -> Result<String, Error> {
    if matches!(value.kind(), ValueKind::Number | ValueKind::Bool | ValueKind::None) {
        return Err(raise(format_args!("object of type '{}' has no len()", type_name(&value))));
    }
    let options = Options::new(&args)?;
    let number = |index, name, default| {
        let number = options.get(index, name).and_then(|value| value.as_i64());
        number.map_or(default, |number| usize::try_from(number).unwrap_or(0))
    };
    let (length, leeway) = (number(0, "length", 255), number(3, "leeway", 5));
    let end = options.get(2, "end").map_or_else(|| "...".to_owned(), |end| end.to_string());
    let text = text(&value);
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let prefix: String = text.chars().take(length.saturating_sub(end.chars().count())).collect();
    let prefix = if options.flag(1, "killwords", false) {
        &prefix
    } else {
        prefix.rsplit_once(' ').map_or(&*prefix, |(words, _)| words)
    };
    Ok(std::format!("{prefix}{end}"))
}

fn random(length: usize) -> Result<String, Error> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if length > MAX_LENGTH {
        return Err(raise(format_args!("a random string may have at most {MAX_LENGTH} characters")));
    }
    let mut rng = rand::rng();
    Ok((0..length).filter_map(|_| LETTERS.choose(&mut rng)).map(|byte| char::from(*byte)).collect())
}

/// Converts `camelCase`: a word begins at a capital after or before a small letter.
fn snake_case(text: &str) -> String {
    let mut out = String::new();
    let (mut before, mut chars) = (None, text.chars().peekable());
    while let Some(c) = chars.next() {
        let is_beside = |letter: Option<char>| letter.is_some_and(char::is_lowercase);
        if before.is_some() && c.is_uppercase() && (is_beside(before) || is_beside(chars.peek().copied())) {
            out.push('_');
        }
        before = Some(c);
        out.extend(c.to_lowercase());
    }
    out
}

fn camel_case(text: &str, upper: bool) -> String {
    let mut out = String::new();
    for (i, word) in text.split('_').enumerate() {
        let mut chars = word.chars();
        match chars.next() {
            Some(first) if upper || i > 0 => {
                out.extend(first.to_uppercase());
                out.push_str(chars.as_str());
            }
            _ => out.push_str(word),
        }
    }
    out
}

/// Returns a digest by its name.
pub(super) fn digest(form: &str) -> Result<Digest, Error> {
    Digest::named(form).ok_or_else(|| raise(format_args!("Invalid hash type: {form}")))
}

/// Returns the HMAC with SHA-256.
fn signed(text: &[u8], secret: &str) -> Result<Vec<u8>, Error> {
    Digest::Sha256.hmac(secret.as_bytes(), text).map_err(raise)
}

/// Returns the UUID (version 5) of a name in Salt's name space.
fn uuid(name: &str) -> String {
    // Salt's name space.
    const NAMES: [u8; 16] =
        [0x91, 0x63, 0x3e, 0xbf, 0x1c, 0x86, 0x5e, 0x33, 0x93, 0x5a, 0x28, 0x06, 0x1f, 0x4b, 0x48, 0x0e];
    let mut sum = Digest::Sha1.of([&NAMES, name.as_bytes()].concat());
    sum[6] = sum[6] & 0x0f | 0x50;
    sum[8] = sum[8] & 0x3f | 0x80;
    let digits = hex(&sum[..16]);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// `1.5MiB` as a number of bytes: K is 1024; KB is 1000 with `handle_metric`.
fn human_to_bytes(value: Defined, args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    let default = options.get(0, "default_unit").map(|unit| unit.to_string()).unwrap_or_default();
    let text = text(&value);
    let text = text.trim();
    let (number, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let Ok(number) = number.trim().parse::<f64>() else { return Ok(JinjaValue::from(0)) };
    let unit = if unit.is_empty() { default } else { unit.to_owned() };
    let metric = options.flag(1, "handle_metric", false) && unit.len() == 2 && unit.to_lowercase().ends_with('b');
    let power = match unit.to_lowercase().chars().next() {
        None | Some('b') => 0,
        Some(letter) => match "kmgtpezy".find(letter) {
            Some(index) => index as i32 + 1,
            None => return Ok(JinjaValue::from(0)),
        },
    };
    let factor: f64 = if metric { 1000.0 } else { 1024.0 };
    Ok(JinjaValue::from((number * factor.powi(power)) as i64))
}

/// `indent(width=4, first=False, blank=False)`: the width may be a string. A trailing newline is kept.
fn indent(value: Defined, args: Args) -> Result<String, Error> {
    let options = Options::new(&args)?;
    let blank = match options.get(0, "width") {
        Some(Value::Str(text)) => text,
        width => " "
            .repeat(usize::try_from(width.and_then(|width| width.as_i64()).unwrap_or(4)).unwrap_or(0).min(MAX_LENGTH)),
    };
    let (first, blanks) = (options.flag(1, "first", false), options.flag(2, "blank", false));
    if value.kind() != ValueKind::String {
        // Python appends a newline to the value.
        return Err(match type_name(&value) {
            "list" => lacks(&value, "splitlines"),
            "tuple" => raise("can only concatenate tuple (not \"str\") to tuple"),
            name => raise(format_args!("unsupported operand type(s) for +=: '{name}' and 'str'")),
        });
    }
    let text = text(&value);
    let lines = text.matches('\n').count() + 1;
    // Before joining, each line is a separate string.
    limits::reserve(
        lines.saturating_mul(blank.len() + size_of::<String>()).saturating_add(text.len()).saturating_mul(2),
    )?;
    let line = |(number, line): (usize, &str)| {
        let indented = if number == 0 { first } else { blanks || !line.is_empty() };
        if indented { std::format!("{blank}{line}") } else { line.to_owned() }
    };
    Ok(text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .enumerate()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n"))
}

/// `wordwrap(width=79, break_long_words=True, wrapstring='\n')`: line by line.
fn wordwrap(value: Defined, args: Args) -> Result<String, Error> {
    if value.kind() != ValueKind::String {
        return Err(lacks(&value, "splitlines"));
    }
    let options = Options::new(&args)?;
    let width = options.get(0, "width").and_then(|width| width.as_i64()).unwrap_or(79);
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let breaks = options.flag(1, "break_long_words", true);
    let with =
        options.get(2, "wrapstring").filter(Value::is_truthy).map_or_else(|| "\n".to_owned(), |with| with.to_string());
    let text = text(&value);
    let most_lines = text.matches('\n').count()
        + text.len() / if breaks { width.min(text.len() + 1) } else { 2 }
        + text.matches(' ').count()
        + 1;
    limits::reserve(most_lines.saturating_mul(with.len() + size_of::<String>()).saturating_add(text.len()))?;
    let wrapped = text.lines().map(|line| {
        let mut lines: Vec<String> = Vec::new();
        let mut current = String::new();
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            let mut word = word.to_owned();
            let length = |text: &str| text.chars().count();
            if !current.is_empty() && length(&current) + 1 + length(&word) <= width {
                current = std::format!("{current} {word}");
                continue;
            }
            if !current.is_empty() {
                lines.push(std::mem::take(&mut current));
            }
            while breaks && length(&word) > width {
                let end = word.char_indices().nth(width).map_or(word.len(), |(end, _)| end);
                lines.push(word[..end].to_owned());
                word.drain(..end);
            }
            current = word;
        }
        lines.push(current);
        lines.join(&with)
    });
    Ok(wrapped.collect::<Vec<_>>().join(&with))
}

/// Whether a string matches the allow list and not the deny list; patterns are globs.
fn listed(value: Defined, args: Args) -> Result<bool, Error> {
    let options = Options::new(&args)?;
    let text = text(&value);
    let on = |list: &Value| {
        let one = [list.clone()];
        list.as_list().unwrap_or(&one).iter().any(|pattern| brine_text::glob::fnmatch(&pattern.to_string(), &text))
    };
    let list = |index, name| options.get(index, name).filter(Value::is_truthy);
    let (white, black) = (list(0, "whitelist"), list(1, "blacklist"));
    Ok(!black.is_some_and(|list| on(&list)) && white.is_none_or(|list| on(&list)))
}

/// Returns a mapping as an XML document: its entries are elements, lists repeat them, a name with `@` is an attribute.
fn xml(value: &Value) -> String {
    let mut out = String::from("<?xml version=\"1.0\" ?>\n");
    if let Value::Map(map) = value {
        for (name, value) in map {
            element(&name.to_string(), value, 0, &mut out);
        }
    }
    out
}

fn element(name: &str, value: &Value, depth: usize, out: &mut String) {
    let escape = |text: &str| escape(text).replace("&#34;", "&quot;").replace("&#39;", "'");
    let blank = " ".repeat(depth * 4);
    match value {
        Value::List(items) => {
            for item in items {
                element(name, item, depth, out);
            }
        }
        Value::Map(map) => {
            let (attributes, children): (Vec<_>, Vec<_>) =
                map.iter().map(|(key, value)| (key.to_string(), value)).partition(|(key, _)| key.starts_with('@'));
            out.push_str(&std::format!("{blank}<{name}"));
            for (key, value) in attributes {
                out.push_str(&std::format!(" {}=\"{}\"", &key[1..], escape(&value.to_string())));
            }
            out.push_str(">\n");
            for (key, value) in children {
                element(&key, value, depth + 1, out);
            }
            out.push_str(&std::format!("{blank}</{name}>\n"));
        }
        value => out.push_str(&std::format!("{blank}<{name}>{}</{name}>\n", escape(&value.to_string()))),
    }
}
