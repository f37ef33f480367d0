//! `brine check`: the real program examines a small tree.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use brine_value::{Value, json};

use crate::support::BRINE;

/// Runs `brine check` in a directory, and returns its status and output.
fn brine_check(directory: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(BRINE).arg("check").args(words).current_dir(directory).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

/// A tree with an error, a warning and a matter of style.
fn tree() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let sls = "a:\n  pkg.instaled: [] \nb:\n  cmd.run: []\n";
    std::fs::write(directory.path().join("web.sls"), sls).unwrap();
    directory
}

#[test]
fn formats_have_the_findings_and_the_status_tells_errors() {
    let directory = tree();
    let check = |words: &[&str]| brine_check(directory.path(), words);
    let (status, text) = check(&[]);
    assert_eq!(status, Some(1));
    for expected in [
        "error[B201]: there is no state function 'pkg.instaled': did you mean 'pkg.installed'?\n --> web.sls:2:3\n",
        "\n2 |   pkg.instaled: []",
        "warning[B501]: ",
        "1 error, 1 warning, 1 of style\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let findings = json::from_json(&check(&["--format", "json"]).1).unwrap();
    let codes = findings.as_list().unwrap().iter().map(|finding| finding.get("code").unwrap().to_string());
    assert_eq!(codes.collect::<Vec<_>>(), ["B201", "B601", "B501"]);
    let sarif = json::from_json(&check(&["--format", "sarif"]).1).unwrap();
    let runs = sarif.get("runs").and_then(Value::as_list).unwrap();
    let results = runs[0].get("results").and_then(Value::as_list).unwrap();
    assert_eq!((sarif.get("version"), results.len()), (Some(&"2.1.0".into()), 3));
    let (_, github) = check(&["--format", "github"]);
    assert!(
        github.starts_with("::error file=web.sls,line=2,col=3,endLine=2,endColumn=15,title=B201::there is"),
        "{github}"
    );
    let (_, xml) = check(&["--format", "junit"]);
    assert!(xml.contains("<testsuite name=\"brine check\" tests=\"1\" failures=\"2\">"), "{xml}");
    assert!(xml.contains("<failure type=\"B201\" message=\"there is no state function"), "{xml}");
    assert_eq!(check(&["--format", "xml"]).0, Some(64));
    assert_eq!(check(&["nothing"]).0, Some(1));
}

#[test]
fn codes_are_chosen_and_fixes_are_made() {
    let directory = tree();
    let check = |words: &[&str]| brine_check(directory.path(), words);
    let lines = |words: &[&str]| check(&[&["--format", "github"], words].concat()).1.matches("::").count() / 2;
    assert_eq!((lines(&["--select", "B2,B5"]), lines(&["--ignore", "B2"]), lines(&["--select", "B3"])), (2, 2, 0));
    std::fs::write(directory.path().join("brine.toml"), "[check]\nignore = [\"B2\", \"B5\"]\n").unwrap();
    let (status, text) = check(&["--fix"]);
    assert_eq!((status, text.as_str()), (Some(0), "no findings\n"));
    let sls = std::fs::read_to_string(directory.path().join("web.sls")).unwrap();
    assert_eq!(sls, "a:\n  pkg.instaled: []\nb:\n  cmd.run: []\n");
    std::fs::write(directory.path().join("brine.toml"), "[check]\nignored = []\n").unwrap();
    let (status, text) = check(&[]);
    assert!(status == Some(1) && text.contains("option 'ignored' is invalid: expected select"), "{text}");
}

#[test]
fn open_files_are_rendered_for_samples_without_commands() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let touched = directory.path().join("touched");
    let sls = format!(
        "{{% macro state(name) %}}\n{{{{ name }}}}:\n  {{{{ 'pkg.instaled' if grains.os == 'SUSE' else 'test.nop' }}}}: []\n\
         {{% endmacro %}}\n{{{{ state('a') }}}}\n{{% set x = salt['cmd.run']('touch {}') %}}\n",
        touched.display()
    );
    write("web.sls", &sls);
    let (status, text) = brine_check(directory.path(), &[]);
    assert!(status == Some(1) && text.contains("(rendered for SUSE)\n --> web.sls:5:1\n"), "{text}");
    assert!(!touched.exists(), "a check runs no command");
    write("grains.json", "{\"web1\": {\"os\": \"Debian\"}, \"db1\": {\"os\": \"SUSE\"}}\n");
    write("pillar.yaml", "a: 1\n");
    let (_, text) = brine_check(directory.path(), &["--grains", "grains.json", "--pillar", "pillar.yaml"]);
    assert!(text.contains("(rendered for db1)"), "{text}");
    let (status, text) = brine_check(directory.path(), &["--grains", "nothing.json"]);
    assert!(status == Some(1) && text.contains("reading nothing.json failed"), "{text}");
}

#[test]
fn watch_checks_again_when_a_file_changes() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("web.sls"), "a:\n  test.nop: []\n").unwrap();
    let mut command = Command::new(BRINE);
    command.args(["check", "--watch"]).current_dir(directory.path()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "no findings");
    std::fs::write(directory.path().join("other.sls"), "a:\n  test.nopp: []\n").unwrap();
    let line = lines.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("error[B201]: there is no state function 'test.nopp'"), "{line}");
}

#[test]
fn the_hooks_name_commands_that_exist() {
    let hooks = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".pre-commit-hooks.yaml")).unwrap();
    let hooks = brine_yaml::load(&hooks).unwrap();
    for hook in hooks.as_list().unwrap() {
        let entry = hook.get("entry").unwrap().to_string();
        let words: Vec<&str> = entry.split(' ').collect();
        assert_eq!(words[0], "brine");
        let output = Command::new(BRINE).args(&words[1..]).arg("--help").output().unwrap();
        assert!(output.status.success(), "{entry}");
    }
}
