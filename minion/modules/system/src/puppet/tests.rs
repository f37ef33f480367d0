use std::path::Path;

use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

/// Returns what Puppet 7.23 prints about its directories.
fn settings(root: &Path) -> String {
    let settings = r#"
        $ puppet config print --render-as yaml vardir rundir confdir lastrunfile
        | ---
        | confdir: "/etc/puppet"
        | lastrunfile: "ROOT/public/last_run_summary.yaml"
        | rundir: "ROOT/run"
        | vardir: "ROOT"
    "#;
    settings.replace("ROOT", &root.display().to_string())
}

/// Creates these directories, and returns a minion that knows them.
fn minion(root: &Path) -> Context {
    for name in ["state", "run", "public"] {
        std::fs::create_dir(root.join(name)).unwrap();
    }
    context_with(map! {}, Scripted::new(&settings(root)))
}

// As printed by Puppet 7.23.
#[test]
fn runs_return_their_output() {
    let transcript = settings(Path::new("/var/cache/puppet")) + "
        $ puppet apply --vardir=/var/cache/puppet --confdir=/etc/puppet m.pp --color=false
        | Notice: Compiled catalog for vm in environment production in 0.05 seconds
        | Notice: /Stage[main]/Main/File[/a]/ensure: defined content as '{sha256}98ea6e4f216f2fb4b69fff9b3a44842c38686ca685'
        | Notice: Applied catalog in 0.05 seconds
        = 2
        $ puppet apply --vardir=/var/cache/puppet --confdir=/etc/puppet nosuch.pp --noop --color=false
        ! Error: Could not run: Could not find file nosuch.pp
        = 1
        $ puppet agent --vardir=/var/cache/puppet --confdir=/etc/puppet --test --color=false
        $ puppet agent --vardir=/var/cache/puppet --confdir=/etc/puppet --onetime --no-daemonize --noop --test --color=true '--tags=a::b,c d'
        $ puppet plugin download
        ! Error: Try 'puppet help plugin download' for usage
        = 1
    ";
    let context = context_with(map! {}, Scripted::new(&transcript));
    insta::assert_snapshot!(answers(&context, &[
        ("puppet.run", list!["apply", "m.pp"], map! {}),
        ("puppet.noop", list!["apply", "nosuch.pp"], map! {}),
        ("puppet.run", list![], map! {}),
        ("puppet.noop", list!["agent", "onetime", "no-daemonize"], map! {"tags" => "a::b,c d", "color" => "true"}),
        ("puppet.run", list!["apply"], map! {}),
        ("puppet.run", list!["apply", "-e"], map! {}),
        ("puppet.run", list!["--debug"], map! {}),
        ("puppet.run", list!["debug; id"], map! {}),
        ("puppet.run", list![""], map! {}),
        ("puppet.run", list![], map! {"a=b" => "c"}),
        ("puppet.plugin_sync", list![], map! {}),
    ]), @r#"
    puppet.run: {"pid": 1, "retcode": 0, "stdout": "Notice: Compiled catalog for vm in environment production in 0.05 seconds\nNotice: /Stage[main]/Main/File[/a]/ensure: defined content as '{sha256}98ea6e4f216f2fb4b69fff9b3a44842c38686ca685'\nNotice: Applied catalog in 0.05 seconds", "stderr": ""}
    puppet.noop: {"pid": 1, "retcode": 1, "stdout": "", "stderr": "Error: Could not run: Could not find file nosuch.pp"}
    puppet.run: {"pid": 1, "retcode": 0, "stdout": "", "stderr": ""}
    puppet.noop: {"pid": 1, "retcode": 0, "stdout": "", "stderr": ""}
    puppet.run: ERROR: puppet apply needs the path of a manifest
    puppet.run: ERROR: '-e' cannot be used: it starts with '-' or is empty
    puppet.run: ERROR: "--debug" is not an option of Puppet: write it without leading dashes
    puppet.run: ERROR: "debug; id" is not an option of Puppet: write it without leading dashes
    puppet.run: ERROR: "" is not an option of Puppet: write it without leading dashes
    puppet.run: ERROR: "a=b" is not an option of Puppet: write it without leading dashes
    puppet.plugin_sync: "Error: Try 'puppet help plugin download' for usage"
    "#);
}

#[test]
fn the_agent_is_enabled_and_disabled() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let context = minion(root);
    let ask = |function: &str, args: Value| answers(&context, &[(&format!("puppet.{function}"), args, map! {})]);
    assert_eq!(ask("status", list![]), "puppet.status: \"Stopped\"");
    assert_eq!(ask("enable", list![]), "puppet.enable: false");
    assert_eq!(ask("disable", list!["a \"b\"\n"]), "puppet.disable: true");
    assert_eq!(ask("disable", list![]), "puppet.disable: false");
    let lock = std::fs::read_to_string(root.join("state/agent_disabled.lock")).unwrap();
    assert_eq!(from_json(&lock).unwrap(), map! {"disabled_message" => "a \"b\"\n"}.into());
    assert_eq!(ask("status", list![]), "puppet.status: \"Administratively disabled\"");
    assert_eq!(ask("enable", list![]), "puppet.enable: true");
    let own = std::process::id().to_string();
    for (file, content, state) in [
        ("run/agent.pid", own.as_str(), "Idle daemon"),
        ("run/agent.pid", "2147483647\n", "Stale pidfile"),
        ("run/agent.pid", "-1", "Stale pidfile"),
        ("state/agent_catalog_run.lock", &own, "Applying a catalog"),
        ("state/agent_catalog_run.lock", "", "Stale lockfile"),
    ] {
        std::fs::write(root.join(file), content).unwrap();
        assert_eq!(ask("status", list![]), format!("puppet.status: \"{state}\""));
    }
}

#[test]
fn the_last_run_is_summarised() {
    let directory = tempfile::tempdir().unwrap();
    let context = minion(directory.path());
    let summary = || answers(&context, &[("puppet.summary", list![], map! {})]);
    assert!(summary().starts_with("puppet.summary: ERROR: Unable to read puppet run summary: "));
    for (text, expected) in [
        // As written by Puppet 7.23, without some fields.
        (
            "---\nversion:\n  puppet: 7.23.0\nresources:\n  changed: 1\n  total: 8\ntime:\n  config_retrieval: 0.155530943\n  \
             file: 0.011079703\n  total: 0.048076463\n  last_run: 1795815011\n",
            "{\"last_run\": \"TIME\", \"time\": {\"total\": 0.048076463, \"config_retrieval\": 0.155530943}, \
             \"resources\": {\"changed\": 1, \"total\": 8}}",
        ),
        ("time: {last_run: never}", "{\"last_run\": \"invalid or missing timestamp\", \"time\": {}}"),
        ("other: 1", "{}"),
        ("[", "ERROR: YAML error parsing puppet run summary"),
    ] {
        std::fs::write(directory.path().join("public/last_run_summary.yaml"), text).unwrap();
        let time = Timestamp::from_second(1_795_815_011).unwrap().to_zoned(brine_clock::zone());
        let expected = expected.replace("TIME", &time.strftime("%Y-%m-%dT%H:%M:%S").to_string());
        assert!(summary().starts_with(&format!("puppet.summary: {expected}")), "{}", summary());
    }
}

// As printed by Facter 4.3.0.
#[test]
fn facts_are_those_of_facter() {
    let transcript = r#"
        $ facter --json
        | {
        |   "is_virtual": true,
        |   "os": {
        |     "distro": {
        |       "codename": "bookworm"
        |     }
        |   }
        | }
        $ facter --puppet --json
        | {
        |   "kernel": "Linux"
        | }
        $ facter kernel
        | Linux
        $ facter nosuch
        |
        $ facter --puppet broken
        ! ERROR Facter::OptionsValidator - unrecognised option
        = 1
    "#;
    let context = context_with(map! {}, Scripted::new(transcript));
    insta::assert_snapshot!(answers(&context, &[
        ("puppet.facts", list![], map! {}),
        ("puppet.facts", list![true], map! {}),
        ("puppet.fact", list!["kernel"], map! {}),
        ("puppet.fact", list!["nosuch"], map! {}),
        ("puppet.fact", list!["broken", true], map! {}),
        ("puppet.fact", list!["--json"], map! {}),
    ]), @r#"
    puppet.facts: {"is_virtual": true, "os": {"distro": {"codename": "bookworm"}}}
    puppet.facts: {"kernel": "Linux"}
    puppet.fact: "Linux"
    puppet.fact: ""
    puppet.fact: ERROR: ERROR Facter::OptionsValidator - unrecognised option
    puppet.fact: ERROR: '--json' cannot be used: it starts with '-' or is empty
    "#);
}

#[test]
fn unknown_directories_are_an_error() {
    let context = context_with(map! {}, Scripted::new("$ puppet ...\n! Error: Could not parse\n= 1"));
    let answer = answers(&context, &[("puppet.status", list![], map! {})]);
    assert_eq!(answer, "puppet.status: ERROR: the directories of Puppet are unknown:  Error: Could not parse");
}
