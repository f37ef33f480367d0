//! The JSON schemas of files, by the validator `jsonschema` of Python: they accept the examples, and refuse mistakes.

use std::io::Write;
use std::process::{Command, Stdio};

use brine_value::{Value, json, list};

use super::doc;

const VALIDATE: &str = "
import json, sys
import jsonschema
for line in sys.stdin:
    schema, instance = json.loads(line)
    jsonschema.Draft7Validator.check_schema(schema)
    errors = list(jsonschema.Draft7Validator(schema).iter_errors(instance))
    print(errors[0].message.replace('\\n', ' ') if errors else '')
";

/// Returns the first error of each file, empty for a valid one; `None` without the validator.
fn validated(files: &[(&str, String)]) -> Option<Vec<String>> {
    let python = std::env::var("BRINE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import jsonschema"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("BRINE_CI").is_none(), "{python} has no module jsonschema");
        return None;
    }
    let mut validator =
        Command::new(python).args(["-c", VALIDATE]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = validator.stdin.take().unwrap();
    let mut lines = String::new();
    for (file, text) in files {
        let schema = json::from_json(&brine::cli::schema::text(file).unwrap()).unwrap();
        let instance = brine_yaml::load(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        lines += &json::to_json(&list![schema, instance]);
        lines.push('\n');
    }
    let writing = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = validator.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn schemas_accept_examples() {
    let mut files: Vec<(&str, String)> =
        ["logins", "reboots", "rollout"].map(|name| ("rules", doc(&format!("reactor.d/rules/{name}.sls")))).into();
    for (file, text) in [
        ("master", ""),
        ("master", "interface: 0.0.0.0\nworker_threads: '5'\nauto_accept: True\nfile_roots: {base: [/srv/salt]}\n"),
        (
            "master",
            "reactor:\n  - 'salt/auth': [/srv/reactor/auth.sls]\nreactor_rules: /srv/rules.sls\nmy_own: {a: 1}\n",
        ),
        ("minion", "master: [a, b]\nid: web1\ntest: yes\nbeacons: {load: []}\nschedule: {}\n"),
        ("roster", "web1: 192.0.2.1\nweb2: {host: 192.0.2.2, user: admin, port: 22, sudo: True}\nweb3:\n"),
        ("rules", "x:\n  rule.when:\n    register: load\n    above: 5\n    react: /srv/a.sls\n"),
        (
            "rules",
            "x:\n  rule.share:\n    - tag: a/*\n    - of: {nodegroup: web}\n    - above: 10%\n    - within: 5m\n    - react: [/a.sls]\n",
        ),
    ] {
        files.push((file, text.to_owned()));
    }
    for (error, (file, text)) in validated(&files).unwrap_or_default().iter().zip(&files) {
        assert!(error.is_empty(), "{file}: {error}\n{text}");
    }
}

#[test]
fn schemas_refuse_mistakes() {
    let files = [
        ("master", "worker_threads: many\n"),
        ("master", "publish_port: 70000\n"),
        ("master", "auto_accept: maybe\n"),
        ("master", "file_roots: [/srv/salt]\n"),
        ("master", "pki_dir: {a: 1}\n"),
        ("master", "transport: carrier\n"),
        ("master", "- a\n"),
        ("minion", "publish_port: -1\n"),
        ("minion", "schedule: daily\n"),
        ("roster", "web1: {host: a, usr: admin}\n"),
        ("roster", "web1: {host: a, port: ssh}\n"),
        ("roster", "web1: [a]\n"),
        ("rules", "x:\n  rule.count:\n    - tag: a\n    - count: 0\n    - within: 60\n    - react: /a.sls\n"),
        ("rules", "x:\n  rule.count:\n    - tag: a\n    - within: 60\n    - react: /a.sls\n"),
        ("rules", "x:\n  rule.cuont:\n    - tag: a\n"),
        (
            "rules",
            "x:\n  rule.count:\n    - tag: a\n    - count: 2\n    - wihtin: 60\n    - within: 1\n    - react: /a.sls\n",
        ),
    ]
    .map(|(file, text)| (file, text.to_owned()));
    for (error, (file, text)) in validated(&files).unwrap_or_default().iter().zip(&files) {
        assert!(!error.is_empty(), "{file} is accepted:\n{text}");
    }
}

/// The list of files is that of the schemas that are written.
#[test]
fn each_schema_is_a_file() {
    for file in brine::cli::schema::FILES {
        let value = json::from_json(&doc(&format!("docs/reference/schemas/{file}.json"))).unwrap();
        assert_eq!(value.get("$schema").and_then(Value::as_str), Some("http://json-schema.org/draft-07/schema#"));
    }
}
