use brine_value::{list, map};

use super::*;

#[test]
fn values_of_a_repeated_key_are_joined_as_their_tags_say() {
    for (text, value) in [
        ("", Value::from(map! {})),
        ("a: 1\nb: [x, 0644]\n", map! {"a" => 1, "b" => list!["x", 644]}.into()),
        ("a: !aggregate x\na: !aggregate y\na: !aggregate x\n", map! {"a" => list!["x", "y"]}.into()),
        ("a: !aggregate x\na: y\n", map! {"a" => "y"}.into()),
        (
            "a: !aggregate {k: !aggregate 1}\na: !aggregate {k: !aggregate 2, l: 3}\n",
            map! {"a" => map! {"k" => list![1, 2], "l" => 3}}.into(),
        ),
        ("a: {k: 1, m: 4}\na: {k: 2}\n", map! {"a" => map! {"k" => 2}}.into()),
        ("a: !aggregate 1\n!reset a: !aggregate 2\na: !aggregate 3\n", map! {"a" => list![2, 3]}.into()),
        ("!aggregate a: 1\n!aggregate a: 2\n", map! {"a" => list![1, 2]}.into()),
        ("a: !aggregate [1]\na: !aggregate\n", map! {"a" => list![1]}.into()),
        (
            "base: &b {x: 1}\na: {<<: *b, y: 2}\n",
            map! {"base" => map! {"x" => 1}, "a" => map! {"x" => 1, "y" => 2}}.into(),
        ),
        ("foo", list!["foo"]),
        ("a: !!str 1\n", map! {"a" => "1"}.into()),
    ] {
        assert_eq!(load_extended(text), Ok(value), "{text}");
    }
}

#[test]
fn invalid_documents_are_errors() {
    for text in ["a: [1", "a: !other 1", "? [a]\n: 1\n", &"[".repeat(1000)] {
        assert!(load_extended(text).is_err(), "{text}");
    }
    let mut lines = vec!["k0: &k0 [1, 2]".to_owned()];
    lines.extend((1..40).map(|i| format!("k{i}: &k{i} [*k{0}, *k{0}]", i - 1)));
    assert!(load_extended(&lines.join("\n")).is_err(), "aliases are bounded");
}
