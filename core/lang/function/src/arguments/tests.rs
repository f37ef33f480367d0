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
