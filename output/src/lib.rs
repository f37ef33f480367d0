//! The outputters: format values as Salt does, one module each.
//!
//! They return text and are independent of terminals and files. Untrusted text is escaped (`escape`).

#![warn(clippy::self_named_module_files)]

mod colour;
pub mod escape;
mod highstate;
mod json;
mod key;
mod line_format;
mod nested;
pub mod no_return;
mod options;
mod plan;
mod pprint;
mod raw;
mod table;
mod text;
mod txt;
mod yaml;

use std::str::FromStr;

use brine_value::Value;

pub use colour::{Colour, Colours};
pub use options::{Indent, OutputOptions, StateMode, StateOutput, Tabular};

/// An outputter, by Salt's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outputter {
    /// Indented text, the default.
    #[default]
    Nested,
    /// States with their summary.
    Highstate,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// A Python literal on one line.
    Raw,
    /// A Python literal, wrapped and sorted.
    Pprint,
    /// Lists of rows as tables.
    Table,
    /// Lines prefixed with the minion's id (`txt` or `text`).
    Txt,
    /// The lists of `salt-key`.
    Key,
    /// Plans: minions that would change in the same way.
    Plan,
    /// Empty output.
    Quiet,
    /// The red message about minions that did not return.
    NoReturn,
}

/// An unknown outputter. The message is Salt's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid outputter {0} specified, fall back to nested")]
pub struct UnknownOutputter(
    /// The requested name.
    pub String,
);

impl FromStr for Outputter {
    type Err = UnknownOutputter;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(match name {
            "nested" => Outputter::Nested,
            "highstate" => Outputter::Highstate,
            "json" => Outputter::Json,
            "yaml" => Outputter::Yaml,
            "raw" => Outputter::Raw,
            "pprint" => Outputter::Pprint,
            "table" => Outputter::Table,
            "txt" | "text" => Outputter::Txt,
            "key" => Outputter::Key,
            "plan" => Outputter::Plan,
            "quiet" => Outputter::Quiet,
            "no_return" => Outputter::NoReturn,
            other => return Err(UnknownOutputter(other.to_owned())),
        })
    }
}

impl Outputter {
    /// Returns the name of the outputter for a return: that of `--out`, else that of the function's hint.
    pub fn name<'a>(asked: Option<&'a str>, hint: Option<&'a str>) -> Option<&'a str> {
        asked.filter(|name| *name != "highstate").or(hint)
    }

    /// Returns the outputter for a return: that of `--out`, else that of the function's hint, else nested.
    ///
    /// As in Salt, `--out=highstate` has no effect: states have this hint, and other returns do not have this form.
    ///
    /// # Errors
    /// The name is unknown. The caller logs the error and uses nested.
    pub fn select(asked: Option<&str>, hint: Option<&str>) -> Result<Self, UnknownOutputter> {
        match Self::name(asked, hint) {
            Some(name) => name.parse(),
            None => Ok(Outputter::Nested),
        }
    }
}

/// Formats a value, without trailing whitespace or newline.
///
/// For the return of a minion the value is `{id: return}`. A value that does not have the shape required by the
/// outputter is formatted as nested.
pub fn display(value: &Value, outputter: Outputter, options: &OutputOptions) -> String {
    let nested = || nested::render(value, options);
    let text = match outputter {
        Outputter::Nested => nested(),
        Outputter::Yaml => yaml::render(value, options.indent),
        Outputter::Highstate => highstate::render(value, options).unwrap_or_else(nested),
        Outputter::Json => json::render(value, options.indent),
        Outputter::Raw => raw::render(value),
        Outputter::Pprint => pprint::render(value),
        Outputter::Table => table::render(value, &options.table, options.colours).unwrap_or_else(nested),
        Outputter::Txt => txt::render(value),
        Outputter::Key => key::render(value, options.colours).unwrap_or_else(nested),
        Outputter::Plan => plan::render(value, options.colours).unwrap_or_else(nested),
        Outputter::Quiet => String::new(),
        Outputter::NoReturn => no_return::render(value, options.colours),
    };
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_have_salts_message() {
        assert_eq!("text".parse(), Ok(Outputter::Txt));
        assert_eq!("quiet".parse(), Ok(Outputter::Quiet));
        assert_eq!(
            "newline_values_only".parse::<Outputter>().unwrap_err().to_string(),
            "Invalid outputter newline_values_only specified, fall back to nested"
        );
    }

    #[test]
    fn highstate_is_selected_by_the_hint_alone() {
        for (asked, hint, selected) in [
            (None, None, Outputter::Nested),
            (None, Some("highstate"), Outputter::Highstate),
            (Some("json"), Some("highstate"), Outputter::Json),
            (Some("highstate"), None, Outputter::Nested),
            (Some("highstate"), Some("highstate"), Outputter::Highstate),
            (Some("nested"), Some("highstate"), Outputter::Nested),
        ] {
            assert_eq!(Outputter::select(asked, hint), Ok(selected), "{asked:?} {hint:?}");
        }
        assert!(Outputter::select(Some("bogus"), Some("highstate")).is_err());
    }

    #[test]
    fn every_outputter_takes_the_deepest_decoded_value() {
        use brine_value::msgpack::MAX_DEPTH;
        use brine_value::{levels, list, map};

        let lists = (0..MAX_DEPTH).fold(Value::from(1), |inner, _| list![inner]);
        for value in [levels::nested(MAX_DEPTH), lists, map! {"web1" => levels::nested(MAX_DEPTH)}.into()] {
            for outputter in [
                Outputter::Nested,
                Outputter::Highstate,
                Outputter::Json,
                Outputter::Yaml,
                Outputter::Raw,
                Outputter::Pprint,
                Outputter::Table,
                Outputter::Txt,
                Outputter::Key,
                Outputter::Plan,
            ] {
                let text = display(&value, outputter, &OutputOptions::default());
                assert!(!text.is_empty(), "{outputter:?}");
            }
        }
    }

    #[test]
    fn trailing_whitespace_is_removed() {
        let value = Value::from("x \n\n");
        assert_eq!(display(&value, Outputter::Nested, &OutputOptions::default()), "x");
        assert_eq!(display(&value, Outputter::Quiet, &OutputOptions::default()), "");
    }
}
