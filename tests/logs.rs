//! Logs for operators: the files, the content of each level, and the causes of key decisions and reactions.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{BRINE, System, TIMEOUT, stderr, stdout, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A daemon in the background, killed on drop.
struct Background(Pid);

impl Background {
    fn of(system: &System) -> Self {
        let pid = std::fs::read_to_string(system.path("master.pid")).unwrap();
        Background(Pid::from_raw(pid.trim().parse().unwrap()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        _ = kill(self.0, Signal::SIGTERM);
    }
}

fn read(path: impl AsRef<std::path::Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn daemon_logs_to_its_default_file_and_follows_rotation() {
    let system = System::new("auto_accept: True\n");
    let started = system.tool("salt-master", &["-d", "--log-file-level", "info"]);
    assert!(started.status.success(), "{}", stderr(&started));
    let daemon = Background::of(&system);
    let log = system.path("var/log/salt/master");
    assert!(read(&log).contains("master is ready"), "{}", read(&log));
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777 & !0o640, 0);
    // As logrotate does: the file is moved, and the daemon gets a signal.
    std::fs::rename(&log, log.with_extension("1")).unwrap();
    kill(daemon.0, Signal::SIGHUP).unwrap();
    until("the new file", || read(&log).contains("SIGHUP ignored")).await;
    assert_eq!(system.tool("salt-run", &["test.arg"]).status.code(), Some(0), "the daemon continues");
    drop(daemon);
    until("the daemon ends", || !system.path("master.pid").exists()).await;
    assert!(read(&log).contains("the master stops"), "{}", read(&log));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_start_in_the_background_are_in_the_log() {
    let system = System::new("event_return: cassandra_cql\n");
    let started = system.tool("salt-master", &["-d"]);
    let log = system.path("var/log/salt/master");
    assert_eq!(started.status.code(), Some(1));
    assert!(stderr(&started).contains(&log.display().to_string()), "{}", stderr(&started));
    assert!(
        read(&log).contains("[ERROR   ]") && read(&log).contains("unknown returner 'cassandra_cql'"),
        "{}",
        read(&log)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_file_that_cannot_be_opened_is_reported_without_ending_the_daemon() {
    let mut system = System::new("log_file: ROOT/file/log\n");
    system.write("file", "");
    system.start_master().await;
    let report = system.master_log();
    assert_eq!(report.matches("writing the log file").count(), 1, "{report}");
    assert_eq!(system.tool("salt-run", &["test.arg"]).status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_have_the_configured_format() {
    let mut system = System::new(
        "log_fmt_console: '%(levelname)s|%(message)s|'\nlog_fmt_logfile: '%(asctime)s <%(levelname)-8s> %(message)s'\n\
         log_datefmt_logfile: '%Y'\nlog_level_logfile: info\n",
    );
    system.start_master().await;
    let console = system.master_log();
    assert!(console.contains("INFO|master is ready publish_port="), "{console}");
    let log = read(system.path("var/log/salt/master"));
    let year = brine_clock::now().year();
    assert!(log.contains(&format!("{year} <INFO    > master is ready")), "{log}");
    let mut system = System::new("log_fmt_console: '%(nope)s'\n");
    system.start_master().await;
    assert!(system.master_log().contains("option 'log_fmt_console': the attribute 'nope' is unknown"));
}

#[tokio::test(flavor = "multi_thread")]
async fn reactions_rules_and_key_decisions_are_named_at_info() {
    let mut system = System::new("reactor: [{'salt/auth': [ROOT/auth.sls]}]\nreactor_rules: [ROOT/rules.sls]\n");
    let auth = system.write(
        "auth.sls",
        "{% if data.act == 'pend' and data.id == 'web1' %}\nadd:\n  wheel.key.accept:\n    - match: {{ data.id | yaml_encode }}\n{% endif %}\n",
    );
    system.write(
        "rules.sls",
        "twice:\n  rule.count:\n    - tag: my/tag\n    - count: 2\n    - within: 60\n    - react: ROOT/react.sls\n",
    );
    system.write("react.sls", "call:\n  runner.test.arg:\n    - args: [1]\n");
    system.start_master().await;
    system.start_minion("web1").await;
    for _ in 0..2 {
        system.tool_async("salt-run", &["event.send", "my/tag"]).await;
    }
    until("the rule's reaction", || system.master_log().contains("fun=\"runner.test.arg\"")).await;
    let log = system.master_log();
    let line =
        |part: &str| log.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {log}")).to_owned();
    let ran = line("reaction ran tag=\"salt/auth\" _seq=");
    assert!(
        ran.contains(&format!("sls=\"{}:3\"", auth.display())) && ran.contains("fun=\"wheel.key.accept\""),
        "{ran}"
    );
    let accepted = line("key accepted minion=web1 by=\"reaction of ");
    assert!(accepted.contains(&format!("{} to event ", auth.display())), "{accepted}");
    assert!(line("rule fired rule=\"twice\"").contains("tag=\"my/tag\" _seq="));
    // A decision about a key is logged by `salt-key` and by the master.
    let rejected = system.tool("salt-key", &["-y", "-d", "web1", "--log-file-level", "info"]);
    assert!(rejected.status.success(), "{}", stderr(&rejected));
    until("the master's line", || {
        system.master_log().contains("key changed minion=web1 by=\"salt-key of ")
            && system.master_log().contains("act=\"delete\"")
    })
    .await;
    let keys = read(system.path("var/log/salt/key"));
    assert!(keys.contains("key delete minion=web1 by=\"salt-key of "), "{keys}");
    let system = System::start("").await;
    let mut system = system;
    system.start_minion("web2").await;
    assert!(
        system.master_log().contains("key accepted minion=web2 by=auto_accept fingerprint="),
        "{}",
        system.master_log()
    );
}

#[test]
fn debug_logs_the_steps_of_a_state_run_without_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display().to_string();
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "minion",
        &format!(
            "id: m1\nroot_dir: {root}\nfile_client: local\nfile_roots: {{base: [{root}/srv]}}\npillar_roots: {{base: [{root}/pillar]}}\n"
        ),
    );
    write("pillar/top.sls", "base: {'*': [p]}\n");
    write("pillar/p.sls", "password: hunter22\n");
    write("srv/top.sls", "base: {'*': [web]}\n");
    write(
        "srv/web.sls",
        "good:\n  cmd.run:\n    - name: echo {{ 'from' ~ 'template' }}; echo {{ pillar.password }}\nbad:\n  cmd.run:\n    - name: echo out of it; exit 3\n",
    );
    let run = |level: &str| {
        let output = Command::new(BRINE)
            .args(["salt-call", "--local", "-c", &root, "-l", level, "state.apply"])
            .output()
            .unwrap();
        assert!(stdout(&output).contains("Failed:    1"), "{}", stdout(&output));
        stderr(&output)
    };
    let debug = run("debug");
    for part in [
        &format!("[DEBUG   ] configuration file read file={root}/minion"),
        "[DEBUG   ] option id: m1",
        "[DEBUG   ] top file matches: web saltenv=\"base\"",
        "salt://web.sls read",
        "[DEBUG   ] web.sls:3:     - name: echo fromtemplate; echo ****",
        "[INFO    ] running state [good] cmd.run sls=\"web\"",
        "[INFO    ] executing command 'echo'",
        "[DEBUG   ] command line: echo fromtemplate; echo ****",
        "[DEBUG   ] stdout: fromtemplate",
        "[DEBUG   ] stdout: ****",
        "[INFO    ] state [good] cmd.run completed duration_ms=",
        "[ERROR   ] command 'echo' failed",
        "[ERROR   ] stdout: out of it",
        "[ERROR   ] state [bad] cmd.run failed: ",
    ] {
        assert!(debug.contains(part), "{part} is not in\n{debug}");
    }
    assert!(!debug.contains("hunter22"), "{debug}");
    let warning = run("warning");
    assert!(warning.lines().all(|line| line.starts_with("[ERROR   ]")), "{warning}");
    assert!(warning.contains("state [bad] cmd.run failed"), "{warning}");
    // Errors are written to the log file, too, if it exists.
    assert!(!directory.path().join("var/log").exists(), "a tool makes no directory of logs");
}

#[tokio::test(flavor = "multi_thread")]
async fn debug_logs_sockets_publishes_and_returns() {
    let mut system = System::new("auto_accept: True\nlog_level_logfile: debug\n");
    system.start_master().await;
    system.start_minion("web1").await;
    let output = system.tool("salt", &["-l", "debug", "web1", "test.ping"]);
    let report = stderr(&output);
    for part in ["connected endpoint=", "option ret_port: ", "job published jid=", "return received minion=web1 jid="] {
        assert!(report.contains(&format!("[DEBUG   ] {part}")), "{part}: {report}");
    }
    let log = read(system.path("var/log/salt/master"));
    let jid = stdout(&system.tool("salt", &["--show-jid", "web1", "test.ping"]));
    let jid = jid.lines().find_map(|line| line.strip_prefix("jid: ")).unwrap().to_owned();
    assert!(log.contains("listening endpoint=tcp://127.0.0.1:"), "{log}");
    let log = read(system.path("var/log/salt/master"));
    for part in [
        format!("job published jid={jid} fun=test.ping tgt=web1 tgt_type=glob"),
        format!("return received minion=web1 jid={jid} fun=\"test.ping\" retcode=\"0\""),
    ] {
        assert!(log.contains(&part), "{part}: {log}");
    }
    assert!(system.minion_log("web1").contains(&format!("job received jid={jid} fun=test.ping")));
    assert!(system.minion_log("web1").contains(&format!("job finished jid=\"{jid}\" fun=\"test.ping\" retcode=\"0\"")));
}

#[test]
fn swarm_reports_a_master_that_refuses_connections() {
    use std::io::{BufRead, BufReader};
    let port = support::free_port().to_string();
    let keys = tempfile::tempdir().unwrap();
    let mut swarm = Command::new(BRINE)
        .args(["swarm", "--minions", "2", "--port", &port, "--dir"])
        .arg(keys.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    let mut lines = BufReader::new(swarm.stderr.take().unwrap()).lines().map_while(Result::ok);
    let report = lines.find(|line| line.contains("Connection refused"));
    swarm.kill().unwrap();
    swarm.wait().unwrap();
    assert!(report.is_some_and(|line| line.contains(&port)) && begun.elapsed() < TIMEOUT);
}
