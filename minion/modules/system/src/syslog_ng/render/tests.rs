use brine_value::{list, map};

use super::*;

#[test]
fn statements_have_salts_form() {
    let tls = map! {"tls" => list![map! {"peer-verify" => "'x'"}, map! {"key_file" => list!["'/a'", "'/b'"]}]};
    let source =
        list![map! {"tcp" => list![map! {"ip" => "127.0.0.1"}, map! {"port" => 1233}, tls, map! {"flag" => ""}]}];
    let expected = "source s_gsoc2014 {\n    tcp(\n        ip(\n            127.0.0.1\n        ),\n        port(\n            1233\n        ),\n        \
                    tls(\n            peer-verify(\n                'x'\n            ),\n            key_file(\n                '/a'\n                '/b'\n            )\n        ),\n        \
                    flag(\n        )\n    );\n};\n";
    assert_eq!(statement("s_gsoc2014", &map! {"source" => source.clone()}.into()).unwrap(), expected);
    assert_eq!(statement("source.s_gsoc2014", &source).unwrap(), expected);
    let channel = list![map! {"filter" => "f_json"}, map! {"parser" => list![map! {"json-parser" => "prefix('a')"}]}];
    let log = list![
        map! {"source" => "s_a"},
        map! {"junction" => list![map! {"channel" => channel}]},
        map! {"destination" => list![map! {"file" => list!["\"/x\""]}]}
    ];
    let expected = "log {\n    source(\n        s_a\n    );\n    junction {\n        channel {\n            filter(\n                f_json\n            );\n            \
                    parser {\n                json-parser(\n                    prefix('a')\n                );\n            };\n        };\n    };\n    \
                    destination {\n        file(\n            \"/x\"\n        );\n    };\n};\n";
    assert_eq!(statement("l_a", &map! {"log" => log}.into()).unwrap(), expected);
    assert_eq!(statement("x", &map! {"config" => "@include \"a\""}.into()).unwrap(), "@include \"a\"\n");
    let options = list![map! {"time_reap" => 30}, map! {"use_dns" => true}];
    let expected = "options {\n    time_reap(\n        30\n    );\n    use_dns(\n        True\n    );\n};\n";
    assert_eq!(statement("options.", &options).unwrap(), expected);
}

#[test]
fn other_forms_are_rejected() {
    for (name, config, expected) in [
        ("a", list![1], "the configuration is invalid: expected a mapping"),
        ("source.a", "x".into(), "the content of source is invalid: expected a list, got x"),
        ("source.a", list![1], "the option is invalid: expected a mapping, got 1"),
        ("source.a", list![map! {"tcp" => Value::Nil}], "the content of tcp is invalid: expected a list"),
        ("source.a", list![map! {"tcp" => list![list![]]}], "the parameter is invalid: expected a mapping"),
        ("log.", list![map! {"junction" => list![1]}], "the channel is invalid: expected a mapping"),
    ] {
        let error = statement(name, &config).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}
