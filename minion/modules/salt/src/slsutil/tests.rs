use brine_function::Args;
use brine_value::{list, map};

use super::*;
use crate::testing;

#[test]
fn data_is_merged_and_serialized() {
    let context =
        testing::context(&[("d.sls", "a: {{ 1 + 1 }}\n"), ("v.sls", "a: {{ foo | default('none') | json }}\n")]);
    let (a, b) = (map! {"l" => list![1], "m" => map! {"x" => 1}}, map! {"l" => list![2], "m" => map! {"y" => 2}});
    for (fun, positional, keyword, value) in [
        (
            "merge",
            vec![a.clone().into(), b.clone().into()],
            Map::new(),
            map! {"l" => list![2], "m" => map! {"x" => 1, "y" => 2}}.into(),
        ),
        (
            "merge",
            vec![a.clone().into(), b.clone().into()],
            map! {"merge_lists" => true, "strategy" => "recurse"},
            map! {"l" => list![1, 2], "m" => map! {"x" => 1, "y" => 2}}.into(),
        ),
        ("merge", vec![a.clone().into(), b.clone().into()], map! {"strategy" => "overwrite"}, b.clone().into()),
        ("merge", vec![a.clone().into(), b.clone().into()], map! {"strategy" => "aggregate"}, b.clone().into()),
        (
            "merge",
            vec![a.clone().into(), b.clone().into()],
            map! {"strategy" => "none", "merge_lists" => true},
            map! {"l" => list![2], "m" => map! {"x" => 1, "y" => 2}}.into(),
        ),
        (
            "merge",
            vec![map! {"k" => 1, "a" => 3}.into(), map! {"k" => 2, "b" => 4}.into()],
            map! {"strategy" => "list"},
            map! {"k" => list![1, 2], "a" => 3}.into(),
        ),
        (
            "serialize",
            vec!["json".into(), map! {"b" => 1, "a" => list!["x"]}.into()],
            Map::new(),
            r#"{"b": 1, "a": ["x"]}"#.into(),
        ),
        ("serialize", vec!["yaml".into(), map! {"b" => 1}.into()], map! {"default_flow_style" => false}, "b: 1".into()),
        ("deserialize", vec!["yaml".into(), "a: 1".into()], Map::new(), map! {"a" => 1}.into()),
        ("deserialize", vec!["yaml".into(), "{a: 0644, a: 0600}".into()], Map::new(), map! {"a" => 384}.into()),
        (
            "deserialize",
            vec!["yaml".into(), "a: 2020-01-01T10:00:00Z".into()],
            Map::new(),
            map! {"a" => "2020-01-01 10:00:00+00:00"}.into(),
        ),
        ("boolstr", vec![true.into()], map! {"true" => "on", "false" => "off"}, "on".into()),
        ("boolstr", vec!["".into(), "on".into(), "off".into()], Map::new(), "off".into()),
        ("file_exists", vec!["d.sls".into()], Map::new(), true.into()),
        ("path_exists", vec!["salt://d.sls".into()], Map::new(), true.into()),
        ("findup", vec!["".into(), "d.sls".into()], Map::new(), "d.sls".into()),
        ("path_exists", vec!["gone".into()], Map::new(), false.into()),
        ("dir_exists", vec!["d.sls".into()], Map::new(), false.into()),
        ("renderer", vec!["salt://d.sls".into()], Map::new(), map! {"a" => 2}.into()),
        ("renderer", vec!["salt://v.sls".into()], map! {"foo" => list![1]}, map! {"a" => list![1]}.into()),
        ("renderer", vec!["salt://v.sls".into()], map! {"foo" => Value::Nil}, map! {"a" => Value::Nil}.into()),
        ("renderer", vec!["salt://v.sls".into()], Map::new(), map! {"a" => "none"}.into()),
        ("renderer", vec!["salt://v.sls".into()], map! {"context" => map! {"foo" => 1}}, map! {"a" => 1}.into()),
        (
            "renderer",
            vec![],
            map! {"string" => "{{ foo }}", "foo" => "5", "default_renderer" => "jinja|json"},
            5.into(),
        ),
        ("renderer", vec![], map! {"string" => "{{ foo }}x", "foo" => 5, "default_renderer" => "jinja"}, "5x".into()),
        ("renderer", vec![], map! {"string" => "# c"}, Value::map()),
        ("renderer", vec![], map! {"string" => "null"}, Value::map()),
        ("renderer", vec![], map! {"string" => "[]"}, Value::map()),
        ("renderer", vec![], map! {"string" => "''"}, Value::map()),
        ("renderer", vec![], map! {"string" => "false"}, Value::map()),
        ("renderer", vec![], map! {"string" => "#!json\nnull"}, Value::map()),
        ("renderer", vec![], map! {"string" => "#!yaml\n"}, Value::map()),
        ("renderer", vec!["salt://gone".into()], Map::new(), Map::new().into()),
        ("renderer", vec!["/gone/gone".into()], Map::new(), Map::new().into()),
        ("renderer", vec![], map! {"string" => "{{ 'x' * 2 }}", "default_renderer" => "jinja"}, "xx".into()),
    ] {
        let args = Args { positional, keyword };
        assert_eq!(context.call(&format!("slsutil.{fun}"), args.clone()), Ok(value), "{fun} {args:?}");
    }
    let unknown = Args::positional(["toml2".into(), 1.into()]);
    assert!(context.call("slsutil.serialize", unknown).is_err());
    for (path, string, refused) in [
        ("", "", "Must pass path or string."),
        ("/a", "b", "Must not pass both path and string."),
        ("gone", "", "Path 'gone' is not absolute"),
    ] {
        let args = Args::positional([path.into(), string.into()]);
        assert_eq!(context.call("slsutil.renderer", args), Err(CallError::Execution(refused.into())), "{refused}");
    }
}
