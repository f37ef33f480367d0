use brine_function::Args;
use brine_value::{list, map};

use super::*;
use crate::testing;

#[test]
fn defaults_of_formulas_are_loaded() {
    let context = testing::context(&[("f/defaults.yaml", "a: {b: 1}"), ("g/defaults.json", "{\"c\": 2}")]);
    for (args, expected) in [
        (list!["f:a:b"], 1.into()),
        (list!["f"], map! {"a" => map! {"b" => 1}}.into()),
        (list!["f:z", 7], 7.into()),
        (list!["g:c"], 2.into()),
        (list!["nope:z", 7], 7.into()),
        (list!["nope"], Value::Nil),
    ] {
        let called = Args::positional(args.as_list().unwrap().iter().cloned());
        assert_eq!(context.call("defaults.get", called), Ok(expected), "{args}");
    }
}

#[test]
fn later_values_override_earlier_ones() {
    let call = |fun: &str, a: Map, b: Map| {
        let args = Args { positional: vec![a.into(), b.into()], ..Args::default() };
        testing::context(&[]).call(fun, args).unwrap()
    };
    assert_eq!(
        call(
            "defaults.merge",
            map! {"a" => map! {"b" => 1, "l" => list![1]}},
            map! {"a" => map! {"c" => 2, "l" => list![2]}}
        ),
        map! {"a" => map! {"b" => 1, "l" => list![2], "c" => 2}}.into()
    );
    assert_eq!(
        call("defaults.update", map! {"web" => map! {"port" => 8080}}, map! {"port" => 80, "host" => "h"}),
        map! {"web" => map! {"port" => 8080, "host" => "h"}}.into()
    );
}
