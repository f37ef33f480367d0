use super::*;
use brine_value::{list, map};

#[test]
fn paths_resolve_as_in_salt() {
    let inner = map! {
        "b" => 1, 2 => "two", "2" => "text2", 3 => "three", 1.5 => "f", true => "t", Value::Nil => "n", "" => "empty",
    };
    let value = Value::from(map! {
        "a" => inner,
        "l" => list!["x", map! {"k" => 1}, map! {"k" => 2, "j" => 3}, map! {0 => "zero"}],
        "lm" => list![map! {"k" => map! {"z" => 1}}, map! {"k" => map! {"w" => 2}}],
        "ln" => list![map! {"1" => "one"}, "b", map! {true => 2}], "ll" => list![list![1, 2], list![map! {"q" => 5}]],
        "s" => "str", "x:y" => 1, "0" => "text zero", "n" => Value::Nil,
    });
    for (path, expected) in [
        ("a:b", Some(Value::from(1))),
        ("a:2", Some("text2".into())),
        ("a:3", Some("three".into())),
        ("a:1.5", Some("f".into())),
        ("a:true", Some("t".into())),
        ("a:yes", Some("t".into())),
        ("a:~", Some("n".into())),
        ("a:", Some("empty".into())),
        ("a:b:c", None),
        ("0", Some("text zero".into())),
        ("l:0", Some("zero".into())),
        ("l:0:k", None),
        ("l:1", Some(map! {"k" => 1}.into())),
        ("l: 1:k", Some(1.into())),
        ("l:k", Some(1.into())),
        ("l:j", Some(3.into())),
        ("l:-1", Some(map! {0 => "zero"}.into())),
        ("l:9", None),
        ("l:-9", None),
        ("ln:0", Some(map! {"1" => "one"}.into())),
        ("ln:1", Some("b".into())),
        ("ln:true", None),
        ("lm:k:z", Some(1.into())),
        ("lm:k:w", None),
        ("lm:1:k:w", Some(2.into())),
        ("ll:0:1", Some(2.into())),
        ("ll:q", None),
        ("ll:1:q", Some(5.into())),
        ("s:0", None),
        ("n", Some(Value::Nil)),
        ("n:x", None),
        ("x:y", None),
        ("zz", None),
        ("", None),
        (":a", None),
    ] {
        assert_eq!(traverse(&value, path, ":"), expected.as_ref(), "{path}");
    }
    assert_eq!(traverse(&value, "x:y", "/"), Some(&1.into()));
    assert_eq!(traverse(&value, "a<>b", "<>"), Some(&1.into()));
    assert_eq!(traverse(&value, "s", ""), Some(&"str".into()));
    assert_eq!(traverse(&"text".into(), "0", ":"), None);
}

proptest::proptest! {
    #[test]
    fn any_path_is_handled(path in ".*", delimiter in ".{0,2}") {
        let value = Value::from(map! {"a" => list![map! {1 => 2}], 3 => 4});
        let _ = traverse(&value, &path, &delimiter);
    }
}
