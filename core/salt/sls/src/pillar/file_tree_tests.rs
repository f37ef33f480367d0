//! Tests of `ext_pillar` `file_tree`.

use brine_value::{Map, Value, list, map};

use super::tests::Master;

#[test]
fn file_tree_serves_the_minion_and_its_nodegroups() {
    let files = [
        ("tree/hosts/m1/a/word", "one\n"),
        ("tree/hosts/m1/kept", "two\n"),
        ("tree/hosts/m2/secret", "three"),
        ("tree/nodegroups/debians/a/word", "group\n"),
        ("tree/nodegroups/debians/os", "{{ grains.os }}\n"),
        ("tree/nodegroups/others/x", "x"),
    ];
    let mut master = Master::new(&files, map! {"nodegroups" => map! {"debians" => "G@os:Debian", "others" => "x*"}});
    let tree = |more: Map| {
        let mut args = map! {"root_dir" => master.directory.path().join("tree")};
        args.extend(more);
        list![map! {"file_tree" => args}]
    };
    let (plain, rendered) = (
        tree(map! {"keep_newline" => list!["./ke*", "word"]}),
        tree(map! {"template" => true, "render_default" => "jinja|text"}),
    );
    master.opts.insert("ext_pillar".into(), plain);
    let expected = map! {"a" => map! {"word" => "one"}, "os" => "{{ grains.os }}", "kept" => "two\n"};
    assert_eq!(master.of("m1"), expected);
    master.opts.insert("ext_pillar".into(), rendered);
    assert_eq!(master.of("m1").get("os"), Some(&"Debian".into()));
    assert_eq!(master.of("m3").keys().collect::<Vec<_>>(), [&Value::from("a"), &"os".into()]);
}

#[test]
fn file_tree_refuses_renderers_and_arguments() {
    let mut master = Master::new(&[("tree/hosts/m1/os", "{{ grains.os }}")], map! {});
    for (argument, value, expected) in [
        ("renderer_blacklist", list!["jinja"], "jinja"),
        ("renderer_whitelist", list!["text"], "jinja"),
        ("nosuch", 1.into(), "the argument 'nosuch' is unknown"),
        ("keep_newline", "f".into(), "keep_newline is invalid"),
    ] {
        let mut args = map! {
            "root_dir" => master.directory.path().join("tree"), "template" => true, "render_default" => "jinja|text",
        };
        args.insert(argument.into(), value);
        master.opts.insert("ext_pillar".into(), list![map! {"file_tree" => args}]);
        let pillar = master.of("m1");
        assert!(pillar.get("_errors").unwrap().to_string().contains(expected), "{argument}: {pillar:?}");
        assert_eq!(pillar.len(), 1, "{argument}");
    }
}
