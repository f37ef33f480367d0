//! Renders statements of syslog-ng's configuration from data.
//!
//! Statements hold options, options parameters, parameters values, and values arguments: each level is a mapping of one
//! key, the type. The statement `log` holds references to other statements, definitions, and junctions of channels.

use brine_value::Value;

/// Spaces per level of indentation.
const STEP: usize = 4;
/// The types of statements without a name.
const UNNAMED: [&str; 4] = ["log", "channel", "junction", "options"];

/// Returns the text of a statement. `name` is its name, or its type and name with a dot between them.
///
/// # Errors
/// The configuration is not of this structure.
pub(super) fn statement(name: &str, config: &Value) -> Result<String, String> {
    let (kind, id, options) = if let Some((kind, id)) = name.split_once('.') {
        (kind.to_owned(), id, config)
    } else {
        let (kind, options) = single(config, "configuration")?;
        (kind, name, options)
    };
    if kind == "config" {
        return Ok(format!("{options}\n"));
    }
    let mut text = Text::default();
    let header = if UNNAMED.contains(&kind.as_str()) { format!("{kind} {{") } else { format!("{kind} {id} {{") };
    text.block(&header, "};\n", |text| {
        if kind == "log" { text.log(list(options, "log")?) } else { text.options(list(options, &kind)?) }
    })?;
    Ok(text.text)
}

/// Returns the first key of a mapping, and its value.
fn single<'a>(value: &'a Value, what: &str) -> Result<(String, &'a Value), String> {
    let first = value.as_map().and_then(|map| map.first());
    let (key, value) = first.ok_or_else(|| format!("the {what} is invalid: expected a mapping, got {value}"))?;
    Ok((key.to_string(), value))
}

fn list<'a>(value: &'a Value, what: &str) -> Result<&'a [Value], String> {
    value.as_list().ok_or_else(|| format!("the content of {what} is invalid: expected a list, got {value}"))
}

fn is_simple(value: &Value) -> bool {
    !matches!(value, Value::Nil | Value::Bytes(_) | Value::List(_) | Value::Map(_))
}

/// Parses a reference to another statement: a mapping from its type to its name.
fn reference(value: &Value) -> Option<(&Value, &Value)> {
    value.as_map().filter(|map| map.len() == 1)?.first().filter(|(_, value)| value.as_str().is_some())
}

/// Parses an inline definition of a statement: a mapping from its type to a list of its content.
fn definition(value: &Value) -> Option<(String, &[Value])> {
    let (kind, content) = value.as_map().filter(|map| map.len() == 1)?.first()?;
    Some((kind.to_string(), content.as_list()?))
}

#[derive(Default)]
struct Text {
    text: String,
    level: usize,
}

impl Text {
    fn indented(&mut self, words: &str) {
        self.text += &" ".repeat(self.level * STEP);
        self.text += words;
    }

    /// Adds a header, an inner part one level deeper, and a tail.
    fn block(
        &mut self,
        header: &str,
        tail: &str,
        inner: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        self.indented(&format!("{header}\n"));
        self.level += 1;
        inner(self)?;
        self.level -= 1;
        self.indented(tail);
        Ok(())
    }

    /// Adds items separated by `between`, and a newline after the last one.
    fn joined<T>(
        &mut self,
        items: &[T],
        between: &str,
        mut add: impl FnMut(&mut Self, &T) -> Result<(), String>,
    ) -> Result<(), String> {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text += between;
            }
            add(self, item)?;
        }
        if !items.is_empty() {
            self.text.push('\n');
        }
        Ok(())
    }

    fn options(&mut self, options: &[Value]) -> Result<(), String> {
        for option in options {
            let (kind, parameters) = single(option, "option")?;
            let only = [parameters.clone()];
            let parameters = if is_simple(parameters) { &only[..] } else { list(parameters, &kind)? };
            self.option(&kind, parameters)?;
        }
        Ok(())
    }

    fn option(&mut self, kind: &str, parameters: &[Value]) -> Result<(), String> {
        self.block(&format!("{kind}("), ");\n", |text| text.joined(parameters, ",\n", Text::parameter))
    }

    fn parameter(&mut self, parameter: &Value) -> Result<(), String> {
        if is_simple(parameter) {
            self.indented(&parameter.to_string());
            return Ok(());
        }
        let (kind, value) = single(parameter, "parameter")?;
        let values: Vec<&Value> = match value {
            Value::List(values) => values.iter().filter(|value| is_simple(value) || value.as_map().is_some()).collect(),
            value if is_simple(value) && value.as_str() != Some("") => vec![value],
            _ => Vec::new(),
        };
        self.block(&format!("{kind}("), ")", |text| text.joined(&values, ",\n", |text, value| text.value(value)))
    }

    fn value(&mut self, value: &Value) -> Result<(), String> {
        if is_simple(value) {
            self.indented(&value.to_string());
            return Ok(());
        }
        let (kind, content) = single(value, "value")?;
        let arguments: Vec<&Value> = match content {
            Value::List(arguments) => arguments.iter().collect(),
            content if is_simple(content) => vec![content],
            _ => Vec::new(),
        };
        self.block(&format!("{kind}("), ")", |text| {
            text.joined(&arguments, "\n", |text, argument| {
                text.indented(&argument.to_string());
                Ok(())
            })
        })
    }

    /// Adds an item of a log path or a channel: a reference or a definition. Other items are omitted.
    fn path(&mut self, item: &Value) -> Result<(), String> {
        if let Some((kind, name)) = reference(item) {
            self.option(&kind.to_string(), std::slice::from_ref(name))
        } else if let Some((kind, options)) = definition(item) {
            self.block(&format!("{kind} {{"), "};\n", |text| text.options(options))
        } else {
            Ok(())
        }
    }

    fn log(&mut self, items: &[Value]) -> Result<(), String> {
        for item in items {
            match definition(item) {
                Some((kind, channels)) if kind == "junction" => self.block("junction {", "};\n", |text| {
                    channels.iter().try_for_each(|channel| {
                        let (_, items) = single(channel, "channel")?;
                        let items = list(items, "channel")?;
                        text.block("channel {", "};\n", |text| items.iter().try_for_each(|item| text.path(item)))
                    })
                })?,
                _ => self.path(item)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn statements_have_salts_form() {
        let tls = map! {"tls" => list![map! {"peer-verify" => "'x'"}, map! {"key_file" => list!["'/a'", "'/b'"]}]};
        let source =
            list![map! {"tcp" => list![map! {"ip" => "127.0.0.1"}, map! {"port" => 1233}, tls, map! {"flag" => ""}]}];
        let expected = "source s_gsoc2014 {\n    tcp(\n        ip(\n            127.0.0.1\n        ),\n        port(\n            1233\n        ),\n        \
                        tls(\n            peer-verify(\n                'x'\n            ),\n            key_file(\n                '/a'\n                '/b'\n            )\n        ),\n        \
                        flag(\n        )\n    );\n};\n";
        assert_eq!(statement("s_gsoc2014", &map! {"source" => source.clone()}.into()).unwrap(), expected);
        assert_eq!(statement("source.s_gsoc2014", &source).unwrap(), expected);
        let channel =
            list![map! {"filter" => "f_json"}, map! {"parser" => list![map! {"json-parser" => "prefix('a')"}]}];
        let log = list![
            map! {"source" => "s_a"},
            map! {"junction" => list![map! {"channel" => channel}]},
            map! {"destination" => list![map! {"file" => list!["\"/x\""]}]}
        ];
        let expected = "log {\n    source(\n        s_a\n    );\n    junction {\n        channel {\n            filter(\n                f_json\n            );\n            \
                        parser {\n                json-parser(\n                    prefix('a')\n                );\n            };\n        };\n    };\n    \
                        destination {\n        file(\n            \"/x\"\n        );\n    };\n};\n";
        assert_eq!(statement("l_a", &map! {"log" => log}.into()).unwrap(), expected);
        assert_eq!(statement("x", &map! {"config" => "@include \"a\""}.into()).unwrap(), "@include \"a\"\n");
        let options = list![map! {"time_reap" => 30}, map! {"use_dns" => true}];
        let expected = "options {\n    time_reap(\n        30\n    );\n    use_dns(\n        True\n    );\n};\n";
        assert_eq!(statement("options.", &options).unwrap(), expected);
    }

    #[test]
    fn other_forms_are_rejected() {
        for (name, config, expected) in [
            ("a", list![1], "the configuration is invalid: expected a mapping"),
            ("source.a", "x".into(), "the content of source is invalid: expected a list, got x"),
            ("source.a", list![1], "the option is invalid: expected a mapping, got 1"),
            ("source.a", list![map! {"tcp" => Value::Nil}], "the content of tcp is invalid: expected a list"),
            ("source.a", list![map! {"tcp" => list![list![]]}], "the parameter is invalid: expected a mapping"),
            ("log.", list![map! {"junction" => list![1]}], "the channel is invalid: expected a mapping"),
        ] {
            let error = statement(name, &config).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
