//! Errors in high data, in Salt's wording.

use super::*;

#[test]
fn errors_have_salts_wording() {
    for (text, message) in [
        (
            "include: [nope]",
            "Specified SLS nope in saltenv base is not available on the salt master or through a configured fileserver",
        ),
        ("extend: [a]", "Extension value in SLS 't' is not a dictionary"),
        ("exclude: a", "Exclude Declaration in SLS t is not formed as a list"),
        (
            "a: {test.nop: [{require: [{file: nope}]}]}",
            "Referenced state does not exist for requisite [require: (file: nope)] in state [a] in SLS [t]",
        ),
        (
            "a: {test.nop: [{watch: [{sls: nope}]}]}",
            "Referenced state does not exist for requisite [watch: (sls: nope)] in state [a] in SLS [t]",
        ),
        (
            "a: {test.nop: [{require: [{test: 'x*'}]}]}",
            "Referenced state does not exist for requisite [require: (test: x*)] in state [a] in SLS [t]",
        ),
        (
            "a: {test.nop: [{require: [{test: 5}]}]}",
            "Requisite [require: test] in state [a] in SLS [t] must have a string as the value",
        ),
        (
            "a: {test.nop: [{require: [{test: a}]}]}",
            "Recursive requisites were found: ({'SLS': 't', 'ID': 'a'}, 'require', {'SLS': 't', 'ID': 'a'})",
        ),
        (
            "a: {test.nop: [{require: [{test: b}]}]}\nb: {test.nop: [{name: bee}, {require: [{test: a}]}]}",
            "Recursive requisites were found: ({'SLS': 't', 'ID': 'b', 'NAME': 'bee'}, 'require', {'SLS': 't', 'ID': 'a'}), ({'SLS': 't', 'ID': 'a'}, 'require', {'SLS': 't', 'ID': 'b', 'NAME': 'bee'})",
        ),
        ("a: 5", "ID a in SLS t is not a dictionary"),
        ("a: {test: [{x: 1}]}", "No function declared in state 'a' in SLS 't'"),
        (
            "a: {test: [nop, succeed]}",
            "Too many functions declared in state 'a' in SLS 't'. Please choose one of the following: nop, succeed",
        ),
        (
            "a: {test.nop: }",
            "ID 'a' in SLS 't' contains a short declaration (test.nop) with a trailing colon. When not passing any arguments to a state, the colon must be omitted.",
        ),
        ("a: {test.nop: {x: 1}}", "State 'a' in SLS 't' is not formed as a list"),
        (
            "a: {test.nop: [], test.succeed: []}",
            "ID 'a' in SLS 't' contains multiple state declarations of the same type",
        ),
        ("a: {test.nop: [{require: x}]}", "The require statement in state 'a' in SLS 't' needs to be formed as a list"),
        ("a: {test.nop: [{names: x}]}", "The 'names' argument in state 'a' in SLS 't' needs to be formed as a list"),
        (
            "a: {test.nop: [{names: [x: {order: 1}]}]}",
            "The arguments of the name 'x' in state 'a' in SLS 't' need to be formed as a list of mappings",
        ),
        (
            "a: {test.nop: [{names: [b, c: [d: 1, e]]}]}",
            "The arguments of the name 'c' in state 'a' in SLS 't' need to be formed as a list of mappings",
        ),
        (
            "a: {test.nop: [{require: [{a: b, c: d}]}]}",
            "Requisite declaration OrderedDict([('a', 'b'), ('c', 'd')]) in state a in SLS t is not formed as a single key dictionary",
        ),
        (
            "a: {test.nop: [{require: [{test: [x]}]}]}",
            "Illegal requisite \"['x']\" in SLS \"t\", please check your syntax.\n",
        ),
        ("a: {test.nop: [{require: [], x: 1}]}", "Multiple dictionaries defined in argument of state 'a' in SLS 't'"),
        ("7: test.nop", "ID '7' in SLS 't' is not formed as a string, but is type int. It may need to be quoted."),
        (
            "a: {test.nop: [{require_in: [{test: zz}]}]}",
            "Cannot extend ID 'zz' in 'base:t'. It is not part of the high state.\nThis is likely due to a missing include statement or an incorrectly typed ID.\nEnsure that a state with an ID of 'zz' is available\nin environment 'base' and to SLS 't'",
        ),
        (
            "a: {test.nop: [{require: [{test.nop: a}]}]}",
            "Invalid requisite type 'test.nop' in state 'a', in SLS 't'. Requisite types must not contain dots, did you mean 'test'?",
        ),
    ] {
        assert_eq!(one(text).map_err(in_salts_words), Err(vec![message.to_owned()]), "{text}");
    }
}

#[test]
fn errors_of_several_files_have_salts_wording() {
    let missing = run(&[], &["x"]).map_err(in_salts_words);
    assert_eq!(missing, Err(vec!["No matching sls found for 'x' in env 'base'".into()]));
    let twice = [("t", "include: [u]\na: test.nop"), ("u", "a: test.fail")];
    assert_eq!(
        run(&twice, &["t"]).unwrap_err(),
        [
            "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The conflicting ID is 'a' and is found in SLS 'base:t' and SLS 'base:u'"
        ]
    );
    assert_eq!(
        run(&[("l", "[a]")], &["l"]).unwrap_err(),
        ["SLS l does not render to a dictionary", "Error when rendering state with contents: ['a']"]
    );
    let (_, errors) =
        load(&Tree::new(&[("s", "a b"), ("m", "[{a: [{b: 1}]}]")]), &[("base".into(), vec!["s".into(), "m".into()])]);
    assert_eq!(
        [&errors[1], &errors[3]],
        [
            "Error when rendering state with contents: a b",
            "Error when rendering state with contents: [OrderedDict([('a', [OrderedDict([('b', 1)])])])]"
        ]
    );
    let (high, errors) = load(&Tree::new(&[("t", "a: [b]\nc: {test: []}")]), &[("base".into(), vec!["t".into()])]);
    assert_eq!(errors, ["ID a in SLS t is not a dictionary"]);
    assert_eq!(
        compile_to_show(high, errors, &everything_acts_on_watch()).unwrap_err(),
        [
            "ID a in SLS t is not a dictionary",
            "The type a in ['b'] is not formatted as a dictionary",
            "No function declared in state 'c' in SLS 't'"
        ]
    );
    assert_eq!(
        run(&[("t", "include: x\na: test.nop")], &["t"]).unwrap_err(),
        ["Include Declaration in SLS t is not formed as a list", "ID include in SLS t is not a dictionary"]
    );
    let (_, errors) = load(&Tree::new(&[]), &[("q".into(), vec!["x".into()])]);
    assert_eq!(
        errors,
        ["No matching salt environment for environment 'q' found", "No matching sls found for 'x' in env 'q'"]
    );
    assert_eq!(ids(&run(&[("e", ""), ("l", "[]")], &["e", "l"]).unwrap()), [""; 0]);
}

#[test]
fn show_functions_report_all_errors_at_once() {
    let files =
        [("t", "include: [u]\na: {test.nop: [{use: {test: b}}, {onfail_stop: false}]}\nodd: 5"), ("u", "a: test.nop")];
    let (high, errors) = load_tree(&files, &["t"]);
    let report: Vec<String> = compile_to_show(high, errors, &everything_acts_on_watch()).unwrap_err();
    let starts: Vec<&str> = report.iter().map(|error| error.split('.').next().unwrap()).collect();
    assert_eq!(
        starts,
        [
            "ID odd in SLS t is not a dictionary",
            "Detected conflicting IDs, SLS IDs need to be globally unique",
            "The type odd in 5 is not formatted as a dictionary",
        ]
    );
    // As a mapping, `use` is an ordinary extension.
    let high = load_tree(&[("t", "a: {test.nop: [{use: {test: b}}]}")], &["t"]).0;
    let report = compile(high, &everything_acts_on_watch()).unwrap_err();
    assert!(report[0].starts_with("Cannot extend ID 'b' in 'base:t'"), "{report:?}");
    assert_eq!(
        one("a: {test.nop: [{onfail_stop: false}]}").unwrap_err(),
        ["The onfail_stop statement in state 'a' in SLS 't' needs to be formed as a list"]
    );
}

#[test]
fn errors_of_the_yaml_composer_have_a_wording_of_their_own() {
    for (text, message) in [
        ("a: *x", "Rendering SLS t failed, render error: found undefined alias\n"),
        ("a: &x {b: &x 1}", "Rendering SLS t failed, render error: found duplicate anchor; first occurrence\n"),
        ("a: 1\n---\nb: 2", "Rendering SLS t failed, render error: expected a single document in the stream\n"),
        ("a: \u{7}", "Rendering SLS t failed, render error: unacceptable character #x0007: "),
        ("a: [", "Rendering SLS 'base:t' failed: while parsing a flow node\n"),
        ("a: 1\na: 2", "Rendering SLS 'base:t' failed: "),
    ] {
        let errors = one(text).unwrap_err();
        assert!(errors[0].starts_with(message), "{text:?}: {errors:?}");
    }
}

#[test]
fn missing_names_are_explained() {
    let files = |text: &'static str| [("t", text), ("web/init", "nginx: test.nop"), ("hello", "vim: pkg.installed")];
    for (names, text, hint) in [
        (&["hallo"][..], "", "neither hallo.sls nor hallo/init.sls is in the file server; did you mean 'hello'?"),
        (&["hello.sls"], "", "the name of an SLS has no '.sls' at its end: write 'hello'"),
        (&["wep/x"], "", "neither wep/x.sls nor wep/x/init.sls is in the file server"),
        (&["x"], "", "neither x.sls nor x/init.sls is in the file server"),
        (&["t"], "include: [wbe]", "neither wbe.sls nor wbe/init.sls is in the file server; did you mean 'web'?"),
        (
            &["t"],
            "a: {test.nop: [{require: [{test: nginxx}]}]}\nnginx: test.nop",
            "this run has no state of test with the id or name 'nginxx': did you mean 'test: nginx'?",
        ),
        (
            &["t"],
            "a: {test.nop: [{require: [{pkg: nginx}]}]}\nnginx: test.nop",
            "'nginx' is a state of test: write 'test: nginx'",
        ),
        (
            &["t"],
            "a: {test.nop: [{require: [{pkg: vim}]}]}",
            "this run has no state of pkg with the id or name 'vim': is its SLS included?",
        ),
        (
            &["t"],
            "include: [hello]\na: {test.nop: [{require: [{sls: helo}]}]}",
            "no state of this run is of the SLS 'helo': did you mean 'sls: hello'?",
        ),
        (
            &["t"],
            "a: {test.nop: [{require: [{sls: hello}]}]}",
            "no state of this run is of the SLS 'hello': include it",
        ),
    ] {
        let errors = run(&files(text), names).unwrap_err();
        assert!(errors[0].ends_with(&format!("\n  hint: {hint}")), "{text}: {errors:?}");
    }
}
