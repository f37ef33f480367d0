//! The filters, tests and globals that Salt's templates use beside those of Jinja.

use base64::Engine;
use minijinja::value::{Rest, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use sha2::Digest;

use super::value::{from_jinja, split_args, to_jinja};
use crate::sls::yaml::{self, Style};
use crate::value::{Value, json};

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("yaml", to_yaml);
    environment.add_filter("json", to_json);
    environment.add_filter("tojson", |value: JinjaValue| json::to_json(&from_jinja(&value)));
    environment.add_filter("load_yaml", load_yaml);
    environment.add_filter("load_json", load_json);
    environment.add_filter("yaml_encode", |value: JinjaValue| match from_jinja(&value) {
        Value::Str(text) => json::to_json(&Value::Str(text)),
        other => yaml::dump(&other, Style::FLOW).trim_end().to_owned(),
    });
    environment.add_filter("yaml_dquote", |value: JinjaValue| json::to_json(&Value::from(value.to_string())));
    environment.add_filter("yaml_squote", |value: JinjaValue| format!("'{}'", value.to_string().replace('\'', "''")));
    environment.add_filter("to_bool", |value: JinjaValue| match from_jinja(&value) {
        Value::Str(text) => matches!(text.to_lowercase().as_str(), "yes" | "1" | "true"),
        Value::Int(n) => n > 0,
        Value::Float(_) => false,
        other => other.is_truthy(),
    });
    environment.add_filter("traverse", traverse);
    environment.add_filter("regex_replace", regex_replace);
    environment.add_filter("regex_search", |text: String, pattern: String, rest: Rest<JinjaValue>| {
        regex_find(&text, &pattern, &rest, false)
    });
    environment.add_filter("regex_match", |text: String, pattern: String, rest: Rest<JinjaValue>| {
        regex_find(&text, &pattern, &rest, true)
    });
    environment.add_filter("path_join", |first: String, rest: Rest<String>| {
        rest.iter().fold(std::path::PathBuf::from(first), |path, part| path.join(part)).to_string_lossy().into_owned()
    });
    environment.add_filter("quote", |value: JinjaValue| shell_quote(&value.to_string()));
    environment.add_filter("is_list", |value: JinjaValue| value.kind() == ValueKind::Seq);
    environment.add_filter("base64_encode", |text: String| base64::engine::general_purpose::STANDARD.encode(text));
    environment.add_filter("base64_decode", |text: String| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim());
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|error| operation(&error))
    });
    environment.add_filter("sha256", |text: String| crate::crypt::token::hex(sha2::Sha256::digest(text.as_bytes())));
    environment.add_filter("sha512", |text: String| crate::crypt::token::hex(sha2::Sha512::digest(text.as_bytes())));
    environment.add_test("match", |text: String, pattern: String, rest: Rest<JinjaValue>| {
        regex_find(&text, &pattern, &rest, true).map(|found| !found.is_none())
    });
    environment.add_test("equalto", |value: JinjaValue, other: JinjaValue| value == other);
    environment.add_test("list", |value: JinjaValue| value.kind() == ValueKind::Seq);
    environment.add_function("raise", |message: String| -> Result<JinjaValue, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
}

fn operation(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidOperation, error.to_string())
}

/// `yaml(flow_style=True)`: flow unless told otherwise; without the final line end.
fn to_yaml(value: JinjaValue, args: Rest<JinjaValue>) -> Result<String, Error> {
    let (positional, keyword) = split_args(&args)?;
    let flow =
        keyword.get("flow_style").map(Value::is_truthy).or(positional.first().map(JinjaValue::is_true)).unwrap_or(true);
    let text = yaml::dump(&from_jinja(&value), if flow { Style::FLOW } else { Style::BLOCK });
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// `json(sort_keys=True, indent=None)`.
fn to_json(value: JinjaValue, args: Rest<JinjaValue>) -> Result<String, Error> {
    let (positional, keyword) = split_args(&args)?;
    let sort =
        keyword.get("sort_keys").map(Value::is_truthy).or(positional.first().map(JinjaValue::is_true)).unwrap_or(true);
    let value = from_jinja(&value);
    let value = if sort { json::sorted(&value) } else { value };
    match keyword.get("indent").and_then(Value::as_i64) {
        Some(indent) => Ok(json::to_json_pretty(&value, usize::try_from(indent).unwrap_or(0))),
        None => Ok(json::to_json(&value)),
    }
}

fn load_yaml(text: String) -> Result<JinjaValue, Error> {
    yaml::load(&text).map(|value| to_jinja(&value)).map_err(|error| {
        Error::new(ErrorKind::InvalidOperation, format!("Encountered error loading yaml: {}", error.message))
    })
}

fn load_json(text: String) -> Result<JinjaValue, Error> {
    let failed = |_| Error::new(ErrorKind::InvalidOperation, format!("Unable to load json from {text}"));
    json::from_json(&text).map(|value| to_jinja(&value)).map_err(failed)
}

fn traverse(value: JinjaValue, path: String, args: Rest<JinjaValue>) -> Result<JinjaValue, Error> {
    let (positional, keyword) = split_args(&args)?;
    let delimiter = keyword.get("delimiter").and_then(Value::as_str).unwrap_or(":");
    let data = from_jinja(&value);
    let found = crate::target::traverse(&data, &path, delimiter).map(to_jinja);
    let default = || keyword.get("default").map(to_jinja).or(positional.first().cloned());
    Ok(found.or_else(default).unwrap_or_else(|| JinjaValue::from(())))
}

fn regex(pattern: &str, options: &[JinjaValue]) -> Result<fancy_regex::Regex, Error> {
    let (positional, keyword) = split_args(options)?;
    let option = |name: &str, place: usize| {
        keyword.get(name).map(Value::is_truthy).or(positional.get(place).map(JinjaValue::is_true)).unwrap_or(false)
    };
    let flags = [(option("ignorecase", 0), 'i'), (option("multiline", 1), 'm')];
    let flags: String = flags.iter().filter(|(on, _)| *on).map(|(_, flag)| *flag).collect();
    let pattern = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
    fancy_regex::Regex::new(&pattern).map_err(|error| operation(&error))
}

fn regex_replace(
    text: String,
    pattern: String,
    replacement: String,
    options: Rest<JinjaValue>,
) -> Result<String, Error> {
    let regex = regex(&pattern, &options)?;
    // Python writes groups as \1 and \g<name>, the crate as ${1} and ${name}.
    let mut template = String::new();
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '$' => template.push_str("$$"),
            '\\' => match chars.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    template.push_str("${");
                    template.push(digit);
                    template.push('}');
                }
                Some('g') if chars.peek() == Some(&'<') => {
                    chars.next();
                    let name: String = chars.by_ref().take_while(|c| *c != '>').collect();
                    template.push_str("${");
                    template.push_str(&name);
                    template.push('}');
                }
                Some('n') => template.push('\n'),
                Some('t') => template.push('\t'),
                Some(other) => template.push(other),
                None => template.push('\\'),
            },
            other => template.push(other),
        }
    }
    let replaced = regex.try_replacen(&text, 0, template.as_str()).map_err(|error| operation(&error))?;
    Ok(replaced.into_owned())
}

/// The groups of the first match, the whole of it if there are none, or nothing.
fn regex_find(text: &str, pattern: &str, options: &[JinjaValue], at_start: bool) -> Result<JinjaValue, Error> {
    let regex = regex(pattern, options)?;
    let captures = regex.captures(text).map_err(|error| operation(&error))?;
    let captures = captures.filter(|found| !at_start || found.get(0).is_some_and(|whole| whole.start() == 0));
    let Some(captures) = captures else { return Ok(JinjaValue::from(())) };
    let group =
        |i: usize| captures.get(i).map_or_else(|| JinjaValue::from(()), |found| JinjaValue::from(found.as_str()));
    let groups: Vec<_> = if captures.len() > 1 { (1..captures.len()).map(group).collect() } else { vec![group(0)] };
    Ok(JinjaValue::from(groups))
}

/// As Python's `shlex.quote`.
fn shell_quote(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}
