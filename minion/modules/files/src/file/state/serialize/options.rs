//! The options of `file.serialize` for its formats.

use brine_value::{FromValue, Map, Value, list};

/// Options of a format, all of which it has.
pub(super) struct FormatOptions<'a> {
    options: &'a Map,
    argument: &'static str,
}

impl<'a> FormatOptions<'a> {
    /// Checks that a format has these options; `argument` is the name of the state's argument.
    ///
    /// # Errors
    /// An option that the format does not have: Salt hands it to a library of Python.
    pub fn new(options: &'a Map, argument: &'static str, format: &str) -> Result<Self, String> {
        let names: &[&str] = match (format, argument) {
            ("json", "serializer_opts") => &["indent", "separators", "sort_keys"],
            ("yaml", "serializer_opts") => &[
                "allow_unicode",
                "default_flow_style",
                "explicit_end",
                "explicit_start",
                "indent",
                "sort_keys",
                "width",
            ],
            // Python's name for refusing control characters in texts, which are always refused here.
            ("json", "deserializer_opts") => &["strict"],
            ("configparser", _) => &["defaults"],
            ("json" | "yaml" | "toml" | "python" | "msgpack", _) => &[],
            // Whatever it is, it has another error than its options.
            _ => return Ok(FormatOptions { options, argument }),
        };
        if let Some(unknown) = options.keys().find(|name| name.as_str().is_none_or(|name| !names.contains(&name))) {
            let expected = if names.is_empty() { format!("no options for {format}") } else { names.join(", ") };
            return Err(format!("{argument} is invalid: expected {expected}, got {unknown}"));
        }
        if let Some(separators) = options.get("separators").filter(|value| **value != list![",", ": "]) {
            let separators = brine_value::json::to_json(separators);
            return Err(format!("{argument} separators is invalid: expected [\",\", \": \"], got {separators}"));
        }
        Ok(FormatOptions { options, argument })
    }

    /// Whether an option is true.
    pub fn is(&self, name: &str, default: bool) -> bool {
        self.options.get(name).map_or(default, Value::is_truthy)
    }

    /// Returns `defaults`, a mapping.
    pub fn defaults(&self) -> Map {
        self.options.get("defaults").and_then(Value::as_map).cloned().unwrap_or_default()
    }

    /// Returns `indent`, a number of spaces.
    ///
    /// # Errors
    /// It is not a number.
    pub fn indent(&self, default: usize) -> Result<usize, String> {
        match self.options.get("indent") {
            None => Ok(default),
            Some(indent) => usize::from_value(indent)
                .ok_or_else(|| format!("{} indent is invalid: expected a number, got {indent}", self.argument)),
        }
    }

    /// Returns the layout of YAML.
    ///
    /// # Errors
    /// `indent` is not a number from 2 to 9, or `width` not a number.
    pub fn yaml_style(&self) -> Result<brine_yaml::Style, String> {
        let base =
            if self.is("default_flow_style", false) { brine_yaml::Style::FLOW } else { brine_yaml::Style::BLOCK };
        let indent = self.indent(2)?;
        let indent = u8::try_from(indent).ok().filter(|indent| (2..=9).contains(indent)).ok_or_else(|| {
            format!("{} indent is invalid: expected a number from 2 to 9, got {indent}", self.argument)
        })?;
        // PyYAML ignores a width that leaves no room beside the indent. Salt removes the mark of `explicit_end` again.
        let width = match self.options.get("width") {
            None | Some(Value::Nil) => base.width,
            Some(width) => match u16::from_value(width) {
                Some(width) if width > 2 * u16::from(indent) => width,
                Some(_) => base.width,
                None => {
                    let expected = u16::EXPECTED;
                    return Err(format!("{} width is invalid: expected {expected}, got {width}", self.argument));
                }
            },
        };
        Ok(brine_yaml::Style {
            ascii: !self.is("allow_unicode", false),
            indent,
            keep_order: !self.is("sort_keys", true),
            explicit_start: self.is("explicit_start", false),
            width,
            ..base
        })
    }
}
