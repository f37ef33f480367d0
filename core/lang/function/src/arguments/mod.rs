//! Parses command-line arguments as Salt does: `name=value` is a keyword argument, and values that are numbers,
//! booleans, lists or mappings in YAML are converted.

use brine_value::{Map, Value};

use crate::{Args, CallError};

/// Parses all arguments. The last value of a repeated keyword takes precedence. Values of the keywords in `no_parse`
/// stay strings.
///
/// # Examples
/// ```
/// use brine_function::{Args, arguments::parse};
/// use brine_value::{list, map};
///
/// let words = ["vim".to_owned(), "pkgs=[a, b]".to_owned(), "mode=0644".to_owned()];
/// let args = parse(&words, &["mode".to_owned()]);
/// let keyword = map! {"pkgs" => list!["a", "b"], "mode" => "0644"};
/// assert_eq!(args, Args { positional: vec!["vim".into()], keyword });
/// ```
pub fn parse(words: &[String], no_parse: &[String]) -> Args {
    let mut args = Args::default();
    for word in words {
        match keyword(word) {
            Some((name, text)) => {
                let stays_text = no_parse.iter().any(|untouched| untouched == name);
                let value = if stays_text { Value::from(text) } else { parse_value(text) };
                args.keyword.insert(name.into(), value);
            }
            None => args.positional.push(parse_value(word)),
        }
    }
    args
}

/// One parsed argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A positional argument.
    Positional(Value),
    /// The name and the value of a keyword argument.
    Keyword(String, Value),
}

/// Parses one argument of an untrusted sender. Its value takes at most `memory` bytes, from which its size is
/// subtracted; a larger one stays a string.
pub fn parse_within(word: &str, memory: &mut usize) -> Argument {
    match keyword(word) {
        Some((name, text)) => Argument::Keyword(name.to_owned(), parse_value_within(text, memory)),
        None => Argument::Positional(parse_value_within(word, memory)),
    }
}

/// Returns the name in a string `name=value`, which is a keyword argument; `None` for any other string.
pub fn keyword_name(word: &str) -> Option<&str> {
    keyword(word).map(|(name, _)| name)
}

/// Parses a string `name=value`; `None` for any other string. The value takes at most `memory` bytes, as in
/// [`parse_within`].
pub(crate) fn keyword_within<'a>(word: &'a str, memory: &mut usize) -> Option<(&'a str, Value)> {
    keyword(word).map(|(name, text)| (name, parse_value_within(text, memory)))
}

/// The maximum memory of the value of one argument, in bytes: arguments of programs are at most 128 kB.
pub(crate) const MAX_VALUE: usize = 32 << 20;

/// Parses one value as YAML, with Salt's exceptions.
///
/// A mapping or list must begin with its bracket, `#` does not begin a comment, digits with underscores are a string,
/// and invalid YAML is a string.
pub fn parse_value(word: &str) -> Value {
    parse_value_within(word, &mut { MAX_VALUE })
}

fn parse_value_within(word: &str, memory: &mut usize) -> Value {
    let digits_with_underscores = || word.contains('_') && word.chars().all(|c| c == '_' || c.is_numeric());
    let stays_text = word.trim().is_empty()
        || matches!(word, "---" | "..." | "|" | "!")
        || word.contains(['\t', '\n', '\r'])
        || digits_with_underscores();
    if stays_text {
        return word.into();
    }
    if word == "None" {
        return Value::Nil;
    }
    match brine_yaml::load_untrusted(word, memory) {
        Ok(Value::Map(_) | Value::List(_)) if !word.starts_with(['{', '[']) => word.into(),
        Ok(Value::Str(_) | Value::Nil) if word.contains('#') => word.into(),
        Ok(Value::Bytes(_)) | Err(_) => word.into(),
        Ok(value) => value,
    }
}

/// Splits `name=text` into a keyword and its text. With a second `=` right after the first, or with text after a line
/// break, such as in a script, the argument is positional.
fn keyword(word: &str) -> Option<(&str, &str)> {
    let (name, text) = word.split_once('=')?;
    // As `$` of a regular expression in Python, which also matches before a line break at the end.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let leads = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    (leads && rest && !text.starts_with('=') && !text.contains('\n')).then_some((name, text))
}

/// Returns a list of names from a list or a comma-separated string; null is an empty list.
pub fn names(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(ToString::to_string).collect(),
        Value::Nil => Vec::new(),
        text => text.to_string().split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    }
}

/// Refuses keyword arguments that a function accepts in Salt alone: the names, and what to do instead. One that is unset,
/// false or empty asks for nothing.
///
/// # Errors
/// One of the arguments is set.
///
/// # Examples
/// ```
/// use brine_function::arguments::refuse;
/// use brine_value::map;
///
/// let refused = [("root", "only services of this system can be enabled")];
/// assert!(refuse("service.enable", &map! {"root" => false}, &refused).is_ok());
/// let error = refuse("service.enable", &map! {"root" => "/mnt"}, &refused).unwrap_err();
/// let message = "the argument 'root' is not supported: only services of this system can be enabled";
/// assert_eq!(error.to_string(), format!("ERROR executing 'service.enable': {message}"));
/// ```
pub fn refuse(function: &str, kwargs: &Map, refused: &[(&str, &str)]) -> Result<(), CallError> {
    match refused.iter().find(|(name, _)| kwargs.get(*name).is_some_and(Value::is_truthy)) {
        None => Ok(()),
        Some((name, instead)) => Err(CallError::Invocation {
            function: function.to_owned(),
            message: format!("the argument '{name}' is not supported: {instead}"),
        }),
    }
}

#[cfg(test)]
mod tests;
