//! Errors of `salt-call`, and functions that need a complete configuration.

use std::process::Command;

use brine_value::{Value, json};

/// Runs `salt-call --local` and returns the result and the exit status. Times are not compared.
fn local(directory: &std::path::Path, words: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brine"));
    command.args(["salt-call", "--local", "--out=json", "--retcode-passthrough", "-c"]).arg(directory).args(words);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let result = json::from_json(&text)
        .map_or(text, |value| value.get("local").map(without_times).unwrap_or_default().to_string());
    (result, output.status.code())
}

fn without_times(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let entries = map.iter().filter(|(name, _)| !matches!(name.as_str(), Some("duration" | "Execution Time")));
            Value::Map(entries.map(|(name, value)| (name.clone(), without_times(value))).collect())
        }
        Value::List(items) => items.iter().map(without_times).collect(),
        other => other.clone(),
    }
}

#[test]
fn runner_functions_of_the_master_are_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("minion"), format!("id: m1\nroot_dir: {}\n", directory.path().display()))
        .unwrap();
    let spec =
        "{'jobs.print_job': {'args': ['jid', 'ext_source'], 'defaults': [None], 'varargs': None, 'kwargs': None}}";
    for (words, expected) in [
        (&["sys.list_runners", "jobs", "manage", "nosuch"][..], "['jobs', 'manage']"),
        (&["sys.list_runner_functions", "event"], "['event.send']"),
        (&["sys.runner_argspec", "jobs.print_job"], spec),
    ] {
        assert_eq!(local(directory.path(), words), (expected.to_owned(), Some(0)), "{words:?}");
    }
    let (doc, _) = local(directory.path(), &["sys.runner_doc", "jobs.list_job"]);
    assert!(doc.contains("salt-run jobs.list_job "), "{doc}");
}

#[test]
fn grains_are_collected_only_for_calls_that_read_them() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display();
    // A mistake that is logged when the grains are collected.
    std::fs::write(directory.path().join("grains"), "not a mapping\n").unwrap();
    let warned = |words: &[&str], pillar: &str| {
        let roots = format!("pillar_roots: {{base: [{root}/{pillar}]}}\n");
        std::fs::write(directory.path().join("minion"), format!("id: m1\nroot_dir: {root}\n{roots}")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_brine"));
        let output = command.args(["salt-call", "--local", "-c"]).arg(directory.path()).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stderr)
            .matches("the grains file is invalid: expected a mapping, got str")
            .count()
    };
    std::fs::create_dir(directory.path().join("pillar")).unwrap();
    std::fs::write(directory.path().join("pillar/top.sls"), "base: {}\n").unwrap();
    for (words, pillar, times) in [
        (&["test.ping"][..], "none", 0),
        (&["pillar.items"], "none", 0),
        (&["grains.get", "os"], "none", 1),
        (&["test.ping"], "pillar", 1),
    ] {
        assert_eq!(warned(words, pillar), times, "{words:?} with {pillar}");
    }
}

#[test]
fn tests_of_states_are_found_and_run() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display();
    for (path, text) in [
        (
            "minion",
            format!("id: m1\nroot_dir: {root}\nfile_client: local\nfile_roots: {{base: [{root}/srv]}}\n").as_str(),
        ),
        ("srv/top.sls", "base: {'*': [web, plain]}\n"),
        ("srv/web/init.sls", "include: [web.conf]\nx: test.nop\n"),
        ("srv/web/conf.sls", "y: test.nop\n"),
        ("srv/plain.sls", "z: test.nop\n"),
        (
            "srv/web/saltcheck-tests/init.tst",
            "{% for n in [1, 2] %}\necho_{{ n }}: {module_and_function: test.echo, args: [{{ n }}], assertion: assertEqual, expected_return: 1}\n{% endfor %}\n",
        ),
        (
            "srv/web/saltcheck-tests/conf.tst",
            "set_up: {module_and_function: saltcheck.state_apply, args: [web.conf]}\nid: {module_and_function: grains.get, args: [id], assertion: assertIn, expected_return: m}\n",
        ),
        ("srv/web/saltcheck-tests/other.tst", "fails: {module_and_function: test.exception, assertion: assertTrue}\n"),
    ] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let web = "'echo_1': {'status': 'Pass'}, 'echo_2': {'status': 'Fail: 1 is not equal to 2'}";
    let conf = "'set_up': {'status': 'Pass'}, 'id': {'status': 'Pass'}";
    let counts = |passed: u8, failed: u8, missing: u8| {
        format!(
            "{{'TEST RESULTS': {{'Passed': {passed}, 'Failed': {failed}, 'Skipped': 0, 'Missing Tests': {missing}}}}}"
        )
    };
    for (words, expected, status) in [
        (&["saltcheck.run_state_tests", "web.conf"][..], format!("[{{'web.conf': {{{conf}}}}}, {}]", counts(2, 0, 0)), 0),
        (&["saltcheck.run_state_tests", "web"], format!("[{{'web': {{{conf}, {web}}}}}, {}]", counts(3, 1, 0)), 1),
        (
            &["saltcheck.run_state_tests", "plain,web", "only_fails=True"],
            format!("[{{}}, {{'web': {{'echo_2': {{'status': 'Fail: 1 is not equal to 2'}}}}}}, {}]", counts(3, 1, 1)),
            1,
        ),
        (
            &["saltcheck.run_state_tests", "web.other"],
            format!(
                "[{{'web.other': {{'fails': {{'status': 'Fail: The minion function caused an exception: Test Exception'}}}}}}, {}]",
                counts(0, 1, 0)
            ),
            1,
        ),
        (
            &["saltcheck.report_highstate_tests"],
            "{'TEST REPORT RESULTS': {'Missing Tests': 1, 'States missing tests': ['plain'], 'States with tests': ['web.conf', 'web']}}".to_owned(),
            1,
        ),
    ] {
        let (result, code) = local(directory.path(), words);
        assert_eq!((result, code), (expected, Some(status)), "{words:?}");
    }
    let (result, _) = local(directory.path(), &["saltcheck.run_highstate_tests"]);
    assert!(result.contains(web) && result.ends_with(&format!("{}]", counts(3, 1, 1))), "{result}");
}

#[test]
fn a_failed_call_is_reported_on_stderr() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("minion"), format!("id: m1\nroot_dir: {}\n", directory.path().display()))
        .unwrap();
    for (call, reported) in [
        (vec!["file.get_mode", "/nowhere/a"], "Error running 'file.get_mode': Path not found: /nowhere/a\n"),
        (vec!["hashutil.digest", "a", "sha3"], "Error running 'hashutil.digest': Hash func 'sha3' is not supported.\n"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brine"));
        command.args(["salt-call", "--local", "--out=json", "-c"]).arg(directory.path()).args(&call);
        let output = command.output().unwrap();
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert_eq!((out.as_str(), err.as_str(), output.status.code()), ("", reported, Some(1)), "{call:?}");
    }
}

#[test]
fn the_configuration_restricts_what_a_minion_does() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display();
    for (path, text) in [
        (
            "minion",
            format!(
                "id: m1\nroot_dir: {root}\nfile_roots: {{base: [{root}/srv]}}\ndisable_modules: [cmdmod, hosts]\n\
                 disable_states: [cron]\ngrains_blacklist: [cpu_flags, 'hwaddr*', 'ip(4|6)_gw']\n\
                 renderer_blacklist: [py]\nbackup_mode: minion\nlock_saltenv: True\n"
            )
            .as_str(),
        ),
        ("srv/program.sls", "#!py\ndef run():\n    return {}\n"),
        ("srv/template.sls", "{{ salt['cmd.run']('id') }}: test.nop\n"),
        ("srv/condition.sls", &format!("x:\n  test.nop:\n    - onlyif: touch {root}/ran\n")),
        ("srv/file.sls", &format!("{root}/file:\n  file.managed:\n    - contents: {{{{ pillar['text'] }}}}\n")),
    ] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    for (words, part) in [
        (&["cmd.run", "id"][..], "'cmd.run' is not available."),
        (&["hosts.list_hosts"], "'hosts.list_hosts' is not available."),
        (&["state.single", "cmd.run", "id"], "Specified state 'cmd.run' was not found"),
        (&["state.single", "cron.present", "x"], "Specified state 'cron.present' was not found"),
        (&["state.apply", "program"], "The renderer \"py\" is disallowed by configuration"),
        (&["state.apply", "template"], "no attribute 'cmd.run'"),
        (&["state.apply", "condition"], "onlyif condition is false"),
        (&["state.apply", "file", "saltenv=dev"], "lock_saltenv is enabled, saltenv cannot be changed"),
        (&["state.sls_id", "x", "condition", "saltenv=dev"], "lock_saltenv is enabled, saltenv cannot be changed"),
        (&["cron.list_tab", "root"], "{"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brine"));
        command.args(["salt-call", "--local", "--out=json", "-c"]).arg(directory.path()).args(words);
        let output = command.output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(said.replace("\\\"", "\"").contains(part), "{words:?}: {said}");
    }
    assert!(!directory.path().join("ran").exists());
    let (grains, _) = local(directory.path(), &["grains.ls"]);
    for (grain, is_there) in
        [("'cpu_flags'", false), ("'hwaddr_interfaces'", false), ("'ip4_gw'", false), ("'ip_gw'", true), ("'os'", true)]
    {
        assert_eq!(grains.contains(grain), is_there, "{grain}: {grains}");
    }
    for text in ["one", "two", "three"] {
        let (_, status) = local(directory.path(), &["state.apply", "file", &format!("pillar={{text: {text}}}")]);
        assert_eq!(status, Some(0), "{text}");
    }
    let (backups, _) = local(directory.path(), &["file.list_backups", &format!("{root}/file")]);
    assert_eq!(backups.matches("'Location'").count(), 2, "{backups}");
}

#[test]
fn templates_are_imported_by_their_path_on_this_host() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("srv");
    std::fs::create_dir_all(root.join("j")).unwrap();
    let config = format!("id: m1\nroot_dir: {0}\nfile_roots: {{base: [{0}/srv]}}\n", directory.path().display());
    std::fs::write(directory.path().join("minion"), config).unwrap();
    std::fs::write(root.join("j/v.jinja"), "{% set v = 'found' %}").unwrap();
    std::fs::write(directory.path().join("outside.jinja"), "{% set v = 'secret' %}").unwrap();
    for (path, is_found) in [("srv/j/v.jinja", true), ("outside.jinja", false), ("srv/../outside.jinja", false)] {
        let path = directory.path().join(path);
        let sls = format!("{{% from '{}' import v %}}\n{{{{ v }}}}: {{test.nop: []}}\n", path.display());
        std::fs::write(root.join("a.sls"), sls).unwrap();
        let (result, _) = local(directory.path(), &["state.show_low_sls", "a"]);
        assert_eq!(result.contains("'found'"), is_found, "{}: {result}", path.display());
        assert!(!result.contains("'secret'"), "{result}");
    }
}

#[test]
fn pillar_files_that_ask_for_the_pillar_end_with_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display();
    std::fs::create_dir(directory.path().join("pillar")).unwrap();
    std::fs::write(directory.path().join("pillar/top.sls"), "base: {'*': [a]}\n").unwrap();
    let config = format!("id: m1\nroot_dir: {root}\npillar_roots: {{base: [{root}/pillar]}}\n");
    std::fs::write(directory.path().join("minion"), config).unwrap();
    for asking in [
        "salt['pillar.items']()",
        "salt['pillar.data']()",
        "salt['pillar.ls']()",
        "salt['pillar.obfuscate']()",
        "salt['pillar.get']('a', pillarenv='base')",
        "salt['saltutil.refresh_pillar']()",
        "salt['saltutil.pillar_refresh']()",
    ] {
        std::fs::write(directory.path().join("pillar/a.sls"), format!("a: {{{{ {asking} | json }}}}\nb: 1\n")).unwrap();
        let (pillar, code) = local(directory.path(), &["pillar.items"]);
        // A process whose stack overflows is ended by a signal.
        assert!(code.is_some() && !pillar.is_empty(), "{asking}: {pillar}");
    }
}

#[test]
fn the_state_top_may_begin_with_a_slash_or_a_scheme() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display();
    std::fs::create_dir(directory.path().join("tree")).unwrap();
    std::fs::write(directory.path().join("tree/other.sls"), "base: {'*': [a]}\n").unwrap();
    for state_top in ["other.sls", "/other.sls", "salt://other.sls", "salt:///other.sls"] {
        let config = format!("id: m1\nroot_dir: {root}\nfile_roots: {{base: [{root}/tree]}}\nstate_top: {state_top}\n");
        std::fs::write(directory.path().join("minion"), config).unwrap();
        let (top, _) = local(directory.path(), &["state.show_top"]);
        assert_eq!(top, "{'base': ['a']}", "{state_top}");
    }
}
