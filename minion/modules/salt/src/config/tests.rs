use brine_function::Args;

use brine_value::map;

use super::*;
use crate::testing;

#[test]
fn options_grains_and_pillar_are_found_by_path() {
    let context = testing::context(&[]);
    for (key, omit_opts, expected) in [
        ("pillar:secret:word", false, Value::from("xyzzy")),
        ("pillar:secret:word", true, "".into()),
        ("secret:word", false, "xyzzy".into()),
        ("grains:os", false, "Debian".into()),
        ("os", false, "Debian".into()),
        ("pillar:nosuch", false, "".into()),
        ("state_top", false, "salt://top.sls".into()),
    ] {
        let keyword = brine_value::map! {"omit_opts" => omit_opts};
        let actual = context.call("config.get", Args { positional: vec![key.into()], keyword });
        assert_eq!(actual, Ok(expected), "{key}");
    }
    let grains = context.call("config.get", Args::positional(["grains".into()])).unwrap();
    assert_eq!(grains.get("os_family"), Some(&"Debian".into()));
}

#[test]
fn option_without_a_name_returns_the_default() {
    let context = testing::context(&[]);
    for (args, expected) in [
        (vec![Value::Nil], Value::from("")),
        (vec![Value::Nil, 5.into()], 5.into()),
        (vec![Value::Nil, Value::Nil], "".into()),
        (vec!["os".into()], "Debian".into()),
    ] {
        assert_eq!(context.call("config.option", Args::positional(args.clone())), Ok(expected), "{args:?}");
    }
}

#[test]
fn options_are_taken_from_the_sources_that_are_not_omitted() {
    let minion = testing::minion(&[]);
    minion.grains.set(map! {"os" => "grain", "g" => 1});
    let pillar = map! {"os" => "pillar", "p" => 2, "master" => map! {"os" => "master", "p" => 3, "m" => 4}, "of:minion" => 7, "tree" => map! {"leaf" => 8}};
    *minion.pillar.write() = std::sync::Arc::new(pillar);
    let context = testing::context_of(minion);
    for (name, omitted, expected) in [
        ("test", &[][..], Value::from(false)),
        ("test", &["omit_opts"], "".into()),
        ("os", &[], "grain".into()),
        ("os", &["omit_grains"], "pillar".into()),
        ("os", &["omit_grains", "omit_pillar"], "master".into()),
        ("os", &["omit_all"], "".into()),
        ("p", &["omit_pillar"], 3.into()),
        ("m", &["omit_master"], "".into()),
        ("g", &["omit_grains"], "".into()),
        ("of:minion", &[], 7.into()),
        ("tree:leaf", &[], "".into()),
        ("pillar:p", &[], "".into()),
        ("grains:g", &[], "".into()),
        ("master:m", &[], "".into()),
    ] {
        let keyword = omitted.iter().map(|&name| (name.into(), true.into())).collect();
        let actual = context.call("config.option", Args { positional: vec![name.into()], keyword });
        assert_eq!(actual, Ok(expected), "{name} {omitted:?}");
    }
    for (pattern, omitted, expected) in [
        ("[gop]", &["omit_opts"][..], map! {"g" => 1, "p" => 2}),
        ("?", &["omit_opts", "omit_pillar"], map! {"p" => 3, "m" => 4, "g" => 1}),
        ("tes[t]", &[], map! {"test" => false}),
        ("no such*", &[], map! {}),
    ] {
        let mut keyword: Map = omitted.iter().map(|&name| (name.into(), true.into())).collect();
        keyword.insert("wildcard".into(), true.into());
        let options = context.call("config.option", Args { positional: vec![pattern.into()], keyword });
        assert_eq!(options, Ok(expected.into()), "{pattern} {omitted:?}");
    }
}

#[test]
fn modes_are_padded_and_urls_checked() {
    let context = testing::context(&[]);
    for (fun, arg, expected) in [
        ("backup_mode", Value::from(""), Value::from("")),
        ("backup_mode", "minion".into(), "minion".into()),
        ("manage_mode", 644.into(), "0644".into()),
        ("manage_mode", "0o7755".into(), "7755".into()),
        ("manage_mode", "\"755\"".into(), "0755".into()),
        ("manage_mode", "0".into(), "0000".into()),
        ("manage_mode", Value::Nil, Value::Nil),
        ("valid_fileproto", "salt://a".into(), true.into()),
        ("valid_fileproto", "gopher://a".into(), false.into()),
        ("valid_fileproto", "/a".into(), false.into()),
    ] {
        let actual = context.call(&format!("config.{fun}"), Args::positional([arg.clone()]));
        assert_eq!(actual, Ok(expected), "{fun} {arg}");
    }
}
