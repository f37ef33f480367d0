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
mod tests;
