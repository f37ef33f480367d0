use brine_value::{list, map};

use super::*;
use crate::testing;

#[test]
fn targets_match_this_minion_or_not() {
    let context = testing::context(&[]);
    for (fun, target, value) in [
        ("glob", "test-*".into(), true.into()),
        ("glob", "web*".into(), false.into()),
        ("list", "a,test-minion".into(), true.into()),
        ("pcre", "test-m.n".into(), true.into()),
        ("grain", "os:Deb*".into(), true.into()),
        ("grain_pcre", "os:^Ub".into(), false.into()),
        ("pillar", "secret:word:xyzzy".into(), true.into()),
        ("pillar_pcre", "secret:word:xy.*".into(), true.into()),
        ("pillar_exact", "secret:word:xyz*".into(), false.into()),
        ("compound", "G@os:Debian and not web*".into(), true.into()),
        ("compound", "and and".into(), false.into()),
        ("filter_by", Value::from(map! {"web*" => 1, "test*" => 2}), 2.into()),
        ("filter_by", map! {"web*" => 1, "default" => 3}.into(), 3.into()),
        ("search_by", map! {"a" => list!["web*", "test*"], "b" => "db*"}.into(), list!["a"]),
        ("search_by", map! {"a" => list!["*", "test*"], "b" => "test*"}.into(), list!["a", "a", "b"]),
    ] {
        let args = Args::positional([target]);
        assert_eq!(context.call(&format!("match.{fun}"), args.clone()), Ok(value), "{fun} {args:?}");
    }
}

#[test]
fn a_given_minion_id_is_matched_instead_of_the_minions_own() {
    let context = testing::context(&[]);
    for (fun, args, value) in [
        ("glob", list!["web*", "web1"], true.into()),
        ("glob", list!["test-*", "web1"], false.into()),
        ("glob", list!["test-*", ""], true.into()),
        ("glob", list!["test-*", Value::Nil], true.into()),
        ("glob", list!["5", 5], true.into()),
        ("list", list!["web1,web2", "web2"], true.into()),
        ("list", list!["a,test-minion", "web2"], false.into()),
        ("pcre", list!["w.b", "web1"], true.into()),
        ("pcre", list!["test", "web1"], false.into()),
        ("compound", list!["web* and G@os:Debian", "web1"], true.into()),
        ("compound", list!["E@w.b1 and L@web1,web2 and not test*", "web1"], true.into()),
        ("compound", list!["test-minion", "web1"], false.into()),
        ("compound", list!["I@secret:word:xyzzy", "web1"], true.into()),
        ("filter_by", list![map! {"test*" => 1, "web*" => 2}, "compound", "web1"], 2.into()),
        ("filter_by", list![map! {"os:Debian" => 1}, "grain", "web1"], 1.into()),
        ("search_by", list![map! {"a" => list!["test*"], "b" => list!["web1"]}, "glob", "web1"], list!["b"]),
    ] {
        let args = Args::positional(args.as_list().unwrap().to_vec());
        assert_eq!(context.call(&format!("match.{fun}"), args.clone()), Ok(value), "{fun} {args:?}");
    }
}

#[test]
fn merge_applies_to_matched_values_only() {
    let context = testing::context(&[]);
    let error = |message: &str| Err(format!("ERROR: {message}"));
    for (lookup, keyword, expected) in [
        (map! {"*" => map! {"a" => 1}}, map! {"merge" => map! {"b" => 2}}, Ok(map! {"a" => 1, "b" => 2}.into())),
        (map! {"*" => Value::Nil}, map! {"merge" => map! {"b" => 2}}, Ok(map! {"b" => 2}.into())),
        (map! {"*" => 5}, map! {"merge" => map! {}}, Ok(5.into())),
        (map! {"default" => map! {"a" => 1}}, map! {"merge" => map! {"b" => 2}}, Ok(map! {"a" => 1}.into())),
        (map! {"web" => 1, "x" => 7}, map! {"default" => "x"}, Ok(7.into())),
        (
            map! {"*" => map! {"l" => list![1]}},
            map! {"merge" => map! {"l" => list![1, 2]}, "merge_lists" => true},
            Ok(map! {"l" => list![1, 2]}.into()),
        ),
        (
            map! {"*" => map! {"l" => list![1]}},
            map! {"merge" => map! {"l" => list![2]}},
            Ok(map! {"l" => list![2]}.into()),
        ),
        (map! {"*" => 5}, map! {"merge" => 6}, error("filter_by merge argument must be a dictionary.")),
        (
            map! {"*" => 5},
            map! {"merge" => map! {"b" => 2}},
            error("merge failed: the matched value '5' is not a mapping"),
        ),
    ] {
        let args = Args { positional: vec![lookup.clone().into()], keyword };
        let actual = context.call("match.filter_by", args).map_err(|error| error.to_string());
        assert_eq!(actual, expected, "{lookup:?}");
    }
}

#[test]
fn stored_values_match_globs_items_and_keys() {
    let directory = tempfile::tempdir().unwrap();
    let mut minion = testing::minion(&[]);
    let cachedir = directory.path().to_owned();
    let config = brine_config::MinionConfig { cachedir, ..Default::default() };
    std::sync::Arc::get_mut(&mut minion).unwrap().config = std::sync::Arc::new(config);
    let context = testing::context_of(minion);
    let stored = map! {"word" => "Spam", "list" => list!["Eggs", 5], "map" => map! {"a" => 1}};
    context.call("data.dump", Args::positional([stored.into()])).unwrap();
    for (target, expected) in [
        ("word:Sp*", true),
        ("word:sp*", false),
        ("list:e*", true),
        ("list:5", true),
        ("list:6", false),
        ("map:a:more", true),
        ("map:b", false),
        ("none:*", false),
        ("word", false),
    ] {
        assert_eq!(context.call("match.data", Args::positional([target.into()])), Ok(expected.into()), "{target}");
    }
    for (fun, args, expected) in [
        ("filter_by", list![map! {"word:a*" => 1, "list:e*" => 2}], 2.into()),
        ("search_by", list![map! {"a" => list!["word:x", "word:S*"], "b" => list!["none:*"]}], list!["a"]),
        ("ifelse", list!["map:b", 1, "map:a", 2, 3], 2.into()),
    ] {
        let positional = args.as_list().unwrap().to_vec();
        let called = Args { positional, keyword: map! {"tgt_type" => "data"} };
        assert_eq!(context.call(&format!("match.{fun}"), called), Ok(expected), "{fun}");
    }
}

#[test]
fn the_first_matching_target_wins() {
    let context = testing::context(&[]);
    for (args, keyword, expected) in [
        (list!["foo*", "Foo!", "test*", "Bar!", "Baz!"], map! {}, Ok("Bar!".into())),
        (list![false, "Foo!", true, "Bar!", "Baz!"], map! {}, Ok("Bar!".into())),
        (list!["z", "Foo!", "Baz!"], map! {}, Ok("Baz!".into())),
        (list!["z"], map! {}, Ok("z".into())),
        (list!["foo*", "Foo!", "bar*", "Bar!", "z"], map! {"minion_id" => "bar03"}, Ok("Bar!".into())),
        (list!["z", 1, map! {"a" => 1}], map! {"merge" => map! {"b" => 2}}, Ok(map! {"a" => 1}.into())),
        (list!["*", map! {"a" => 1}, "x"], map! {"merge" => map! {"b" => 2}}, Ok(map! {"a" => 1, "b" => 2}.into())),
        (
            list!["z", "Foo!"],
            map! {},
            Err("ERROR: The ifelse function must have an odd number of arguments!".to_owned()),
        ),
    ] {
        let called = Args { positional: args.as_list().unwrap().to_vec(), keyword };
        let actual = context.call("match.ifelse", called).map_err(|error| error.to_string());
        assert_eq!(actual, expected, "{args}");
    }
}
