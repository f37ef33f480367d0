use std::sync::Arc;

use brine_config::{MinionConfig, UnknownArguments};
use brine_context::Context;
use brine_function::{Args, Others};
use brine_value::{FromValue, Map, Value, list};

use crate::testing;

/// A minion with one SLS file `t` and this handling of unknown arguments.
fn with(sls: &str, handling: &str) -> Context {
    let mut minion = testing::minion(&[("t.sls", sls)]);
    let config = MinionConfig {
        state_unknown_arguments: UnknownArguments::from_value(&handling.into()).unwrap(),
        ..(*minion.config).clone()
    };
    Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
    testing::context_of(minion)
}

/// Applies an SLS in test mode, and returns the result of its first state.
fn first(sls: &str, handling: &str) -> Map {
    let args = Args { positional: vec!["t".into()], keyword: brine_value::map! {"test" => true} };
    let results = with(sls, handling).call("state.apply", args).unwrap();
    let (_, result) = results.as_map().and_then(Map::first).unwrap_or_else(|| panic!("{sls}: {results}"));
    result.as_map().unwrap().clone()
}

fn warnings(sls: &str) -> Vec<String> {
    let result = first(sls, "warn");
    result.get("warnings").and_then(Value::as_list).unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn unknown_arguments_are_named_with_their_place_and_what_is_meant() {
    let managed = |args: &str| format!("/nonexistent/x:\n  file.managed:\n    - contents: a\n{args}\n");
    for (sls, expected) in [
        (managed("    - contens: b"), "unknown argument 'contens' of file.managed (t.sls:4): did you mean 'contents'?"),
        (
            managed("    - when: os == 'x'"),
            "unknown argument 'when' of file.managed (t.sls:4): write 'onlyif' or 'unless', or {% if %} of Jinja around \
             the state",
        ),
        (
            managed("    - notify: [{service: x}]"),
            "unknown argument 'notify' of file.managed (t.sls:4): write 'watch_in', or 'listen_in' for the end of the run",
        ),
        (
            managed("    - loop: [1]"),
            "unknown argument 'loop' of file.managed (t.sls:4): write {% for %} of Jinja around the state, or 'names'",
        ),
        (
            managed("    - owner: bob"),
            "unknown argument 'owner' of file.managed (t.sls:4): the argument is called 'user'",
        ),
        (managed("    - zzz: 1"), "unknown argument 'zzz' of file.managed (t.sls:4): it has no effect"),
        (
            managed("    - template: jinja\n    - register: out"),
            "unknown argument 'register' of file.managed (t.sls:5): write 'onchanges', 'onfail' or a slot \
             (__slot__:salt:...) in the state that needs the result",
        ),
        (
            "run:\n  cmd.run:\n    - user: bob\n".into(),
            "unknown argument 'user' of cmd.run (t.sls:3): the argument is called 'runas'",
        ),
        (
            "run:\n  cmd.run:\n    - requires:\n      - cmd: x\n".into(),
            "unknown argument 'requires' of cmd.run (t.sls:3): did you mean 'require'?",
        ),
        (
            "sshd:\n  service.running:\n    - enbale: True\n".into(),
            "unknown argument 'enbale' of service.running (t.sls:3): did you mean 'enable'?",
        ),
        (
            "vim:\n  pkg.installed:\n    - pkgss: [a]\n".into(),
            "unknown argument 'pkgss' of pkg.installed (t.sls:3): did you mean 'pkgs'?",
        ),
    ] {
        assert_eq!(warnings(&sls), [expected], "{sls}");
    }
}

#[test]
fn arguments_of_the_engine_of_templates_and_of_open_functions_are_known() {
    for sls in [
        "/nonexistent/x:\n  file.managed:\n    - template: jinja\n    - contents: a\n    - port: 80\n    - users: [a]\n",
        "a:\n  test.nop:\n    - anything: 1\n    - when: now\n",
        "a:\n  module.run:\n    - test.echo: [{text: a}]\n",
        "a:\n  event.send:\n    - notify: x\n    - when: 1\n",
        "a:\n  cmd.run:\n    - name: 'true'\n    - order: 1\n    - retry: {attempts: 1}\n    - fire_event: True\n    - parallel: False\n    \
         - umask: '022'\n    - reload_modules: True\n    - onlyif: 'true'\n    - unless: 'false'\n    - creates: /x\n    - runas: root\n    \
         - failhard: False\n    - check_cmd: 'true'\n    - aggregate: False\n    - no_log: False\n    - reload_grains: False\n    \
         - reload_pillar: False\n    - stateful: False\n    - python_shell: True\n    - saltenv: base\n",
        "a:\n  cmd.run:\n    - require: [{test: b}]\n    - watch: [{test: b}]\n    - use: [{test: b}]\n    - listen: [{test: b}]\n    \
         - onchanges_any: [{test: b}]\n    - prereq_in: []\nb: test.nop\n",
    ] {
        assert_eq!(warnings(sls), Vec::<String>::new(), "{sls}");
    }
}

#[test]
fn the_option_fails_the_state_or_ignores_the_argument() {
    let sls = "/nonexistent/x:\n  file.managed:\n    - contens: b\n";
    let failed = first(sls, "fail");
    assert_eq!(failed.get("result"), Some(&false.into()));
    let comment = "unknown argument 'contens' of file.managed (t.sls:3): did you mean 'contents'?\n";
    assert_eq!(failed.get("comment"), Some(&comment.into()));
    assert_eq!(first(sls, "ignore").get("warnings"), None);
}

#[test]
fn own_warnings_of_a_state_stay_before_those_about_its_arguments() {
    let mut result = brine_value::map! {"warnings" => list!["old"]};
    let context = with("/nonexistent/x:\n  file.managed:\n    - contens: b\n", "warn");
    let chunk = brine_value::map! {"state" => "file", "fun" => "managed", "name" => "/x", "contens" => 1};
    let chunk = brine_sls::compile::Chunk::from_value(&chunk).unwrap();
    let settings = crate::Settings::default();
    crate::call::Caller { context: &context, settings: &settings, chunks: &[], number: 0 }.warn(&chunk, &mut result);
    let both = list!["old", "unknown argument 'contens' of file.managed: did you mean 'contents'?"];
    assert_eq!(result.get("warnings"), Some(&both));
}

#[test]
fn each_function_with_open_arguments_is_one_that_passes_them_on() {
    let context = testing::context(&[]);
    let open = context.minion.states.iter().filter(|function| function.others() == Some(Others::Any));
    let open = open.map(brine_function::Function::full_name);
    let reasons = [
        ("beacon.present", "options of the beacon"),
        ("blockdev.tuned", "options of blockdev"),
        ("event.", "fields of the event"),
        ("git.", "refused by the functions themselves"),
        ("http.", "arguments of http.query"),
        ("ipset.", "options of an entry"),
        ("iptables.", "options of a rule"),
        ("lvm.", "options of LVM"),
        ("module.", "functions and their arguments"),
        ("network.", "settings of an interface"),
        ("nftables.", "options of a rule"),
        ("pkgrepo.", "options of a repository"),
        ("raid.present", "options of mdadm"),
        ("salt.runner", "arguments of a runner function"),
        ("salt.wheel", "arguments of a wheel function"),
        ("stateconf.", "settings of an SLS"),
        ("test.", "tests take any"),
        ("x509.", "extensions of a certificate"),
    ];
    let is_meant = |name: &String| {
        name.ends_with(".mod_watch")
            || name.ends_with(".mod_beacon")
            || reasons.iter().any(|(start, _)| name.starts_with(start))
    };
    let others: Vec<String> = open.filter(|name| !is_meant(name)).collect();
    assert_eq!(others, Vec::<String>::new(), "describe them with `#[keywords(FUNCTION)]`, or give the reason here");
}
