//! Filters that convert data to text and back, and look up paths in it.

use std::fmt::Write;

use brine_value::{Map, Value, json};
use brine_yaml::{Style, traverse};
use minijinja::value::{Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind};

use super::super::data::{Dict, List, double_quoted, pairs, raise, refuse_undefined, text, to_jinja, to_mutable};
use super::super::guard;
use super::super::limits;
use super::super::messages::SALT_FUNCTION;
use super::{Args, Defined, Options, by_name, class, counted, defined, iterable, lacks};

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("yaml", to_yaml);
    environment.add_filter("json", to_json);
    environment.add_filter("tojson", to_script_json);
    environment.add_filter("python", |value: JinjaValue| to_python(&value));
    for name in ["load_yaml", "__load_yaml__"] {
        environment.add_filter(name, |value: JinjaValue, guard: Option<JinjaValue>| {
            guarded(&value, guard.as_ref()).unwrap_or_else(|| load_yaml(&value))
        });
    }
    for name in ["load_json", "__load_json__"] {
        // JSON with untrusted text is parsed as YAML by the guard.
        environment.add_filter(name, |value: JinjaValue, guard: Option<JinjaValue>| {
            guarded(&value, guard.as_ref()).unwrap_or_else(|| load_json(&value))
        });
    }
    for name in ["load_text", "__load_text__"] {
        environment.add_filter(name, |value: Defined, guard: Option<JinjaValue>| {
            match guard::of_argument(guard.as_ref()) {
                Some(held) => held.0.reveal(&text(&value)),
                None => Ok(text(&value)),
            }
        });
    }
    environment.add_filter("yaml_encode", |value: JinjaValue| yaml_encode(&value));
    environment.add_filter("yaml_dquote", |value: Defined| counted(ascii(&double_quoted(&text(&value)))));
    environment.add_filter("yaml_squote", |value: Defined| {
        // In a single-quoted YAML scalar, one newline is a space, and two are one newline.
        counted(format!("'{}'", text(&value).replace('\'', "''").replace('\n', "\n\n")))
    });
    for name in ["json_encode_dict", "json_decode_dict"] {
        environment.add_filter(name, |value: JinjaValue| match value.kind() {
            ValueKind::Map => Ok(encoded(&value)),
            _ => refuse_undefined(&value).and_then(|()| Err(lacks(&value, "items"))),
        });
    }
    for name in ["json_encode_list", "json_decode_list"] {
        environment.add_filter(name, |value: JinjaValue| -> Result<JinjaValue, Error> {
            Ok(to_mutable(&iterable(value)?.try_iter()?.map(|item| encoded(&item)).collect()))
        });
    }
    by_name(environment, "mysql_to_dict", &["key"], rows_by);
    environment.add_filter("dict_to_sls_yaml_params", to_sls_params);
    by_name(environment, "traverse", &["key", "default", "delimiter"], walk);
    environment.add_filter("to_bool", |value: JinjaValue| {
        if value.is_undefined() { Ok(false) } else { defined(&value).map(|value| to_bool(&value)) }
    });
    environment.add_filter("to_entries", to_entries);
    environment.add_filter("from_entries", from_entries);
    for name in ["set", "update", "append", "extend"] {
        let filter = format!("{name}_dict_key_value");
        let change = move |value: JinjaValue, path: String, new: JinjaValue, rest: Args| {
            change(name, &value, &path, &new, &rest)
        };
        by_name(environment, &filter, &["keys", "value", "delimiter", "ordered_dict"], change);
    }
}

/// Returns data whose strings are bytes. Tuples become lists.
fn encoded(value: &JinjaValue) -> JinjaValue {
    match value.kind() {
        ValueKind::String => JinjaValue::from_bytes(value.as_bytes().unwrap_or_default().to_vec()),
        ValueKind::Map => {
            let entries = pairs(value).map(|(key, value)| (encoded(&key), encoded(&value)));
            JinjaValue::from_object(entries.collect::<Dict>())
        }
        ValueKind::Seq => {
            let items = value.try_iter().into_iter().flatten().map(|item| encoded(&item));
            JinjaValue::from_object(items.collect::<List>())
        }
        _ => value.clone(),
    }
}

/// Returns the rows of a table as printed by MySQL's client, by the values of one column.
fn rows_by(table: JinjaValue, column: String) -> Result<JinjaValue, Error> {
    let lines: Vec<JinjaValue> = iterable(table)?.try_iter()?.collect();
    let (mut names, mut rows): (Vec<String>, Vec<(JinjaValue, JinjaValue)>) = (Vec::new(), Vec::new());
    for line in lines.iter().map(text).filter(|line| !line.is_empty() && !line.starts_with('+')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if names.len() < 2 {
            names = cells.into_iter().map(str::to_owned).collect();
            continue;
        }
        // The outer borders are not columns.
        let inside = 1..names.len() - 1;
        let cells = inside.filter_map(|at| Some((names.get(at)?, *cells.get(at)?)));
        let row: Vec<(JinjaValue, JinjaValue)> = cells
            .map(|(name, cell)| (name.as_str().into(), super::numbers::number(cell).unwrap_or_else(|| cell.into())))
            .collect();
        let key = row.iter().find(|(name, _)| name.as_str() == Some(&column)).map(|(_, cell)| cell.clone());
        let key = key.ok_or_else(|| raise(brine_value::python::repr(&column.as_str().into())))?;
        rows.push((key, JinjaValue::from_object(row.into_iter().collect::<Dict>())));
    }
    Ok(JinjaValue::from_object(rows.into_iter().collect::<Dict>()))
}

/// Marks data as text that is safe in HTML, as in Salt: `+` escapes strings added to it.
fn safe(text: String) -> Result<JinjaValue, Error> {
    counted(text).map(JinjaValue::from_safe_string)
}

/// `yaml(flow_style=True)`: flow style by default; without the trailing newline.
fn to_yaml(value: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let flow = Options::new(&args)?.flag(0, "flow_style", true);
    let mut text = brine_yaml::dump(&defined(&value)?, if flow { Style::FLOW } else { Style::BLOCK });
    if text.ends_with('\n') {
        text.pop();
    }
    safe(text)
}

/// `json(sort_keys=True, indent=None)`.
fn to_json(value: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    let value = defined(&value)?;
    let value = if options.flag(0, "sort_keys", true) { json::sorted(&value) } else { value };
    safe(json_text(&value, options.get(1, "indent").as_ref())?)
}

fn json_text(value: &Value, indent: Option<&Value>) -> Result<String, Error> {
    if !has_odd_floats(value) {
        return finite_json(value, indent);
    }
    // JSON has no such numbers, but Python writes them: as words, which stand in quotes until the text is complete.
    let (plain, mut mark) = (json::to_json(value), "@".to_owned());
    while plain.contains(&mark) {
        mark.push('@');
    }
    let text = finite_json(&marked(value, &mark), indent)?;
    let words = ["-Infinity", "Infinity", "NaN"];
    Ok(words.iter().fold(text, |text, word| text.replace(&format!("\"{mark}{word}\""), word)))
}

fn has_odd_floats(value: &Value) -> bool {
    match value {
        Value::Float(number) => !number.is_finite(),
        Value::List(items) => items.iter().any(has_odd_floats),
        Value::Map(map) => map.iter().any(|(key, value)| has_odd_floats(key) || has_odd_floats(value)),
        _ => false,
    }
}

/// Replaces infinite numbers and those that are none by their names in Python, behind a mark.
fn marked(value: &Value, mark: &str) -> Value {
    match value {
        Value::Float(number) if number.is_nan() => format!("{mark}NaN").into(),
        Value::Float(number) if number.is_infinite() => {
            format!("{mark}{}Infinity", if *number > 0.0 { "" } else { "-" }).into()
        }
        Value::List(items) => Value::List(items.iter().map(|item| marked(item, mark)).collect()),
        // Keys remain in quotes.
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (marked(key, ""), marked(value, mark))).collect()),
        other => other.clone(),
    }
}

fn finite_json(value: &Value, indent: Option<&Value>) -> Result<String, Error> {
    match indent.and_then(Value::as_i64) {
        Some(indent) => {
            // The indentation is capped: a deeper one would only use memory.
            let indent = usize::try_from(indent).unwrap_or(0).min(64);
            limits::reserve(indentation(value, 0).saturating_mul(indent))?;
            Ok(json::to_json_pretty(value, indent))
        }
        None => Ok(json::to_json(value)),
    }
}

/// Returns the total indentation levels of all lines of a value.
fn indentation(value: &Value, depth: usize) -> usize {
    let inside: usize = match value {
        Value::List(items) => items.iter().map(|item| indentation(item, depth + 1)).sum(),
        Value::Map(map) => map.values().map(|item| indentation(item, depth + 1)).sum(),
        _ => 0,
    };
    // A container also has a closing line.
    inside.saturating_add(depth * 2)
}

/// `tojson(indent=None)`: safe inside of HTML, in ASCII.
fn to_script_json(value: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    let value = defined(&value)?;
    let value = if options.flag(1, "sort_keys", false) { json::sorted(&value) } else { value };
    let mut out = String::new();
    for c in json_text(&value, options.get(0, "indent").as_ref())?.chars() {
        if c.is_ascii() && !matches!(c, '<' | '>' | '&' | '\'') {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing into a `String` cannot fail.
            _ = write!(out, "\\u{unit:04x}");
        }
    }
    safe(out)
}

/// `python`: a literal with its keys sorted.
fn to_python(value: &JinjaValue) -> Result<JinjaValue, Error> {
    if value.is_tuple() {
        return safe(text(value));
    }
    safe(brine_value::python::repr(&json::sorted(&defined(value)?)))
}

/// Returns the data in the output of a guarded block, if it has untrusted text.
fn guarded(value: &JinjaValue, guard: Option<&JinjaValue>) -> Option<Result<JinjaValue, Error>> {
    let (held, text) = guard::of_argument(guard).zip(value.as_str())?;
    held.0.touches(text).then(|| held.0.load(text))
}

fn load_yaml(value: &JinjaValue) -> Result<JinjaValue, Error> {
    refuse_undefined(value)?;
    let Some(text) = value.as_str() else { return Err(raise("a string or stream input is required")) };
    let wrong = |error: brine_yaml::YamlError| {
        let message = format!("Encountered error loading yaml: {}", error.python_text());
        Error::new(ErrorKind::SyntaxError, message)
    };
    limits::reserve(text.len())?;
    let value = brine_yaml::load(text).map(|value| to_jinja(&value)).map_err(wrong)?;
    limits::check().map(|()| value)
}

fn load_json(value: &JinjaValue) -> Result<JinjaValue, Error> {
    refuse_undefined(value)?;
    let wrong = || Error::new(ErrorKind::SyntaxError, format!("Unable to load json from {}", text(value)));
    json::from_json(value.as_str().ok_or_else(wrong)?).map(|value| to_jinja(&value)).map_err(|_| wrong())
}

/// Returns a double-quoted YAML scalar in ASCII.
fn ascii(quoted: &str) -> String {
    let mut out = String::new();
    for c in quoted.chars() {
        // Writing into a `String` cannot fail.
        _ = match u32::from(c) {
            0..0x80 => out.write_char(c),
            code @ 0..0x100 => write!(out, "\\x{code:02X}"),
            code @ 0..0x1_0000 => write!(out, "\\u{code:04X}"),
            code => write!(out, "\\U{code:08X}"),
        };
    }
    out
}

/// Returns a scalar as YAML that parses as the same scalar.
fn yaml_encode(value: &JinjaValue) -> Result<String, Error> {
    match defined(value)? {
        Value::Str(text) => Ok(ascii(&double_quoted(&text))),
        Value::List(_) | Value::Map(_) => {
            let message = "yaml_encode() only works with YAML scalar data; failed for";
            Err(raise(format_args!("{message} {}", class(value))))
        }
        other => Ok(brine_yaml::dump(&other, Style::FLOW).trim_end().to_owned()),
    }
}

fn to_sls_params(value: JinjaValue, args: Args) -> Result<String, Error> {
    let flow = Options::new(&args)?.flag(0, "flow_style", false);
    let Value::Map(map) = defined(&value)? else { return Err(lacks(&value, "items")) };
    let params = map.into_iter().map(|(key, value)| Value::Map(Map::from_iter([(key, value)])));
    Ok(brine_yaml::dump(&params.collect(), if flow { Style::FLOW } else { Style::BLOCK }).trim_end().to_owned())
}

/// `traverse(path, default=None, delimiter=':')`.
pub(in super::super) fn walk(value: JinjaValue, path: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    let delimiter = options.get(1, "delimiter");
    let delimiter = delimiter.as_ref().and_then(Value::as_str).unwrap_or(":");
    let data = defined(&value)?;
    let entry = traverse(&data, &text(&path), delimiter).map(to_jinja);
    Ok(entry.unwrap_or_else(|| to_jinja(&options.get(0, "default").unwrap_or_default())))
}

fn to_bool(value: &Value) -> bool {
    match value {
        Value::Str(text) => matches!(text.to_lowercase().as_str(), "yes" | "1" | "true"),
        Value::Int(n) => *n > 0,
        Value::Float(_) => false,
        other => other.is_truthy(),
    }
}

fn to_entries(value: JinjaValue) -> Result<JinjaValue, Error> {
    let map: Map = match defined(&value)? {
        Value::Map(map) => map,
        Value::List(items) => (0_i64..).map(Value::Int).zip(items).collect(),
        _ => return Err(raise("Input data must be a dict or list")),
    };
    let entries = map.into_iter().map(|(key, value)| Value::Map(brine_value::map! {"key" => key, "value" => value}));
    Ok(to_jinja(&entries.collect()))
}

fn from_entries(value: JinjaValue) -> Result<JinjaValue, Error> {
    let entries: Vec<Value> = iterable(value)?.try_iter()?.map(|entry| defined(&entry)).collect::<Result<_, _>>()?;
    let mut map = Map::new();
    for entry in &entries {
        let key = ["key", "k", "name", "Name", "Key", "K"].iter().find_map(|name| entry.get(name));
        let value = ["value", "v", "Value", "V"].iter().find_map(|name| entry.get(name));
        let key = key.ok_or_else(|| raise("an entry has no key"))?;
        map.insert(key.clone(), value.cloned().unwrap_or_default());
    }
    Ok(to_jinja(&map.into()))
}

/// Returns Python's message for a value without string keys.
fn unreachable(data: &Value) -> Option<String> {
    match data {
        Value::Map(_) => None,
        Value::List(_) => Some("list indices must be integers or slices, not str".to_owned()),
        Value::Str(text) if text.is_empty() => Some("'str' object does not support item assignment".to_owned()),
        Value::Str(_) => Some("string indices must be integers, not 'str'".to_owned()),
        other => Some(format!("argument of type '{}' is not iterable", other.type_name())),
    }
}

/// `set_dict_key_value(path, value, delimiter=':')` and similar filters: returns a changed copy.
fn change(how: &str, value: &JinjaValue, path: &str, new: &JinjaValue, args: &Args) -> Result<JinjaValue, Error> {
    let delimiter = Options::new(args)?.get(0, "delimiter");
    let delimiter = delimiter.as_ref().and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or(":");
    let (mut data, new) = (defined(value)?, defined(new)?);
    if let Some(why) = unreachable(&data) {
        return Err(raise(why));
    }
    let mut target = &mut data;
    for (depth, step) in path.split(delimiter).enumerate() {
        // Existing values are replaced by the mappings of the path.
        if target.is_nil() || (how == "set" && depth > 0 && !matches!(target, Value::Map(_))) {
            *target = Value::map();
        }
        let Value::Map(map) = target else {
            return Err(raise(format_args!(
                "Cannot reach the key {path}: there is a {} on the way",
                target.type_name()
            )));
        };
        target = map.entry(Value::from(step)).or_default();
    }
    let cannot = |have: &Value| {
        let message = format!("The last key contains a <class '{}'>, which cannot {how}.", have.type_name());
        Err(raise(format_args!("{SALT_FUNCTION}{message}")))
    };
    match (how, &mut *target, &new) {
        ("update", Value::Map(have), Value::Map(new)) => have.extend(new.clone()),
        ("append", Value::List(have), _) => have.push(new),
        ("extend", Value::List(have), Value::List(new)) => have.extend(new.iter().cloned()),
        ("set", target, _)
        | ("update", target @ Value::Nil, Value::Map(_))
        | ("extend", target @ Value::Nil, Value::List(_)) => *target = new,
        ("append", target @ Value::Nil, _) => *target = Value::List(vec![new]),
        (_, have, _) => return cannot(have),
    }
    Ok(to_jinja(&data))
}
