//! The exit statuses of the tools: those of Salt 3008.3, except for failures that Salt reports as success. These have
//! Salt's status with the option `salt_exit_status`.

use crate::support::{System, stderr, stdout};

/// The status of each command line.
const STATUSES: &[(i32, &[&str])] = &[
    (2, &["salt", "nope", "test.ping"]),
    (2, &["salt", "nope", "test.ping", "--static"]),
    (2, &["salt", "nope", "test.ping", "--async"]),
    (2, &["salt", "-L", "nope", "test.ping", "-t", "2"]),
    (1, &["salt", "-L", "m1,nope", "test.ping", "-t", "2"]),
    (2, &["salt", "-E", "m(", "test.ping"]),
    (2, &["salt", "-C", "m1 m2", "test.ping"]),
    (2, &["salt", "-N", "nope", "test.ping"]),
    (0, &["salt", "-N", "both", "test.ping"]),
    (2, &["salt", "-S", "nonsense", "test.ping"]),
    (2, &["salt", "-G", "role:nope", "test.ping"]),
    (2, &["salt", "-G", "osDebian", "test.ping"]),
    (2, &["salt", "-C", "Q@os:x", "test.ping"]),
    (2, &["salt", "-C", "( m1 or G@role:nope)", "test.ping"]),
    (0, &["salt", "--preview-target", "*"]),
    (2, &["salt", "--preview-target", "nope"]),
    (42, &["salt"]),
    (42, &["salt", "*"]),
    (64, &["salt", "--bogus"]),
    (64, &["salt", "*", "test.ping", "--ou=json"]),
    (64, &["salt", "*", "test.ping", "--s"]),
    (64, &["salt", "-Z"]),
    (64, &["salt", "-E", "-G", "x", "test.ping"]),
    (64, &["salt", "*", "test.ping", "--out"]),
    (64, &["salt", "*", "test.ping", "--static=1"]),
    (64, &["salt", "*", "test.ping", "-t", "abc"]),
    (0, &["salt", "*", "test.ping", "--async"]),
    (0, &["salt", "*", "test.ping", "--out=bogus"]),
    (1, &["salt", "*", "nosuch.fun"]),
    (1, &["salt", "*", "nosuch.fun", "--static"]),
    (0, &["salt", "m1", "test.false"]),
    (1, &["salt", "m1", "test.echo"]),
    (1, &["salt", "m1", "test.echo", "a", "b"]),
    (1, &["salt", "m1", "test.ping", "badkw=1"]),
    (1, &["salt", "m1", "test.exception", "hello"]),
    (1, &["salt", "m1", "test.retcode", "7"]),
    (1, &["salt", "m1", "test.retcode", "7", "--static"]),
    (1, &["salt", "m1", "cmd.run", "exit 3"]),
    (1, &["salt", "m1", "cmd.run", "exit 3", "--static"]),
    (1, &["salt", "m1", "cmd.retcode", "exit 4"]),
    (1, &["salt", "m1", "file.grep", "/etc/passwd", "nosuchword"]),
    (1, &["salt", "m1", "group.delete", "nosuchgroup"]),
    (1, &["salt", "m1", "user.delete", "nosuchuser"]),
    (42, &["salt", "m1", "test.ping,test.echo", "hi"]),
    (42, &["salt", "m1", "test.ping,test.echo", ",", "hi", ",", "more"]),
    (1, &["salt", "m1", "test.ping,cmd.run", ",", "exit 2"]),
    (0, &["salt", "m1", "state.apply", "good"]),
    (1, &["salt", "m1", "state.apply", "bad"]),
    (1, &["salt", "m1", "state.apply", "broken"]),
    (1, &["salt", "m1", "state.apply", "unknown"]),
    (1, &["salt", "m1", "state.apply", "nosuch"]),
    (0, &["salt", "m1", "state.apply", "good", "test=True"]),
    (1, &["salt", "m1", "state.apply", "good", "tset=True"]),
    (1, &["salt", "m1", "state.apply", "bad", "--static"]),
    (0, &["salt", "*", "test.ping", "-b", "1"]),
    (1, &["salt", "*", "test.ping", "-b", "abc"]),
    (3, &["salt", "*", "cmd.run", "exit 3", "-b", "1"]),
    (2, &["salt", "*", "cmd.run", "exit 2", "-b", "1", "--failhard"]),
    (2, &["salt", "nope", "test.ping", "-b", "1"]),
    (2, &["salt", "nope", "test.ping", "-b", "1", "--static"]),
    (2, &["salt", "nope", "test.ping", "-b", "1", "--async"]),
    (3, &["salt", "m1", "cmd.run", "exit 3", "-b", "1", "--static"]),
    (0, &["salt", "*", "test.false", "-b", "1"]),
    (1, &["salt", "*", "nosuch.fun", "-b", "1"]),
    (2, &["salt", "*", "state.apply", "bad", "-b", "1"]),
    (2, &["salt", "*", "nosuch.fun", "--subset=1"]),
    (2, &["salt", "nope", "test.ping", "--subset=1"]),
    (0, &["salt", "*", "sys.doc", "test.ping"]),
    (2, &["salt", "nope", "sys.doc", "test.ping"]),
    (64, &["salt", "-d", "*", "test.ping", "test.echo"]),
    (0, &["salt", "--version"]),
    (1, &["salt", "m1", "test.echo", "hi", "--out-file=/nonexistent/x"]),
    (64, &["salt", "*", "test.ping", "-l", "bogus"]),
    (64, &["salt", "*", "test.ping", "--log-file-level=bogus"]),
    (0, &["salt-run", "manage.up"]),
    (1, &["salt-run", "manage.up", "badkw=1"]),
    (1, &["salt-run", "nosuch.fun"]),
    (1, &["salt-run", "jobs.list"]),
    (64, &["salt-run", "--bogus"]),
    (64, &["salt-run", "-t", "abc", "manage.up"]),
    (0, &["salt-run", "--async", "manage.up"]),
    (1, &["salt-run", "test.sleep", "0", "1", "2"]),
    (0, &["salt-run", "-d", "test.arg"]),
    (64, &["salt-run", "-d", "a", "b"]),
    (1, &["salt-run", "jobs.lookup_jid"]),
    (0, &["salt-run", "state.orchestrate", "orch.good"]),
    (1, &["salt-run", "state.orch", "orch.bad"]),
    (1, &["salt-run", "state.orch", "orch.nosuch"]),
    (1, &["salt-run", "state.orch"]),
    (0, &["salt-call", "--local", "test.ping"]),
    (0, &["salt-call", "--local", "test.false"]),
    (1, &["salt-call", "--local", "test.echo"]),
    (1, &["salt-call", "--local", "test.ping", "badkw=1"]),
    (255, &["salt-call", "--local", "nosuch.fun"]),
    (1, &["salt-call", "--local", "test.pin"]),
    (1, &["salt-call", "--local", "test.exception", "x"]),
    (1, &["salt-call", "--local", "test.retcode", "5"]),
    (5, &["salt-call", "--local", "test.retcode", "5", "--retcode-passthrough"]),
    (1, &["salt-call", "--local", "cmd.run", "exit 3"]),
    (3, &["salt-call", "--local", "cmd.run", "exit 3", "--retcode-passthrough"]),
    (0, &["salt-call", "--local", "state.apply", "good"]),
    (1, &["salt-call", "--local", "state.apply", "bad"]),
    (2, &["salt-call", "--local", "state.apply", "bad", "--retcode-passthrough"]),
    (1, &["salt-call", "--local", "state.apply", "broken"]),
    (1, &["salt-call", "--local", "state.apply", "nosuch", "--retcode-passthrough"]),
    (0, &["salt-call", "--local", "state.apply", "good", "test=True"]),
    (64, &["salt-call", "--local", "-d", "a", "b"]),
    (64, &["salt-call", "--local", "-g", "test.ping"]),
    (64, &["salt-call", "--local"]),
    (64, &["salt-call", "--bogus"]),
    (64, &["salt-call", "--local", "-t", "abc", "test.ping"]),
    (0, &["salt-key", "-L"]),
    (64, &["salt-key", "-l", "bogus"]),
    (1, &["salt-key", "-a", "nope"]),
    (1, &["salt-key", "-d", "nope"]),
    (1, &["salt-key", "-p", "nope"]),
    (1, &["salt-key", "-f", "nope"]),
    (64, &["salt-key", "--bogus"]),
    (0, &["salt-key", "-A", "-y"]),
    (64, &["salt-key", "--keysize=100", "--gen-keys=x"]),
    (64, &["salt-key", "-l"]),
];

/// Command lines that fail, unless the option `salt_exit_status` is set.
const UNLIKE_SALT: &[&[&str]] = &[
    &["salt", "nope", "test.ping", "--async"],
    &["salt", "nope", "test.ping", "-b", "1", "--async"],
    &["salt", "-N", "nope", "test.ping"],
    &["salt", "m1", "test.ping", "--return", "nope"],
    &["salt", "m1", "test.ping", "--return", "nope", "-b", "1"],
    &["salt", "m1", "test.retcode", "7", "--static"],
    &["salt", "m1", "test.retcode", "7", "--progress"],
    &["salt", "-d", "m1", "nosuch.fun"],
    &["salt-run", "nosuch.fun"],
    &["salt-run", "manage.up", "badkw=1"],
    &["salt-run", "jobs.lookup_jid"],
    &["salt-run", "-d", "nosuch"],
    &["salt-run", "jobs.lookup_jid", "20200101000000000000"],
    &["salt-run", "jobs.lookup_jid", "20200101000000000000", "--out=json"],
    &["salt-run", "jobs.lookup_jid", "nonsense"],
    &["salt-run", "jobs.list_job", "20200101000000000000"],
    &["salt-run", "jobs.list_job", "nonsense"],
    &["salt-run", "jobs.print_job", "20200101000000000000"],
    &["salt-run", "jobs.print_job", "nonsense"],
    &["salt-run", "jobs.exit_success", "20200101000000000000"],
    &["salt-run", "jobs.exit_success", "nonsense"],
    &["salt-run", "batch.stop", "20200101000000000000"],
    &["salt-run", "batch.status", "20200101000000000000"],
    &["salt-run", "manage.up", "--auth", "nosuch", "--username", "a", "--password", "b"],
    &["salt-key", "-a", "nope"],
    &["salt-key", "-r", "nope", "-y"],
    &["salt-key", "-d", "nope", "-y"],
    &["salt-key", "-p", "nope"],
    &["salt-key", "-f", "nope"],
    &["salt-key", "-d", "nope", "m1", "-y"],
    &["salt-key", "-D", "m1"],
    &["salt-key", "m1"],
    &["salt-key", "-L", "--auth", "nosuch", "--username", "a", "--password", "b"],
    &["salt-key", "-y", "-a", "m1", "--auth", "nosuch", "--username", "a", "--password", "b"],
    // The input ends at the question.
    &["salt-key", "-d", "m1"],
    &["salt-cp", "nope", "/etc/hostname", "/tmp/x"],
    &["salt-call", "--local", "test.ping", "--return", "nope"],
    &["salt-call", "-d", "nosuch.function"],
    &["salt-call", "--local", "pillar.items"],
    &["salt-call", "--local", "pillar.data", "--out=json"],
    &["salt-call", "--local", "pillar.ls"],
    &["salt-call", "--local", "--pillar-root", "/nonexistent", "state.show_top"],
    &["salt-call", "--local", "--pillar-root", "/nonexistent", "state.show_lowstate"],
    &["salt-ssh", "--hosts", "nosuch"],
];

#[tokio::test(flavor = "multi_thread")]
async fn failures_that_salt_reports_as_success_have_an_option() {
    let mut system = System::start("").await;
    system.start_minion("m1").await;
    // The pillar cannot be rendered, nor can the top file.
    system.write("local/srv/salt/top.sls", "base:\n  *:\n    - a\n");
    system.write("local/srv/pillar/top.sls", "base:\n  '*': [nosuch]\n");
    system.write("etc/roster", "web1: 127.0.0.1\n");
    let minion = "id: local\nroot_dir: ROOT/local\nmaster: 127.0.0.1\nfile_roots: {base: [ROOT/local/srv/salt]}\n\
                  pillar_roots: {base: [ROOT/local/srv/pillar]}\n";
    let master = std::fs::read_to_string(system.path("etc/master")).unwrap();
    let mut wrong = Vec::new();
    for option in ["", "salt_exit_status: True\n"] {
        system.write("etc/master", &format!("{master}{option}"));
        system.write("etc/minion", &format!("{minion}{option}"));
        for line in UNLIKE_SALT {
            let output = system.tool_async(line[0], &line[1..]).await;
            if output.status.success() == option.is_empty() {
                wrong.push(format!("{option}{line:?}: {}{}", stdout(&output), stderr(&output)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    system.stop_master();
    let down = system.tool_async("salt", &["m1", "test.ping"]).await;
    assert!(down.status.success(), "{}", stderr(&down));
    system.write("etc/master", &master);
    let down = system.tool_async("salt", &["m1", "test.ping"]).await;
    assert_eq!(down.status.code(), Some(1), "{}", stderr(&down));
    for tool in ["salt", "salt-run"] {
        let words: &[&str] = if tool == "salt" { &["m1", "test.ping"] } else { &["manage.up"] };
        let said = stderr(&system.tool_async(tool, words).await);
        for part in ["its requests arrive at port", "`salt-master --check` say why"] {
            assert!(said.contains(part), "{tool}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_with_errors_fail() {
    let system = System::start("reactor:\n  - 'a': [ROOT/a.sls]\n  - 'b': [ROOT/b.sls]\n").await;
    system.write("a.sls", "a:\n  runner.nosuch.fun: []\n");
    system.write("b.sls", "b:\n  runner.manage.up: []\n");
    let file = system.path("a.sls").display().to_string();
    for (status, words) in
        [(1, &["reactor.test", "a"][..]), (0, &["reactor.test", "b"]), (1, &["reactor.dry_run", &file, "tag=a"])]
    {
        let output = system.tool_async("salt-run", words).await;
        assert_eq!(output.status.code(), Some(status), "{words:?}: {}{}", stdout(&output), stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_statuses_report_failures() {
    let mut system = System::start("nodegroups: {both: 'm1 or m2'}\n").await;
    for (name, text) in [
        ("good", "a:\n  test.nop: []\nb:\n  test.succeed_with_changes: []\n"),
        ("bad", "a:\n  test.fail_without_changes: []\nb:\n  test.nop: []\n"),
        ("broken", "a:\n  test.nop\n   - x: [\n"),
        ("unknown", "a:\n  nosuch.state: []\n"),
        ("orch/good", "s:\n  salt.function:\n    - name: test.ping\n    - tgt: '*'\n"),
        ("orch/bad", "s:\n  salt.function:\n    - name: cmd.run\n    - arg: ['exit 3']\n    - tgt: 'm1'\n"),
    ] {
        system.write(&format!("srv/salt/{name}.sls"), text);
    }
    for id in ["m1", "m2"] {
        system.start_minion(id).await;
    }
    system.write(
        "etc/minion",
        "id: local\nroot_dir: ROOT/local\nmaster: 127.0.0.1\nfile_roots: {base: [ROOT/srv/salt]}\n",
    );
    let mut wrong = Vec::new();
    for (status, line) in STATUSES {
        let output = system.tool_async(line[0], &line[1..]).await;
        if output.status.code() != Some(*status) {
            wrong.push(format!(
                "{line:?}: {:?} instead of {status}: {}{}",
                output.status.code(),
                stdout(&output),
                stderr(&output)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
