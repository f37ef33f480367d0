//! Parses command-line arguments as Salt does: `name=value` is a keyword argument, and values that are numbers,
//! booleans, lists or mappings in YAML are converted.

use brine_value::Value;

use crate::Args;

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

/// Parses one value as YAML, with Salt's exceptions.
///
/// A mapping or list must begin with its bracket, `#` does not begin a comment, digits with underscores are a string,
/// and invalid YAML is a string.
pub fn parse_value(word: &str) -> Value {
    let digits_with_underscores = || word.contains('_') && word.chars().all(|c| c == '_' || c.is_numeric());
    let kept = word.trim().is_empty()
        || matches!(word, "---" | "..." | "|" | "!")
        || word.contains(['\t', '\n', '\r'])
        || digits_with_underscores();
    if kept {
        return word.into();
    }
    if word == "None" {
        return Value::Nil;
    }
    match brine_yaml::load(word) {
        Ok(Value::Map(_) | Value::List(_)) if !word.starts_with(['{', '[']) => word.into(),
        Ok(Value::Str(_) | Value::Nil) if word.contains('#') => word.into(),
        Ok(Value::Bytes(_)) | Err(_) => word.into(),
        Ok(value) => value,
    }
}

/// Splits `name=text` into a keyword and its text. With a second `=` right after the first, the argument is positional.
fn keyword(word: &str) -> Option<(&str, &str)> {
    let (name, text) = word.split_once('=')?;
    let leads = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    (leads && rest && !text.starts_with('=')).then_some((name, text))
}

/// Returns a list of names from a list or a comma-separated string; null is an empty list.
pub fn names(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(ToString::to_string).collect(),
        Value::Nil => Vec::new(),
        text => text.to_string().split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{list, map};

    fn read(words: &[&str], no_parse: &[&str]) -> Args {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        parse(&owned(words), &owned(no_parse))
    }

    #[test]
    fn arguments_are_parsed_as_yaml() {
        for (word, value) in [
            ("1", 1.into()),
            ("0644", 644.into()),
            ("-1_000", (-1000).into()),
            ("1.0", 1.0.into()),
            ("true", true.into()),
            ("yes", true.into()),
            ("on", true.into()),
            ("None", Value::Nil),
            ("null", Value::Nil),
            ("~", Value::Nil),
            ("&a", Value::Nil),
            ("!!null x", Value::Nil),
            ("12:30", 750.into()),
            ("0x1f", 31.into()),
            ("\"42\"", "42".into()),
            ("'42'", "42".into()),
            ("'a: b'", "a: b".into()),
            ("!!str 1", "1".into()),
            (">", "".into()),
            ("1 # y", 1.into()),
            ("true # c", true.into()),
            ("{a: 1}", map! {"a" => 1}.into()),
            ("{a: 1} #x", map! {"a" => 1}.into()),
            ("[1, two]", list![1, "two"]),
            ("{}", map! {}.into()),
        ] {
            assert_eq!(parse_value(word), value, "{word}");
        }
    }

    #[test]
    fn arguments_with_salts_exceptions_stay_strings() {
        for word in [
            "",
            "   ",
            "---",
            "...",
            "|",
            "!",
            "a\tb",
            "a\nb",
            "a\rb",
            "[\t1]",
            "1_000",
            "1_",
            "_1",
            "_",
            "1__0",
            "x # y",
            "#c",
            "# {a: 1}",
            "null # c",
            "'x' # c",
            "None # c",
            "a: b",
            "- a",
            "- {a: 1}",
            " {a: 1}",
            " [1]",
            "{a: b",
            "*x",
            "@x",
            "[1, 2",
            "{a: 1, a: 2}",
            "[a]: 1",
            "1e3",
            "2024-01-02",
            "!foo",
            "!!binary aGk=",
            "!!set {a}",
            "%x",
            "=",
            "<<",
            "`",
            "-",
            "a: ",
            "\x07",
            "NONE",
            "1,2",
            "0o17",
            "()",
        ] {
            assert_eq!(parse_value(word), word.into(), "{word:?}");
        }
    }

    #[test]
    fn a_name_before_an_equals_sign_makes_a_keyword() {
        for (word, name, value) in [
            ("a=1", "a", Value::from(1)),
            ("a.b-c=1", "a.b-c", 1.into()),
            ("_a=1", "_a", 1.into()),
            ("é=1", "é", 1.into()),
            ("a=b=c", "a", "b=c".into()),
            ("a=", "a", "".into()),
            ("a= 1", "a", 1.into()),
            ("a=0644", "a", 644.into()),
            ("a=[1, 2]", "a", list![1, 2]),
            ("a={b: 1}", "a", map! {"b" => 1}.into()),
            ("a=None", "a", Value::Nil),
            ("a=#c", "a", "#c".into()),
            ("a=a: b", "a", "a: b".into()),
            ("a=\ta", "a", "\ta".into()),
            ("a=1_000", "a", "1_000".into()),
        ] {
            assert_eq!(read(&[word], &[]), Args::keyword(map! {name => value}), "{word}");
        }
    }

    #[test]
    fn other_arguments_are_positional() {
        for word in ["a==b", "-a=1", "1a=2", "=x", "a b=1", "http://x?a=1", "a =1", "a\n=1"] {
            assert_eq!(read(&[word], &[]), Args::positional([word.into()]), "{word}");
        }
    }

    #[test]
    fn the_last_keyword_wins_and_some_are_not_parsed() {
        let args = read(&["a=1", "x", "b=0644", "2", "a=[1]"], &["a", "c"]);
        assert_eq!(args.positional, ["x".into(), 2.into()]);
        assert_eq!(args.keyword, map! {"a" => "[1]", "b" => 644});
    }

    proptest::proptest! {
        #[test]
        fn any_arguments_are_parsed(words in proptest::collection::vec(".*", 0..4)) {
            let args = parse(&words, &[]);
            proptest::prop_assert!(args.positional.len() + args.keyword.len() <= words.len());
        }
    }

    #[test]
    fn names_are_lists_or_comma_separated() {
        assert_eq!(names(&"a, b,".into()), ["a", "b"]);
        assert_eq!(names(&brine_value::list!["a", 5]), ["a", "5"]);
        assert_eq!(names(&Value::Nil), Vec::<String>::new());
    }
}
