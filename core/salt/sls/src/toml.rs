//! TOML: the renderer `toml`, and the serializer of that name.

use brine_value::{Map, Value, python};
use toml::Value as Toml;

/// A text that is not TOML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}; line {line}")]
pub struct LoadError {
    /// The parser's words.
    pub message: String,
    /// The line of the error, from 1.
    pub line: usize,
}

/// Data that cannot be written as TOML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// The data is not a mapping, but of this type of Python.
    #[error("the data is invalid: expected a mapping, got {0}")]
    NotAMapping(&'static str),
    /// TOML lacks the value: null in a list, or bytes.
    #[error("{key} is invalid: TOML has no {kind} in this place")]
    Unrepresentable {
        /// The key of the value, or of the list that contains it.
        key: String,
        /// The type of Python of the value.
        kind: &'static str,
    },
}

/// Parses TOML.
pub fn load(text: &str) -> Result<Value, LoadError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
        LoadError { message: error.message().to_owned(), line }
    })?;
    Ok(converted(Toml::Table(table)))
}

fn converted(value: Toml) -> Value {
    match value {
        Toml::String(text) => text.into(),
        Toml::Integer(number) => number.into(),
        Toml::Float(number) => number.into(),
        Toml::Boolean(truth) => truth.into(),
        // As in YAML, dates become strings.
        Toml::Datetime(time) => time.to_string().into(),
        Toml::Array(items) => items.into_iter().map(converted).collect(),
        Toml::Table(table) => {
            Value::Map(table.into_iter().map(|(key, value)| (key.into(), converted(value))).collect::<Map>())
        }
    }
}

/// Formats a mapping as TOML, in the layout of the Python package `toml`: the values of a table, then its lists of
/// tables, then the tables in it. Null values are left out.
pub fn dump(data: &Value) -> Result<String, DumpError> {
    let Some(data) = data.as_map() else {
        return Err(DumpError::NotAMapping(data.type_name()));
    };
    let (mut text, tables) = body(data, "")?;
    add_tables(&mut text, tables, true)?;
    Ok(text)
}

/// Tables by their full name.
type Tables<'data> = Vec<(String, &'data Map)>;

/// Appends tables, then their subtables.
fn add_tables(text: &mut String, mut tables: Tables<'_>, is_spaced: bool) -> Result<(), DumpError> {
    while !tables.is_empty() {
        let mut deeper = Tables::new();
        for (name, table) in tables {
            let (own, below) = body(table, &format!("{name}."))?;
            if !own.is_empty() || below.is_empty() {
                if is_spaced && !text.is_empty() && !text.ends_with("\n\n") {
                    text.push('\n');
                }
                text.push_str(&format!("[{name}]\n{own}"));
            }
            deeper.extend(below);
        }
        tables = deeper;
    }
    Ok(())
}

/// Returns the values and lists of tables of a table, and the tables in it. `prefix` is its name and a dot.
fn body<'data>(table: &'data Map, prefix: &str) -> Result<(String, Tables<'data>), DumpError> {
    let (mut text, mut lists, mut tables) = (String::new(), String::new(), Tables::new());
    for (key, value) in table {
        let key = shown_key(&key.to_string());
        match value {
            Value::Nil => {}
            Value::Map(below) => tables.push((format!("{prefix}{key}"), below)),
            Value::List(items) if !items.is_empty() && items.iter().all(|item| item.as_map().is_some()) => {
                for item in items.iter().filter_map(Value::as_map) {
                    let name = format!("{prefix}{key}");
                    let (own, below) = body(item, &format!("{name}."))?;
                    // As in Python: an empty line follows the values, and precedes nested lists.
                    let (before, after) = if own.starts_with('[') { ("", own) } else { (own.as_str(), String::new()) };
                    lists.push_str(&format!("[[{name}]]\n{before}\n{after}"));
                    add_tables(&mut lists, below, false)?;
                }
            }
            value => text.push_str(&format!("{key} = {}\n", inline(value, &key)?)),
        }
    }
    Ok((text + &lists, tables))
}

/// Formats a value on one line.
fn inline(value: &Value, key: &str) -> Result<String, DumpError> {
    Ok(match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Str(text) => shown_text(text),
        Value::Float(_) => python::repr(value).replace("e+0", "e+").replace("e-0", "e-"),
        Value::List(items) => {
            let items = items.iter().map(|item| Ok(format!(" {},", inline(item, key)?)));
            format!("[{}]", items.collect::<Result<String, DumpError>>()?)
        }
        Value::Map(table) => {
            let values = table.iter().filter(|(_, value)| !value.is_nil());
            let one = |(key, value): (&Value, &Value)| {
                let key = shown_key(&key.to_string());
                inline(value, &key).map(|value| format!("{key} = {value}"))
            };
            format!("{{ {} }}", values.map(one).collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        Value::Int(_) | Value::UInt(_) | Value::Big(_) => value.to_string(),
        Value::Nil | Value::Bytes(_) => {
            return Err(DumpError::Unrepresentable { key: key.to_owned(), kind: value.type_name() });
        }
    })
}

fn shown_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_bare { key.to_owned() } else { shown_text(key) }
}

fn shown_text(text: &str) -> String {
    let mut literal = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            '\n' => literal.push_str("\\n"),
            '\t' => literal.push_str("\\t"),
            '\r' => literal.push_str("\\r"),
            c if c.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{list, map};

    #[test]
    fn tables_are_mappings() {
        let text = "z = 1\na = [1.5, true, 'x']\nd = 1979-05-27\n[t.u]\nv = \"w\"\n";
        let expected = map! {
            "z" => 1, "a" => list![1.5, true, "x"], "d" => "1979-05-27", "t" => map! {"u" => map! {"v" => "w"}},
        };
        assert_eq!(load(text), Ok(expected.into()));
        assert_eq!(load("a = 1\na = 2").unwrap_err().line, 2);
    }

    /// The texts are those of the Python package `toml`, but for the control character.
    #[test]
    fn mappings_are_written_as_by_python() {
        for (data, text) in [
            (
                map! {"a" => 1, "b" => "x\"y\\z\n\té'", "c" => 1.5, "d" => true, "e" => list![1, 2], "f" => Value::Nil},
                "a = 1\nb = \"x\\\"y\\\\z\\n\\té'\"\nc = 1.5\nd = true\ne = [ 1, 2,]\n",
            ),
            (
                map! {"title" => "t", "owner" => map! {"name" => "n", "deep" => map! {"x" => 1}}, "last" => 2},
                "title = \"t\"\nlast = 2\n\n[owner]\nname = \"n\"\n\n[owner.deep]\nx = 1\n",
            ),
            (map! {"a" => map! {"b" => map! {"c" => map! {"d" => 1}}}}, "[a.b.c]\nd = 1\n"),
            (map! {"a" => map! {}, "b" => map! {"c" => map! {}}}, "[a]\n\n[b.c]\n"),
            (
                map! {"t" => list![map! {"x" => 1, "y" => map! {"z" => 2}}, map! {"x" => 2}], "k" => 1},
                "k = 1\n[[t]]\nx = 1\n\n[t.y]\nz = 2\n[[t]]\nx = 2\n\n",
            ),
            (map! {"m" => map! {"t" => list![map! {"x" => map! {"y" => 1}}]}}, "[m]\n[[m.t]]\n\n[m.t.x]\ny = 1\n"),
            (
                map! {"q key" => 1, "a.b" => map! {"c d" => 2}, "s" => map! {"e.f" => map! {"g" => 1}}},
                "\"q key\" = 1\n\n[\"a.b\"]\n\"c d\" = 2\n\n[s.\"e.f\"]\ng = 1\n",
            ),
            (map! {"l" => list![list![1, 2], list!["a"]]}, "l = [ [ 1, 2,], [ \"a\",],]\n"),
            (
                map! {"f" => 1e20, "g" => 1e-7, "h" => 1.0, "i" => f64::INFINITY},
                "f = 1e+20\ng = 1e-7\nh = 1.0\ni = inf\n",
            ),
            (
                map! {"d" => map! {"a" => 1, "s" => map! {"x" => 1}}, "e" => map! {"a" => 1}},
                "[d]\na = 1\n\n[e]\na = 1\n\n[d.s]\nx = 1\n",
            ),
            (map! {"g" => list![], "c" => "\t\u{1}"}, "g = []\nc = \"\\t\\u0001\"\n"),
            (map! {"i" => list![map! {"a" => 1}, 2]}, "i = [ { a = 1 }, 2,]\n"),
        ] {
            assert_eq!(dump(&data.clone().into()).as_deref(), Ok(text), "{data:?}");
            let data: Map = data.into_iter().filter(|(_, value)| !value.is_nil()).collect();
            let read = load(text).unwrap();
            assert!(data.iter().all(|(key, value)| read.get(key.as_str().unwrap()) == Some(value)), "{read}");
        }
        for (data, error) in [
            (map! {"n" => list![Value::Nil]}.into(), "n is invalid: TOML has no NoneType in this place"),
            (list![1], "the data is invalid: expected a mapping, got list"),
        ] {
            assert_eq!(dump(&data).unwrap_err().to_string(), error);
        }
    }
}
