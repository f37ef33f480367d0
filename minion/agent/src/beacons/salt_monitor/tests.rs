use brine_value::list;

use super::super::tests::{poll_once, wrong};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn results_are_reported_unless_they_are_empty() {
    let with_arguments = map! {"test.arg" => map! {"args" => list![1], "kwargs" => list![map! {"a" => 2}]}};
    let config = list![map! {"salt_fun" => list!["test.ping", "test.false", with_arguments]}];
    let ret = map! {"args" => list![1], "kwargs" => map! {"a" => 2}};
    assert_eq!(
        poll_once("salt_monitor", &config).unwrap(),
        [
            map! {"salt_fun" => "test.ping", "ret" => true},
            map! {"salt_fun" => "test.arg", "ret" => ret, "args" => list![1], "kwargs" => map! {"a" => 2}},
        ]
    );
    let single = list![map! {"salt_fun" => "test.false"}];
    assert_eq!(poll_once("salt_monitor", &single).unwrap(), [map! {"salt_fun" => "test.false", "ret" => false}]);
    let unknown = poll_once("salt_monitor", &list![map! {"salt_fun" => list!["no.such"]}]).unwrap_err();
    assert!(unknown.starts_with("no.such: "), "{unknown}");
}

#[test]
fn options_are_checked() {
    let of = |entry: Value| list![map! {"salt_fun" => list![entry]}];
    for (config, error) in [
        (list![], "option 'salt_fun' is missing"),
        (list![map! {"salt_fun" => 5}], "option 'salt_fun': expected at most 1000 functions, got 5"),
        (of(5.into()), "option 'salt_fun': expected a function, got 5"),
        (of(map! {"a.b" => list![1]}.into()), "a.b: expected a mapping of options, got [1]"),
        (of(map! {"a.b" => map! {"args" => 1}}.into()), "a.b: option 'args': expected a list, got 1"),
        (of(map! {"a.b" => map! {"kwargs" => list![1]}}.into()), "a.b: kwargs: expected a mapping, got 1"),
        (of(map! {"a.b" => map! {"x" => 1}}.into()), "a.b: unknown option 'x': expected args or kwargs"),
    ] {
        assert_eq!(wrong("salt_monitor", &config), error);
    }
}
