use brine_value::{list, map};

use super::*;

#[test]
fn conditions_hold_or_not() {
    let data = map! {
        "fun" => "state.apply", "success" => false, "retcode" => 2, "load" => "3.5",
        "data" => map! {"list" => list![map! {"x" => 1}]},
    };
    let view = EventView { tag: "salt/job/1/ret/web1", data: &data };
    for (condition, holds) in [
        (map! {"fun" => "state.*"}, true),
        (map! {"fun" => "test.*"}, false),
        (map! {"fun" => list!["test.*", "state.apply"]}, true),
        (map! {"success" => false, "retcode" => 2}, true),
        (map! {"success" => false, "retcode" => 3}, false),
        (map! {"retcode" => 2.0}, true),
        (map! {"load" => map! {"above" => 3, "below" => 4}}, true),
        (map! {"load" => map! {"above" => 4}}, false),
        (map! {"fun" => map! {"above" => 4}}, false),
        (map! {"nothing" => map! {"exists" => false}}, true),
        (map! {"fun" => map! {"exists" => false}}, false),
        (map! {"fun" => map! {"not" => "state.*"}}, false),
        (map! {"nothing" => "x"}, false),
        (map! {"tag:4" => "web*"}, true),
        (map! {"data:list:0:x" => 1}, true),
        (map! {}, true),
    ] {
        let conditions = Conditions::read(&condition.clone().into()).unwrap();
        assert_eq!(conditions.hold(view), holds, "{condition:?}");
    }
    assert!(
        Conditions::read(&map! {"a" => map! {"near" => 1}}.into()).unwrap_err().contains("condition 'near' is invalid")
    );
    assert!(Conditions::read(&"x".into()).is_err());
}

#[test]
fn keys_are_of_all_paths_or_none() {
    let data = map! {"id" => "web1", "n" => 3};
    let view = EventView { tag: "a/b", data: &data };
    let by = |paths: &[&str]| GroupBy(paths.iter().map(|path| Path::new(path)).collect());
    assert_eq!(by(&[]).key(view).as_deref(), Some(""));
    assert_eq!(by(&["id", "n", "tag:1"]).key(view).as_deref(), Some("web1/3/b"));
    assert_eq!(by(&["id", "nothing"]).key(view), None);
}
