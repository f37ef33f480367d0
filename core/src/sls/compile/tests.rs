//! Trees of SLS files, and what comes of them.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::sls::yaml;
use crate::value::Value;

struct Tree(HashMap<&'static str, &'static str>);

impl SlsSource for Tree {
    fn render(&self, sls: &str, _saltenv: &str) -> Result<Option<Value>, String> {
        let Some(text) = self.0.get(sls).or_else(|| self.0.get(format!("{sls}/init").as_str())) else {
            return Ok(None);
        };
        yaml::load(text).map(Some).map_err(|error| error.to_string())
    }

    fn available(&self, _saltenv: &str) -> Vec<String> {
        let mut all: Vec<_> = self.0.keys().map(|sls| sls.trim_end_matches("/init").to_owned()).collect();
        all.sort();
        all
    }

    fn is_init(&self, sls: &str, _saltenv: &str) -> bool {
        self.0.contains_key(format!("{sls}/init").as_str())
    }
}

fn run(files: &[(&'static str, &'static str)], names: &[&str]) -> Result<Vec<Chunk>, Vec<String>> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    compile(load(&Tree(files.iter().copied().collect()), &names, "base"))
}

fn ids(chunks: &[Chunk]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk.id.as_str()).collect()
}

#[test]
fn includes_come_first_and_requirements_are_pulled_forward() {
    let files = [
        ("a", "include: [b, .sub]\na1:\n  test.nop:\n    - require: [{test: z}]\na2: test.nop\nz: test.nop\n"),
        ("b", "b1: {test.nop: [{order: last}]}\nb2: test.nop\n"),
        ("sub", "s1: test.nop\n"),
    ];
    let chunks = run(&files, &["a"]).unwrap();
    assert_eq!(ids(&chunks), ["b2", "s1", "z", "a1", "a2", "b1"]);
    assert_eq!(chunks[0].included_from, ["a"]);
    assert_eq!(chunks[3].tag(), "test_|-a1_|-a1_|-nop");
}

#[test]
fn relative_includes_start_at_the_package() {
    let files =
        [("p/init", "include: [.x]\ni: test.nop"), ("p.x", "include: [..q]\nx: test.nop"), ("q", "q: test.nop")];
    assert_eq!(ids(&run(&files, &["p"]).unwrap()), ["q", "x", "i"]);
    let beyond = [("t", "include: [...x]")];
    assert_eq!(
        run(&beyond, &["t"]).unwrap_err(),
        ["Attempted relative include of '...x' within SLS 'base:t' goes beyond top level package "]
    );
}

#[test]
fn every_way_to_write_a_state_is_read() {
    let text = "short: test.nop\nlong:\n  test:\n    - nop\n    - name: n\nseveral:\n  file.managed:\n    - names: [/a, {/b: [{mode: '0600'}]}, /a]\n    - user: root\n  cmd.run: [{name: ls}]\n";
    let chunks = run(&[("t", text)], &["t"]).unwrap();
    let told: Vec<_> = chunks.iter().map(|c| format!("{}.{} {} {}", c.state, c.fun, c.name, c.args.len())).collect();
    assert_eq!(told, ["test.nop short 0", "test.nop n 0", "file.managed /a 1", "file.managed /b 2", "cmd.run ls 0"]);
}

#[test]
fn extend_and_requisites_in_reach_other_files() {
    let files = [
        (
            "a",
            "include: [b]\nextend:\n  base:\n    file:\n      - mode: '0600'\n      - require: [{test: first}]\nfirst: {test.nop: [{require_in: [{file: /conf}]}]}\n",
        ),
        ("b", "base:\n  file.managed:\n    - name: /conf\n    - mode: '0644'\n"),
    ];
    let chunks = run(&files, &["a"]).unwrap();
    assert_eq!(ids(&chunks), ["first", "base"]);
    assert_eq!(chunks[1].args.get("mode"), Some(&"0600".into()));
    assert_eq!(chunks[1].requisites.len(), 2);
}

#[test]
fn excluded_states_are_gone() {
    let files = [
        ("a", "include: [b]\nexclude: [{id: x}, {sls: c*}]\nx: test.nop\ny: test.nop"),
        ("b", "include: [c1]\nb: test.nop"),
        ("c1", "c: test.nop"),
    ];
    assert_eq!(ids(&run(&files, &["a"]).unwrap()), ["b", "y"]);
}

#[test]
fn errors_are_in_salts_words() {
    for (text, message) in [
        (
            "include: [nope]",
            "Specified SLS nope in saltenv base is not available on the salt master or through a configured fileserver",
        ),
        (
            "a: {test.nop: [{require: [{file: nope}]}]}",
            "Referenced state does not exist for requisite [require: (file: nope)] in state [a] in SLS [t]",
        ),
        (
            "a: {test.nop: [{require: [{test: a}]}]}",
            "Recursive requisites were found: ({'SLS': 't', 'ID': 'a'}, 'require', {'SLS': 't', 'ID': 'a'})",
        ),
        (
            "a: {test.nop: [{name: n}, {require: [{test: b}]}]}\nb: {test.nop: [{require: [{test: a}]}]}",
            "Recursive requisites were found: ({'SLS': 't', 'ID': 'a', 'NAME': 'n'}, 'require', {'SLS': 't', 'ID': 'b'}), ({'SLS': 't', 'ID': 'b'}, 'require', {'SLS': 't', 'ID': 'a', 'NAME': 'n'})",
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
        assert_eq!(run(&[("t", text)], &["t"]), Err(vec![message.to_owned()]), "{text}");
    }
    assert_eq!(run(&[], &["x"]), Err(vec!["No matching sls found for 'x' in env 'base'".into()]));
    let twice = [("t", "include: [u]\na: test.nop"), ("u", "a: test.fail")];
    assert!(
        run(&twice, &["t"]).unwrap_err()[0].starts_with(
            "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The conflicting ID is 'a'"
        )
    );
    assert_eq!(
        run(&[("l", "[a]")], &["l"]).unwrap_err(),
        ["SLS l does not render to a dictionary", "Error when rendering state with contents: ['a']"]
    );
}

#[test]
fn a_chunk_is_shown_as_salt_shows_it() {
    let chunks = run(
        &[("t", "a: {file.managed: [{mode: '1'}, {require: [{test: b}, c]}, {name: /x}]}\nb: test.nop\nc: test.nop")],
        &["t"],
    )
    .unwrap();
    let shown = crate::value::json::to_json(&chunks[2].to_value());
    assert_eq!(
        shown,
        r#"{"state": "file", "name": "/x", "__sls__": "t", "__env__": "base", "__id__": "a", "mode": "1", "require": [{"test": "b"}, "c"], "order": 10000, "fun": "managed"}"#
    );
}

proptest! {
    #[test]
    fn requirements_run_first_or_a_circle_is_told(edges in prop::collection::vec((0usize..12, 0usize..12), 0..30)) {
        let mut text = String::new();
        for id in 0..12 {
            let needs: Vec<_> = edges.iter().filter(|(from, _)| *from == id).map(|(_, to)| format!("{{test: s{to}}}")).collect();
            text += &format!("s{id}: {{test.nop: [{{require: [{}]}}]}}\n", needs.join(", "));
        }
        let compiled = compile(load_data(&yaml::load(&text).unwrap(), "t", "base"));
        match compiled {
            Ok(chunks) => {
                let place = |id: usize| chunks.iter().position(|chunk| chunk.id == format!("s{id}")).unwrap();
                for (from, to) in edges {
                    prop_assert!(place(to) < place(from));
                }
            }
            Err(errors) => {
                prop_assert!(errors[0].starts_with("Recursive requisites were found"));
                // There is a circle: whoever is on it can be reached from itself.
                let mut reach = [[false; 12]; 12];
                for (from, to) in &edges { reach[*from][*to] = true; }
                for k in 0..12 { for i in 0..12 { for j in 0..12 { reach[i][j] |= reach[i][k] && reach[k][j]; } } }
                prop_assert!((0..12).any(|id| reach[id][id]));
            }
        }
    }
}
