//! Whole runs: results, errors, pillar.

use std::sync::Arc;

use brine_value::{Map, Value, list, map};

use super::{call, report};
use crate::testing;

#[test]
fn a_result_has_the_fields_of_salt() {
    let context = testing::context(&[("t.sls", "a: {test.nop: [{name: n}, {parallel: true}]}")]);
    let results = call(&context, "state.apply", &["t"], Map::new()).unwrap();
    let result = results.get("test_|-a_|-n_|-nop").and_then(Value::as_map).unwrap();
    let keys: Vec<_> = result.keys().map(ToString::to_string).collect();
    assert_eq!(
        keys,
        [
            "name",
            "result",
            "changes",
            "comment",
            "__sls__",
            "__run_num__",
            "start_time",
            "duration",
            "__id__",
            "__parallel__"
        ]
    );
    let start = result["start_time"].to_string();
    assert_eq!((start.len(), &start[2..3], &start[8..9]), (15, ":", "."));
    assert!(result["duration"].as_f64().is_some_and(|duration| duration >= 0.0));
}

#[test]
fn test_mode_is_read_from_arguments_grains_pillar_and_options() {
    let (on, off, none) = (|| map! {"test" => true}, || map! {"test" => false}, Map::new);
    let nested = |test: bool| map! {"master" => map! {"test" => test}};
    let (dry, real) = (Some(Value::Nil), Some(Value::Bool(true)));
    for (grains, pillar, option, argument, expected) in [
        (none(), none(), false, none(), &real),
        (none(), none(), true, none(), &dry),
        (none(), none(), true, off(), &real),
        (none(), on(), false, none(), &dry),
        (none(), on(), false, off(), &real),
        (none(), on(), false, on(), &dry),
        (on(), none(), false, none(), &dry),
        (on(), off(), false, none(), &dry),
        (off(), on(), false, none(), &real),
        (off(), on(), true, none(), &dry),
        (none(), off(), true, none(), &dry),
        (none(), nested(true), false, none(), &dry),
        (none(), nested(false), false, none(), &real),
        (none(), map! {"test" => "True"}, false, none(), &real),
        (none(), map! {"test" => 1}, false, none(), &real),
        (none(), none(), false, map! {"pillar" => on()}, &real),
    ] {
        let mut minion = testing::minion(&[("t.sls", "a: test.succeed_with_changes"), ("top.sls", "base: {'*': [t]}")]);
        let config = brine_config::MinionConfig { test: option, ..(*minion.config).clone() };
        Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
        minion.grains.set(grains.clone());
        *minion.pillar.write() = Arc::new(pillar.clone());
        let context = testing::context_of(minion);
        let of_state = |fun: &str, positional: &[&str]| {
            let results = call(&context, fun, positional, argument.clone()).unwrap();
            let result = results.as_map().and_then(Map::first).and_then(|(_, result)| result.get("result").cloned());
            (fun.to_owned(), result)
        };
        for (fun, positional) in [
            ("state.apply", &["t"][..]),
            ("state.sls", &["t"]),
            ("state.sls_id", &["a", "t"]),
            ("state.highstate", &[]),
            ("state.top", &["top.sls"]),
            ("state.single", &["test.succeed_with_changes", "a"]),
        ] {
            if fun == "state.single" && argument.contains_key("pillar") {
                continue;
            }
            let expected = (fun.to_owned(), expected.clone());
            assert_eq!(of_state(fun, positional), expected, "{grains:?} {pillar:?} {option} {argument:?}");
        }
    }
}

#[test]
fn unknown_arguments_end_the_run() {
    let apply = |args: &str| {
        let sls = format!("a: {{test.configurable_test_state: [{args}]}}");
        let context = testing::context(&[("t.sls", &sls)]);
        call(&context, "state.apply", &["t"], Map::new()).map_err(|error| error.to_string())
    };
    assert!(apply("{order: 1}, {onlyif: 'false'}, {foo: 1}").is_err());
    assert!(apply("{order: 1}, {onlyif: 'false'}, {result: false}, {fire_event: true}").is_ok());
    let error = apply("{foo: 1}, {bar: 2}, {baz: 3}").unwrap_err();
    assert!(
        error.ends_with("'foo', 'bar' and 'baz' are invalid keyword arguments for 'test.configurable_test_state'."),
        "{error}"
    );
}

#[test]
fn top_files_are_merged_and_matched_as_in_salt() {
    let top = "base:\n  '*': [b, a]\n  'nobody': [c]\n  'os:Debian': [{match: grain}, a, d]\n";
    let states = [("a.sls", "a: test.nop"), ("b.sls", "include: [d]\nb: test.nop"), ("d.sls", "d: test.nop")];
    let mut files = vec![("top.sls", top)];
    files.extend(states);
    let context = testing::context(&files);
    let show = |fun: &str| call(&context, fun, &[], Map::new()).unwrap().to_string();
    assert_eq!(show("state.show_top"), "{'base': ['b', 'a', 'a', 'd']}");
    assert_eq!(show("state.show_states"), "['d', 'b', 'a']");
    let ran = call(&context, "state.highstate", &[], Map::new()).unwrap();
    insta::assert_snapshot!(report(&ran), @r"
    0 d True -: Success!
    1 b True -: Success!
    2 a True -: Success!
    ");
    let ran = call(&context, "state.apply", &[], map! {"exclude" => "d,b"}).unwrap();
    assert_eq!(report(&ran), "0 a True -: Success!\n");
}

#[test]
fn errors_of_a_run_are_returned_as_a_list() {
    for (top, expected) in [
        (
            "base: {'*': a}",
            "[\"Malformed topfile: state declarations for matcher '*' in saltenv 'base' are not formed as a list (got str)\\n  hint: write the SLS files below the target, a dash before each, as in '- webserver'\", \"No matching sls found for 'a' in env 'base'\\n  hint: neither a.sls nor a/init.sls is in the files of the master\"]",
        ),
        ("base: {'nobody': [a]}", "No target of the top file 'top.sls' matches the minion 'test-minion': 'nobody'"),
        (
            "{}",
            "No Top file or master_tops data matches found. Please see master log for details.\n  hint: no top file assigns \
             SLS files: write top.sls in file_roots, or name SLS files, as in state.apply webserver",
        ),
        (
            "base:\n  *:\n    - a\n",
            "Rendering the top file 'top.sls' of saltenv 'base' failed: did not find expected alphabetic or numeric \
             character\n  --> top.sls:2\n 1 | base:\n 2 |   *:\n   |    ^\n  hint: text that begins with '*' must be quoted, \
             as in '*':",
        ),
        ("base: {'*': []}", "No states found for this minion"),
        ("base: {'*': [empty]}", "No states found for this minion"),
        (
            "base: {'*': [nope]}",
            "[\"No matching sls found for 'nope' in env 'base'\\n  hint: neither nope.sls nor nope/init.sls is in the files of the master\"]",
        ),
    ] {
        let context = testing::context(&[("top.sls", top), ("empty.sls", "{}")]);
        let results = call(&context, "state.highstate", &[], Map::new()).unwrap();
        let report = match results.as_map().and_then(Map::first) {
            Some((_, entry)) => entry.get("comment").map(ToString::to_string).unwrap_or_default(),
            None => results.to_string(),
        };
        assert_eq!(report, expected);
    }
}

#[test]
fn a_pillar_override_is_for_one_run_and_errors_are_refused() {
    let sls = "a: {test.succeed_without_changes: [{comment: '{{ pillar.x }} {{ salt[\"pillar.get\"](\"x\") }}'}]}";
    let context = testing::context(&[("t.sls", sls)]);
    let results = call(&context, "state.apply", &["t"], map! {"pillar" => map! {"x" => "given"}}).unwrap();
    assert_eq!(report(&results), "0 a True -: given given\n");
    assert_eq!(context.pillar().get("x"), None);
    let broken = map! {"pillar" => map! {"_errors" => list!["broken"]}};
    let results = call(&context, "state.apply", &["t"], broken).unwrap();
    assert_eq!(results.to_string(), "['Pillar failed to render with the following messages:', 'broken']");
    assert_eq!(context.job.retcode.load(std::sync::atomic::Ordering::Relaxed), 5);
}

#[test]
fn single_states_chunks_and_strings_are_run() {
    let context = testing::context(&[("t.sls", "a: {test.nop: [{require: [{test: b}]}]}\nb: test.nop\nc: test.nop")]);
    let ran = call(&context, "state.single", &["test.succeed_with_changes", "x"], map! {"test" => true}).unwrap();
    assert_eq!(report(&ran), "0 x None changed: If we weren't testing, this would be successful with changes\n");
    let wrong = call(&context, "state.single", &["test.nosuch", "x"], Map::new()).unwrap();
    assert_eq!(wrong.to_string(), "[\"Specified state 'test.nosuch' was not found\"]");
    let ran = call(&context, "state.template_str", &["{{ 'q' }}: test.nop"], Map::new()).unwrap();
    assert_eq!(report(&ran), "0 q True -: Success!\n");
    let high = map! {"data" => map! {"h" => map! {"test" => list!["nop"]}}};
    assert_eq!(report(&call(&context, "state.high", &[], high).unwrap()), "0 h True -: Success!\n");
    let low = map! {"data" => map! {"state" => "test", "fun" => "nop", "name" => "l"}};
    let result = call(&context, "state.low", &[], low).unwrap();
    assert_eq!(result.get("comment"), Some(&"Success!".into()));
    let ran = call(&context, "state.sls_id", &["a", "t"], Map::new()).unwrap();
    assert_eq!(report(&ran), "0 b True -: Success!\n1 a True -: Success!\n");
    assert!(call(&context, "state.sls_id", &["q", "t"], Map::new()).is_err());
    let mocked = call(&context, "state.apply", &["t"], map! {"mock" => true}).unwrap();
    assert!(report(&mocked).starts_with("0 b True -: Not called, mocked\n"));
    for (mods, exist) in [("t", true), ("t,u", false)] {
        assert_eq!(call(&context, "state.sls_exists", &[mods], Map::new()), Ok(exist.into()));
    }
}

#[test]
fn states_run_only_where_a_global_condition_matches() {
    let sls = "a: test.nop\nb: test.succeed_with_changes\nc: {test.nop: [onlyif: 'false']}\nd: {test.nop: [parallel: True]}\n\
               e: {test.nop: [require: [test: b]]}\n";
    let (met, skipped) = (None, Some("Failed to meet global state conditions. State not called."));
    for (conditions, expected) in [
        (map! {}, [met, met]),
        (map! {"*" => "test-*"}, [met, met]),
        (map! {"*" => list!["web*", "G@os:RedHat"]}, [skipped, skipped]),
        (map! {"*" => list!["web*", "G@os:Debian"]}, [met, met]),
        (map! {"test" => "web*"}, [skipped, skipped]),
        (map! {"test.nop" => "web*"}, [skipped, met]),
        (map! {"test" => "web*", "test.nop" => "test-*"}, [met, skipped]),
        (map! {"tes" => "web*", "pkg.installed" => "web*", "test" => list![]}, [met, met]),
        (map! {"test.nop" => "and and"}, [skipped, met]),
    ] {
        let mut minion = testing::minion(&[("t.sls", sls)]);
        let config =
            brine_config::MinionConfig { global_state_conditions: conditions.clone(), ..(*minion.config).clone() };
        Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
        let results = call(&testing::context_of(minion), "state.apply", &["t"], Map::new()).unwrap();
        for (tag, result) in results.as_map().unwrap() {
            let id = &tag.to_string()[7..8];
            let comment = result.get("comment").map(ToString::to_string).unwrap_or_default();
            let ran = result.get("result");
            match expected[usize::from(id == "b")] {
                _ if id == "c" => assert_eq!(comment, "onlyif condition is false", "{conditions:?}"),
                Some(skipped) => {
                    assert_eq!((comment.as_str(), ran), (skipped, Some(&Value::Nil)), "{id} {conditions:?}");
                    assert_eq!(result.get("changes"), Some(&Value::map()), "{id} {conditions:?}");
                }
                None => assert_eq!(ran, Some(&true.into()), "{id} {conditions:?}: {comment}"),
            }
        }
        // A skipped state does not fail the states that require it.
        assert!(results.get("test_|-e_|-e_|-nop").is_some());
    }
}

#[test]
fn mocked_states_are_reported_but_not_called() {
    let sls = "a: test.fail_without_changes\nb:\n  test.succeed_with_changes:\n    - watch: [test: a]\n    - parallel: True\n\
               c: {test.nop: [listen: [test: b]]}\n";
    let files = [("t.sls", sls), ("top.sls", "base: {'*': [t]}")];
    for (function, args) in
        [("state.apply", &["t"][..]), ("state.sls", &["t"]), ("state.highstate", &[]), ("state.apply", &[])]
    {
        let context = testing::context(&files);
        let mocked = call(&context, function, args, map! {"mock" => true}).unwrap();
        let expected =
            "0 a True -: Not called, mocked\n1 b True -: Not called, mocked\n2 c True -: Not called, mocked\n";
        assert_eq!(report(&mocked), expected, "{function} {args:?}");
        let changes: Vec<_> = mocked.as_map().unwrap().values().map(|result| result.get("changes").cloned()).collect();
        assert_eq!(changes, vec![Some(Value::map()); 3], "{function}");
    }
    // As in Salt, a single state is always called.
    let single = call(&testing::context(&[]), "state.single", &["test.nop", "x"], map! {"mock" => true}).unwrap();
    assert_eq!(report(&single), "0 x True -: Success!\n");
}
