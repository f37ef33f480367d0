//! The renderer `stateconf`, with the results of Salt 3008.3 for the same files.

use std::sync::Arc;

use brine_jinja::{Context, Host};
use brine_value::{Value, json, map};

use super::super::{RenderError, Settings, Sls};
use super::Options;

fn render(sls: &str, source: &str, settings: &Arc<Settings>) -> Result<Value, RenderError> {
    let mut context = Context::new("base");
    context.set_all(&map! {"sls" => sls});
    let compiled = Sls::compile("t.sls", source, "jinja|yaml")?.with_settings(Arc::clone(settings));
    compiled.render(&context, &Host::new())
}

#[test]
fn files_render_as_with_salt() {
    for (sls, source, expected) in [
        (
            "web.nginx",
            "#!stateconf\n.params:\n  stateconf.set:\n    - port: 80\n    - name: n\n# --- end of state config ---\n\
             .run:\n  cmd.run:\n    - name: echo {{ params.port }} {{ sls_dir }}\n",
            r#"{"web.nginx::params": {"stateconf.set": [{"port": 80}, {"name": "n"}]},
                "web.nginx::run": {"cmd.run": [{"name": "echo 80 web"}]},
                "web.nginx::goal": {"stateconf.set": [{"require": [{"stateconf": "web.nginx::params"},
                    {"cmd": "web.nginx::run"}]}]}}"#,
        ),
        (
            "web.nginx",
            "#!stateconf\ninclude:\n  - .other\n  - full\nexclude:\n  - sls: ..top\n.a:\n  pkg.installed:\n    - require:\n\
             \x20     - pkg: b\nb:\n  pkg.installed\nc:\n  file.managed:\n    - require:\n      - pkg: .a\n\
             \x20     - pkg: .other::x\n",
            r#"{"include": [{"base": "web.other"}, "full"], "exclude": [{"sls": "top"}], "b": {"pkg.installed": []},
                "c": {"file.managed": [{"require": [{"pkg": "web.nginx::a"}, {"pkg": "web.other::x"}]}]},
                "web.nginx::a": {"pkg.installed": [{"name": "a"}, {"require": [{"pkg": "b"}]}]},
                "web.nginx::goal": {"stateconf.set": [{"require": [{"pkg": "web.nginx::a"}, {"pkg": "b"},
                    {"file": "c"}]}]}}"#,
        ),
        (
            "web.nginx",
            "#!stateconf -G -o\n.a:\n  cmd.run:\n    - name: a\n.b:\n  cmd.run:\n    - name: b\n    - require:\n\
             \x20     - cmd: .a\n.c:\n  cmd.run\n",
            r#"{"web.nginx::a": {"cmd.run": [{"name": "a"}]},
                "web.nginx::b": {"cmd.run": [{"name": "b"}, {"require": [{"cmd": "web.nginx::a"},
                    {"cmd": "web.nginx::a"}]}]},
                "web.nginx::c": {"cmd.run": [{"name": "c"}, {"require": [{"cmd": "web.nginx::b"}]}]}}"#,
        ),
        (
            "web.nginx",
            "#!stateconf -s\na:\n  cmd.run: []\n.b:\n  cmd.run: []\n",
            r#"{"a": {"cmd.run": []}, "web.nginx::b": {"cmd.run": [{"name": "b"}]},
                "web.nginx::start": {"stateconf.set": [{"require_in": [{"cmd": "a"}]}]},
                "web.nginx::goal": {"stateconf.set": [{"require": [{"cmd": "a"}, {"cmd": "web.nginx::b"},
                    {"stateconf": "web.nginx::start"}]}]}}"#,
        ),
        (
            "top",
            "#!jinja|yaml|stateconf -p\n.a:\n  cmd.run: []\n",
            r#"{"top::a": {"cmd.run": [{"name": "a"}]},
                "top::goal": {"stateconf.set": [{"require": [{"cmd": "top::a"}]}]}}"#,
        ),
        ("top", "#!stateconf -G\n", "{}"),
    ] {
        let rendered = render(sls, source, &Arc::default()).map_err(|error| error.to_string());
        assert_eq!(rendered, Ok(json::from_json(expected).unwrap()), "{source}");
    }
}

#[test]
fn an_including_file_sets_the_settings_of_the_included_one() {
    let settings = Arc::default();
    let above = "#!stateconf\nextend:\n  .params:\n    stateconf.set:\n      - port: 1\n  x::params:\n\
                 \x20   stateconf.set:\n      - port: 7\n";
    let expected = r#"{"extend": {"x::params": {"stateconf.set": [{"port": 7}]},
        "top::params": {"stateconf.set": [{"port": 1}]}}, "top::goal": {"stateconf.set": [{"require": []}]}}"#;
    assert_eq!(render("top", above, &settings), Ok(json::from_json(expected).unwrap()));
    let below = "#!stateconf -G\n.params:\n  stateconf.set:\n    - port: 80\n    - host: h\n# -- end of state config --\n\
                 a:\n  cmd.run:\n    - name: '{{ params.port }} {{ params.host }}'\n";
    let expected = r#"{"a": {"cmd.run": [{"name": "7 h"}]},
        "x::params": {"stateconf.set": [{"port": 80}, {"host": "h"}]}}"#;
    assert_eq!(render("x", below, &settings), Ok(json::from_json(expected).unwrap()));
}

#[test]
fn errors_name_the_mistake() {
    for (source, error) in [
        (
            "#!stateconf -o\na:\n  cmd.run:\n    - require:\n      - cmd: b\nb:\n  cmd.run: []\n",
            "cmd: a requires cmd: b",
        ),
        (
            "#!stateconf -o\na:\n  cmd.run: []\nb:\n  cmd.run:\n    - require_in:\n      - cmd: a\n",
            "which comes before",
        ),
        ("#!stateconf -Go\na:\n  cmd.run:\n    - names: [x, y]\n", "write a state for each in a loop"),
        ("#!stateconf\n...a:\n  cmd.run: []\n", "goes beyond the top directory"),
        ("#!stateconf -x\na:\n  cmd.run: []\n", "the options \"-x\" are invalid"),
        ("#!stateconf yaml\na:\n  cmd.run: []\n", "the options \"yaml\" are invalid"),
        ("#!stateconf\n.goal:\n  cmd.run: []\n", "cannot be added: the SLS has one"),
        ("#!stateconf -G\n.a:\n  cmd.run: []\ntop::a:\n  cmd.run: []\n", "the SLS has that id"),
        ("#!stateconf -s\ninclude: [b]\n", "the SLS has no state"),
    ] {
        let message = render("top", source, &Arc::default()).unwrap_err().to_string();
        assert!(message.contains(error), "{source}: {message}");
    }
}

#[test]
fn odd_data_is_left_to_the_compiler() {
    for source in [
        "#!stateconf\n- a\n",
        "#!stateconf\na: 5\n",
        "#!stateconf -Gos\na: [1]\n",
        "#!stateconf\nextend: 1\ninclude: 2\n",
    ] {
        _ = render("top", source, &Arc::default());
    }
    assert_eq!("-Go yaml . jinja".parse::<Options>().map(|options| options.goal), Ok(false));
}
