//! Trees of SLS files and their compiled states.

use std::collections::HashMap;

use super::*;
use crate::render::RenderError;
use brine_value::json::to_json;

mod errors;
mod order;

/// SLS files by `environment:path`; base if no environment is named.
struct Tree(HashMap<String, &'static str>);

impl Tree {
    fn new(files: &[(&str, &'static str)]) -> Self {
        let named = |path: &str| if path.contains(':') { path.to_owned() } else { format!("base:{path}") };
        Tree(files.iter().map(|(path, text)| (named(path), *text)).collect())
    }
}

impl SlsSource for Tree {
    fn render(&self, sls: &str, saltenv: &str) -> Result<Option<Value>, SlsError> {
        let paths = [format!("{saltenv}:{sls}"), format!("{saltenv}:{sls}/init")];
        let Some(text) = paths.iter().find_map(|path| self.0.get(path)) else { return Ok(None) };
        brine_yaml::load(text).map(Some).map_err(|error| RenderError::Yaml(Box::new(error)).into())
    }

    fn has_environment(&self, saltenv: &str) -> Result<bool, SlsError> {
        Ok(saltenv == "base" || !self.available(saltenv).is_empty())
    }

    fn available(&self, saltenv: &str) -> Vec<String> {
        let here = |path: &String| path.strip_prefix(&format!("{saltenv}:")).map(ToOwned::to_owned);
        let mut all: Vec<_> =
            self.0.keys().filter_map(here).map(|sls| sls.trim_end_matches("/init").to_owned()).collect();
        all.sort();
        all
    }

    fn is_init(&self, sls: &str, saltenv: &str) -> bool {
        self.0.contains_key(&format!("{saltenv}:{sls}/init"))
    }
}

fn everything_acts_on_watch() -> Target<'static> {
    Target { acts_on_watch: &|_| true, disabled_requisites: &[] }
}

fn load_tree(files: &[(&str, &'static str)], names: &[&str]) -> (HighData, Vec<String>) {
    let names = names.iter().map(ToString::to_string).collect();
    load(&Tree::new(files), &[("base".to_owned(), names)])
}

fn run(files: &[(&str, &'static str)], names: &[&str]) -> Result<Low, Vec<String>> {
    let (high, errors) = load_tree(files, names);
    if errors.is_empty() { compile(high, &everything_acts_on_watch()) } else { Err(errors) }
}

/// Returns errors without the lines that Brine adds to Salt's messages.
fn in_salts_words(errors: Vec<String>) -> Vec<String> {
    let is_own = |line: &str| line.starts_with("  hint: ") || line.starts_with("  --> ");
    let shortened = |error: String| {
        if !error.contains("\n  hint: ") {
            return error;
        }
        error.split('\n').filter(|line| !is_own(line)).collect::<Vec<_>>().join("\n")
    };
    errors.into_iter().map(shortened).collect()
}

fn one(text: &'static str) -> Result<Low, Vec<String>> {
    run(&[("t", text)], &["t"])
}

fn ids(low: &Low) -> Vec<&str> {
    low.in_order().map(|chunk| chunk.id.as_str()).collect()
}

#[test]
fn includes_come_first_and_requirements_are_pulled_forward() {
    let files = [
        ("a", "include: [b, .sub]\na1:\n  test.nop:\n    - require: [{test: z}]\na2: test.nop\nz: test.nop\n"),
        ("b", "b1: {test.nop: [{order: last}]}\nb2: test.nop\n"),
        ("sub", "s1: test.nop\n"),
    ];
    let low = run(&files, &["a"]).unwrap();
    assert_eq!(ids(&low), ["b2", "s1", "z", "a1", "a2", "b1"]);
    let first = low.in_order().next().unwrap();
    assert_eq!(first.included_from, ["a"]);
    assert_eq!(first.tag(), "test_|-b2_|-b2_|-nop");
}

#[test]
fn order_numbers_match_salt() {
    // Recorded from Salt.
    let files = [
        (
            "ordered",
            "include: [inner.one]\nlast: {test: [nop, order: last]}\nplain: test.nop\nminus: {test: [nop, order: -1]}\n\
             minus_two: {test: [nop, order: -2]}\nfive: {test: [nop, order: 5]}\nfirst: {test: [nop, order: first]}\n\
             many:\n  test.nop:\n    - names: [x, y, z: [extra: 1, order: 3]]\n    - extra: 9\n\
             needs_later: {test: [nop, require: [test: later]]}\npulled: {test: [nop, require_in: [test: plain]]}\n\
             later: test.nop\nboth:\n  test: [nop]\n  cmd.run: [name: 'true']\n",
        ),
        ("inner.one", "one: test.nop\ninclude: [.two]\n"),
        ("inner.two", "two: {test: [nop, require: [test: one]]}\n"),
    ];
    let (high, errors) = load_tree(&files, &["ordered"]);
    assert_eq!(errors, [""; 0]);
    let low = compile_as_written(&high, &everything_acts_on_watch()).unwrap();
    let report: Vec<_> = low.in_order().map(|c| format!("{} {} {}", c.state, c.name, c.args["order"])).collect();
    insta::assert_snapshot!(report.join("\n"), @r"
    test first 0
    test z 3.0003
    test five 5
    test one 10001
    test two 10000
    test plain 10002
    test x 10003.0001
    test y 10003.0002
    test later 10006
    test needs_later 10004
    test pulled 10005
    test both 10007
    cmd true 10008
    test minus_two 1010100
    test minus 1010101
    test last 1010102
    ");
    let low = compile(high, &everything_acts_on_watch()).unwrap();
    let pulled = ids(&low).iter().position(|id| *id == "pulled");
    assert_eq!(ids(&low).iter().position(|id| *id == "plain"), pulled.map(|index| index + 1));
}

#[test]
fn a_prereq_runs_a_dry_run_of_its_target_first() {
    let text = "a: {test: [succeed_with_changes, prereq: [test: b]]}\n\
                b: {test.succeed_with_changes: [{require: [{test: c}]}]}\nc: test.nop\n";
    let low = one(text).unwrap();
    let report: Vec<_> = low.steps.iter().map(|step| (low.chunks[step.chunk].id.as_str(), step.check)).collect();
    assert_eq!(report, [("c", false), ("b", true), ("a", false), ("b", false)]);
    let needs = |step: usize| low.steps[step].needs.iter().map(|need| (need.kind, need.chunk)).collect::<Vec<_>>();
    assert_eq!(needs(1), [(RequisiteKind::Require, 2)]);
    assert_eq!(needs(2), [(RequisiteKind::Prereq, 1)]);
    assert_eq!(needs(3), [(RequisiteKind::Require, 0), (RequisiteKind::Require, 2)]);
}

#[test]
fn relative_includes_start_at_the_package() {
    let files =
        [("p/init", "include: [.x]\ni: test.nop"), ("p.x", "include: [..q]\nx: test.nop"), ("q", "q: test.nop")];
    assert_eq!(ids(&run(&files, &["p"]).unwrap()), ["q", "x", "i"]);
    let beyond = [("t", "include: [..x]")];
    assert_eq!(
        run(&beyond, &["t"]).unwrap_err(),
        ["Attempted relative include of '..x' within SLS 'base:t' goes beyond top level package "]
    );
}

#[test]
fn a_package_that_includes_itself_is_rendered_once() {
    let files = [
        ("p/init", "include: [., .c]\ni: test.nop"),
        ("p.c", "include: [.]\nc: test.nop"),
        ("alone", "include: [.]\na: test.nop"),
    ];
    assert_eq!(ids(&run(&files, &["p"]).unwrap()), ["c", "i"]);
    let errors = run(&files, &["alone"]).unwrap_err();
    assert!(errors[0].starts_with("Specified SLS  in saltenv base is not available"), "{errors:?}");
}

/// Deeper ones would end the process; threads that render have a stack of 8 MB.
#[test]
fn includes_nest_so_deeply_and_no_deeper() {
    std::thread::Builder::new().stack_size(8 << 20).spawn(check_levels).unwrap().join().unwrap();
}

fn check_levels() {
    for (levels, expected) in [(500, None), (501, Some("SLS s501 is not included by SLS s500: "))] {
        let names: Vec<String> = (0..=levels).map(|n| format!("s{n}")).collect();
        let text = |n: usize| -> &'static str {
            let include = names.get(n + 1).map(|next| format!("include: [{next}]\n")).unwrap_or_default();
            format!("{include}i{n}: test.nop\n").leak()
        };
        let files: Vec<_> = names.iter().enumerate().map(|(n, name)| (name.as_str(), text(n))).collect();
        let (_, errors) = load_tree(&files, &["s0"]);
        assert_eq!(errors.len(), usize::from(expected.is_some()), "{errors:?}");
        assert!(expected.is_none_or(|expected| errors[0].starts_with(expected)), "{errors:?}");
    }
}

#[test]
fn includes_reach_other_environments_and_globs() {
    let files = [
        ("t", "include: ['w*', {dev: x}]\nt: test.nop"),
        ("w1", "w1: test.nop"),
        ("w2", "include: [w1]\nw2: test.nop"),
        ("dev:x", "x: test.nop"),
    ];
    let low = run(&files, &["t"]).unwrap();
    let report: Vec<_> = low.in_order().map(|chunk| (chunk.id.as_str(), chunk.saltenv.as_str())).collect();
    assert_eq!(report, [("w1", "base"), ("w2", "base"), ("x", "dev"), ("t", "base")]);
    for (item, error) in [
        ("{q: x}", "Nonexistent saltenv 'q' found in include of 'x' within SLS 'base:t'"),
        ("{dev: y}", "Unknown include: Specified SLS dev: y is not available on the salt master in saltenv(s): dev "),
    ] {
        let text: &'static str = Box::leak(format!("include: [{item}]").into_boxed_str());
        let result = run(&[("t", text), ("dev:x", "x: test.nop")], &["t"]);
        assert_eq!(in_salts_words(result.unwrap_err()), [error]);
    }
}

#[test]
fn every_way_to_write_a_state_is_read() {
    let text = "short: test.nop\nlong:\n  test:\n    - nop\n    - name: n\nseveral:\n  file.managed:\n    - names: [/a, {/b: [{mode: '0600'}]}, /a]\n    - user: root\n  cmd.run: [{name: ls}]\nnumber: {test.nop: [{name: 5}, {state: x}]}\n";
    let low = one(text).unwrap();
    let report: Vec<_> = low.in_order().map(|c| format!("{}.{} {} {}", c.state, c.fun, c.name, c.args.len())).collect();
    assert_eq!(
        report,
        [
            "test.nop short 1",
            "test.nop n 1",
            "file.managed /a 2",
            "file.managed /b 3",
            "cmd.run ls 1",
            "test.nop number 1"
        ]
    );
}

#[test]
fn extend_and_requisites_in_reach_other_files() {
    let files = [
        (
            "a",
            "include: [b]\nextend:\n  base:\n    file:\n      - mode: '0600'\n      - require: [{test: first}]\n  other:\n    test:\n      - fail\nfirst: {test.nop: [{require_in: [{file: /conf}]}]}\n",
        ),
        ("b", "base:\n  file.managed:\n    - name: /conf\n    - mode: '0644'\nother: {test.nop: [{x: 1}]}\n"),
    ];
    let low = run(&files, &["a"]).unwrap();
    assert_eq!(ids(&low), ["first", "base", "other"]);
    let base = low.in_order().nth(1).unwrap();
    assert_eq!(base.args.get("mode"), Some(&"0600".into()));
    assert_eq!(base.requisites.len(), 2);
    assert_eq!(low.in_order().nth(2).unwrap().fun, "fail");
}

#[test]
fn use_copies_arguments_both_ways() {
    let text = "a: {file.managed: [{name: /a}, {mode: '1'}, {user: root}, {require: [c]}]}\n\
                b: {file.managed: [{mode: '2'}, {use: [{file: a}]}]}\n\
                c: {test.nop: [{flavour: x}, {use_in: [{file: b}]}]}\n";
    let low = one(text).unwrap();
    let b = low.in_order().find(|chunk| chunk.id == "b").unwrap();
    let report = |name: &str| b.args.get(name).map(ToString::to_string);
    assert_eq!(report("mode").as_deref(), Some("2"));
    assert_eq!(report("user").as_deref(), Some("root"));
    assert_eq!(report("flavour").as_deref(), Some("x"));
    assert_eq!((report("require"), b.name.as_str()), (None, "b"));
}

#[test]
fn excluded_states_are_removed() {
    let files = [
        ("a", "include: [b]\nexclude: [{id: x}, {sls: c*}]\nx: test.nop\ny: test.nop"),
        ("b", "include: [c1]\nb: test.nop"),
        ("c1", "c: test.nop"),
    ];
    assert_eq!(ids(&run(&files, &["a"]).unwrap()), ["b", "y"]);
}

#[test]
fn requisites_name_states_in_many_ways() {
    for (requisite, needed) in [
        ("[{test: aaa}]", "aaa"),
        ("[aaa]", "aaa"),
        ("[{id: named}]", "bbb"),
        ("[{test: 'aa*'}]", "aaa"),
        ("[{test: named}]", "bbb"),
        ("[{sls: u}]", "uuu"),
        ("[{sls: 'u*'}]", "uuu"),
        ("[{sls: 'none*'}]", ""),
        ("[{test: null}]", ""),
    ] {
        let text = format!(
            "include: [u]\nz: {{test.nop: [{{require: {requisite}}}]}}\naaa: test.nop\nbbb: {{test.nop: [{{name: named}}]}}"
        );
        let low = run(&[("t", Box::leak(text.into_boxed_str())), ("u", "uuu: test.nop")], &["t"]).unwrap();
        let step = low.steps.iter().find(|step| low.chunks[step.chunk].id == "z").unwrap();
        let needs: Vec<_> = step.needs.iter().map(|need| low.chunks[need.chunk].id.as_str()).collect();
        assert_eq!(needs.join(","), needed, "{requisite}");
    }
}

#[test]
fn watch_is_require_without_mod_watch() {
    let (high, _) =
        load_tree(&[("t", "a: {test.nop: [{watch: [b]}, {require: [c]}]}\nb: test.nop\nc: test.nop")], &["t"]);
    let target = Target { acts_on_watch: &|_| false, disabled_requisites: &[] };
    let low = compile(high, &target).unwrap();
    let a = low.in_order().last().unwrap();
    assert_eq!(a.args.get("watch"), None);
    assert_eq!(a.args.get("require").map(ToString::to_string).as_deref(), Some("['c', 'b']"));
}

#[test]
fn disabled_requisites_are_ignored() {
    let (high, _) =
        load_tree(&[("t", "a: {test.nop: [{require: [nope]}]}\nb: {test.nop: [{watch_in: [nope]}]}")], &["t"]);
    let disabled = ["require".to_owned(), "watch_in".to_owned()];
    let target = Target { disabled_requisites: &disabled, ..everything_acts_on_watch() };
    assert_eq!(ids(&compile(high, &target).unwrap()), ["a", "b"]);
}

#[test]
fn listen_and_listen_in_are_equivalent() {
    let low = one("a: {test.nop: [{listen: [{test: b}, c]}]}\nb: {test.nop: [{listen_in: [{test: d}]}]}").unwrap();
    let report: Vec<_> = low
        .listeners
        .iter()
        .map(|l| format!("{}:{} < {}:{}", l.listener.module, l.listener.name, l.to.module, l.to.name))
        .collect();
    assert_eq!(report, ["test:a < test:b", "test:a < :c", "test:d < test:b"]);
}

#[test]
fn high_data_and_chunks_are_shown_as_salt_shows_them() {
    let text = "include: [u]\nextend: {u: {test: [{x: 2}]}}\nexclude: [v]\n\
                a: {file.managed: [{mode: '1'}, {require: [{test: b}, c]}, {name: /x}]}\nb: test.nop\nc: test.nop";
    let files = [("t", text), ("u", "u: {test.nop: [{x: 1}]}")];
    let (high, errors) = load_tree(&files, &["t"]);
    assert_eq!(errors, [""; 0]);
    insta::assert_snapshot!(to_json(&high.to_value()).replace("}, \"", "},\n\""), @r#"
    {"__extend__": [{"u": {"test": [{"x": 2}], "__sls__": "t", "__env__": "base"}}], "__exclude__": ["v"], "a": {"file": [{"mode": "1"}, {"require": [{"test": "b"},
    "c"]}, {"name": "/x"},
    "managed", {"order": 10001}], "__sls__": "t", "__env__": "base"},
    "b": {"__sls__": "t", "__env__": "base", "test": ["nop", {"order": 10002}]},
    "c": {"__sls__": "t", "__env__": "base", "test": ["nop", {"order": 10003}]},
    "u": {"test": [{"x": 1},
    "nop", {"order": 10000}], "__sls__": "u", "__env__": "base", "__sls_included_from__": ["t"]}}
    "#);
    let low = compile(high, &everything_acts_on_watch()).unwrap();
    insta::assert_snapshot!(to_json(&low.to_value()).replace("}, {", "},\n{"), @r#"
    [{"state": "test", "name": "u", "__sls__": "u", "__env__": "base", "__sls_included_from__": ["t"], "__id__": "u", "x": 2, "order": 10000, "fun": "nop"},
    {"state": "test", "name": "b", "__sls__": "t", "__env__": "base", "__id__": "b", "order": 10002, "fun": "nop"},
    {"state": "test", "name": "c", "__sls__": "t", "__env__": "base", "__id__": "c", "order": 10003, "fun": "nop"},
    {"state": "file", "name": "/x", "__sls__": "t", "__env__": "base", "__id__": "a", "mode": "1", "require": [{"test": "b"}, "c"], "order": 10001, "fun": "managed"}]
    "#);
}

#[test]
fn a_low_chunk_is_parsed_back() {
    let low = one("a: {test.nop: [{name: n}, {x: 1}]}").unwrap();
    let chunk = low.in_order().next().unwrap();
    let value = chunk.to_value();
    let read = Chunk::from_value(value.as_map().unwrap()).unwrap();
    assert_eq!(read.to_value(), value);
    assert_eq!(Chunk::from_value(&brine_value::map! {"name" => "x"}), None);
}

#[test]
fn extend_and_exclude_are_shown_before_the_first_file_that_has_them() {
    let (high, _) = load_tree(&[("t", "a: test.nop"), ("u", "b: test.nop\nextend: {a: {test.nop: []}}")], &["t", "u"]);
    let value = high.to_value();
    let keys: Vec<String> = value.as_map().unwrap().keys().map(ToString::to_string).collect();
    assert_eq!(keys, ["a", "__extend__", "b"]);
}
