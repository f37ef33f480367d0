//! The renderer `toml`.

use brine_value::{Map, Value};
use toml::Value as Toml;

/// Parses TOML. An error is the message and its line, from 1.
pub fn load(text: &str) -> Result<Value, (String, usize)> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
        (error.message().to_owned(), line)
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
        assert_eq!(load("a = 1\na = 2").unwrap_err().1, 2);
    }
}
