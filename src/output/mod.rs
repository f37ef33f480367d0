//! The outputters: values to the text that people and scripts know from Salt.
//!
//! One file an outputter. They build text and know neither terminals nor where it goes; that is [`crate::ui`]'s.

mod highstate;
mod json;
mod key;
mod nested;
pub mod no_return;
mod options;
mod pprint;
mod raw;
mod text;
mod txt;
mod yaml;

use std::str::FromStr;

use brine_value::Value;
pub use options::{Indent, OutputOptions, StateMode, StateOutput};

/// A form of output, by Salt's names.
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
    /// Python's literal on one line.
    Raw,
    /// Python's literal, wrapped and sorted.
    Pprint,
    /// Lines with the minion's id in front (`txt` or `text`).
    Txt,
    /// salt-key's lists.
    Key,
    /// Nothing at all.
    Quiet,
    /// The red text for minions that did not answer.
    NoReturn,
}

/// There is no outputter of this name. The text is what Salt logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid outputter {0} specified, fall back to nested")]
pub struct UnknownOutputter(
    /// The name that was asked for.
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
            "txt" | "text" => Outputter::Txt,
            "key" => Outputter::Key,
            "quiet" => Outputter::Quiet,
            "no_return" => Outputter::NoReturn,
            other => return Err(UnknownOutputter(other.to_owned())),
        })
    }
}

impl Outputter {
    /// The outputter for a return: what the user asked for with `--out`, else what the function hints at, else nested.
    ///
    /// As in Salt, asking for `highstate` changes nothing: states hint at it by themselves, and other returns do not
    /// have that shape. For an unknown name the error tells what to log; the caller goes on with nested.
    pub fn select(asked: Option<&str>, hint: Option<&str>) -> Result<Self, UnknownOutputter> {
        match asked.filter(|name| *name != "highstate").or(hint) {
            Some(name) => name.parse(),
            None => Ok(Outputter::Nested),
        }
    }
}

/// The text of a value without trailing whitespace; whoever prints it adds the newline.
///
/// For the return of a minion the value is `{id: return}`. A value that does not have the shape an outputter wants is
/// shown nested.
pub fn display(value: &Value, outputter: Outputter, options: &OutputOptions) -> String {
    let nested = || nested::render(value, options);
    let text = match outputter {
        Outputter::Nested => nested(),
        Outputter::Yaml => yaml::render(value, options.indent),
        Outputter::Highstate => highstate::render(value, options).unwrap_or_else(nested),
        Outputter::Json => json::render(value, options.indent),
        Outputter::Raw => raw::render(value),
        Outputter::Pprint => pprint::render(value),
        Outputter::Txt => txt::render(value),
        Outputter::Key => key::render(value, options.colours).unwrap_or_else(nested),
        Outputter::Quiet => String::new(),
        Outputter::NoReturn => no_return::render(value, options.colours),
    };
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_salts_and_unknown_ones_say_what_salt_logs() {
        assert_eq!("text".parse(), Ok(Outputter::Txt));
        assert_eq!("quiet".parse(), Ok(Outputter::Quiet));
        assert_eq!(
            "newline_values_only".parse::<Outputter>().unwrap_err().to_string(),
            "Invalid outputter newline_values_only specified, fall back to nested"
        );
    }

    #[test]
    fn asking_for_highstate_leaves_the_choice_to_the_function() {
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
    fn trailing_whitespace_is_cut_and_quiet_is_quiet() {
        let value = Value::from("x \n\n");
        assert_eq!(display(&value, Outputter::Nested, &OutputOptions::default()), "x");
        assert_eq!(display(&value, Outputter::Quiet, &OutputOptions::default()), "");
    }
}
