//! Daemons that cannot start report the cause in one sentence.

use crate::support;

use std::process::Command;

use crate::support::{BRINE, System, stderr};

#[tokio::test(flavor = "multi_thread")]
async fn startup_errors_of_a_master_are_reported_in_one_sentence() {
    let system = System::new("");
    // A file instead of a directory: root cannot write there either.
    system.write("cache", "not a directory");
    let output = system.tool("salt-master", &[]);
    let report = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report.trim().lines().count(), 1, "{report}");
    assert!(report.contains(&system.path("cache").display().to_string()), "{report}");

    for (text, expected) in [
        ("worker_threads: many\n", "master:1: option 'worker_threads': expected a non-negative integer, got 'many'"),
        ("a: b: c\n", "master:1: mapping values are not allowed in this context"),
        (
            "root_dir: ROOT\nreactor: 5\n",
            "option 'reactor': 'reactor' is invalid: expected a list of `tag pattern: [SLS files]`",
        ),
        (
            "root_dir: ROOT\nmaster_job_cache: cassandra_cql\ninterface: 127.0.0.1\npublish_port: 0\nret_port: 0\n",
            "unknown returner 'cassandra_cql'",
        ),
    ] {
        let other = System::new("");
        other.write("etc/master", text);
        let output = other.tool("salt-master", &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

/// Invalid configurations of a master, with part of the message.
const REFUSED: &[(&str, &str)] = &[
    ("event_return: cassandra_cql\n", "option 'event_return': unknown returner 'cassandra_cql'"),
    ("event_return: sqlite3\n", "option 'event_return': option 'sqlite3.database': it is required"),
    ("master_job_cache: couchbase\n", "option 'master_job_cache': unknown returner 'couchbase'"),
    ("reactor: 5\n", "option 'reactor': 'reactor' is invalid: expected a list"),
    ("ciphers: [rot13]\n", "option 'ciphers': "),
    ("keys.cache_driver: redis\n", "option 'keys.cache_driver': "),
    ("key_pass: sdb://vault/pass\n", "option 'key_pass': "),
    ("fileserver_backend: [gitfs]\ngitfs_remotes: ['-x']\n", "option 'gitfs_remotes': "),
    ("interface: 203.0.113.7\n", "203.0.113.7"),
    ("cachedir: ROOT/file/below\n", "ROOT/file"),
    ("sock_dir: ROOT/file\n", "ROOT/file"),
];

#[tokio::test(flavor = "multi_thread")]
async fn configurations_that_the_start_refuses_fail_the_check() {
    for (options, expected) in REFUSED {
        // Duplicate options must be refused.
        let system = System::new("");
        system.write("file", "");
        let name = options.split(':').next().unwrap();
        let text = std::fs::read_to_string(system.path("etc/master")).unwrap();
        let others: Vec<&str> = text.lines().filter(|line| !line.starts_with(&format!("{name}:"))).collect();
        let rest = others.join("\n") + "\n";
        system.write("etc/master", &format!("{rest}{options}"));
        let root = system.path("").display().to_string();
        let expected = expected.replace("ROOT", root.trim_end_matches('/'));
        let checked = system.tool("salt-master", &["--check"]);
        let text = support::stdout(&checked);
        assert_eq!(checked.status.code(), Some(1), "{options}: {text}{}", stderr(&checked));
        assert!(text.lines().any(|line| line.starts_with("error: ") && line.contains(&expected)), "{options}: {text}");
        assert!(
            !system.path("cache").exists() && !system.path("pki").exists(),
            "{options}: the check changed something"
        );
        let started = system.tool("salt-master", &[]);
        assert!(matches!(started.status.code(), Some(1 | 4)), "{options}: {}", stderr(&started));
        assert!(stderr(&started).contains(&expected), "{options}: {}", stderr(&started));
    }
    let good = System::new("").tool("salt-master", &["--check"]);
    assert_eq!(good.status.code(), Some(0), "{}{}", support::stdout(&good), stderr(&good));
}

#[tokio::test(flavor = "multi_thread")]
async fn permanent_errors_fail_the_check_and_are_logged_once_at_the_start() {
    let options = "fileserver_backend: [roots, svnfs]\next_pillar: [{reclass: {}}]\nauth_mode: 2\n\
                   reactor: [{'x': [/nonexistent/x.sls]}, {'y': [ROOT/bad.sls]}, {'z': [5]}, {'n': null}]\n\
                   reactor_cooldown: {'x': soon}\n\
                   schedule: {typo: {function: test.arg, secons: 5}}\n";
    let mut system = System::new(options);
    system.write("bad.sls", "{% if %}\n");
    let checked = system.tool("salt-master", &["--check"]);
    let (text, warned) = (support::stdout(&checked), stderr(&checked));
    assert_eq!(checked.status.code(), Some(1), "{text}{warned}");
    assert!(text.contains("error: option 'schedule': job 'typo': unknown option 'secons'"), "{text}");
    system.start_master().await;
    let log = system.master_log();
    for part in [
        "option 'fileserver_backend': 'svnfs' is not supported",
        "option 'ext_pillar': 'reclass' is not there",
        "Salt's option 'auth_mode' has no effect",
        "names a file that does not exist: /nonexistent/x.sls",
        "bad.sls:1: Jinja syntax error",
        "the files of 'z' are invalid: expected a list of paths, got 5",
        "'reactor_cooldown': 'x': ",
    ] {
        assert_eq!(log.matches(part).count(), 1, "{part}: {log}");
        assert_eq!(text.matches(part).count() + warned.matches(part).count(), 1, "{part}: {text}{warned}");
        let line = log.lines().find(|line| line.contains(part)).unwrap();
        assert!(line.contains("[WARNING ]"), "{line}");
    }
    assert!(!log.contains("'fileserver_backend' has no effect"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn minion_check_examines_beacons_and_schedules() {
    let system = System::new("");
    system.configure_minion("web1", "beacons: {lod: [], load: [{averages: {1m: [0, 1]}}, {emitatstart: True}]}\nschedule: {a: {function: test.pingg, seconds: 5}}\n");
    let output =
        Command::new(BRINE).args(["salt-minion", "--check", "-c"]).arg(system.path("web1/etc")).output().unwrap();
    let text = support::stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in [
        "error: option 'beacons': 'lod': unknown beacon 'lod'",
        "error: option 'beacons': 'load': unknown option 'emitatstart'",
        "error: option 'schedule': job 'a': there is no function 'test.pingg'",
    ] {
        assert_eq!(text.lines().filter(|line| line.starts_with(part)).count(), 1, "{part}: {text}");
    }
}

#[test]
fn a_configuration_directory_that_is_named_must_exist() {
    for tool in ["salt", "salt-call", "salt-cp", "salt-key", "salt-master", "salt-minion", "salt-run"] {
        let words: &[&str] = match tool {
            "salt" => &["*", "test.ping"],
            "salt-cp" => &["*", "/etc/hostname", "/tmp/hostname"],
            "salt-call" | "salt-run" => &["test.ping"],
            _ => &[],
        };
        for by_environment in [false, true] {
            let mut command = Command::new(BRINE);
            command.arg(tool);
            if by_environment {
                command.env("SALT_CONFIG_DIR", "/nonexistent/etc");
            } else {
                command.args(["-c", "/nonexistent/etc"]);
            }
            let output = command.args(words).output().unwrap();
            let report = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{tool}: {report}");
            let expected = "the configuration directory /nonexistent/etc is invalid: it does not exist";
            assert!(report.starts_with(&format!("{tool}: ")) && report.contains(expected), "{report}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_is_reported_in_one_sentence() {
    let system = System::new("");
    // A limit on file sizes acts like a full disk: writes fail.
    let line = format!("trap '' XFSZ; ulimit -f 16; exec {BRINE} salt-master -c {}", system.etc());
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let report = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report.trim().lines().count(), 1, "{report}");
    assert!(report.contains(&system.path("cache/brine.redb").display().to_string()), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_master_finds_the_ports_taken() {
    let system = System::start("").await;
    let output = system.tool("salt-master", &[]);
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains("The salt master is shutdown. The ports are not available to bind"),
        "{}",
        stderr(&output)
    );
    assert_eq!(support::stdout(&system.tool("salt-run", &["test.arg", "1", "--out=json"])).matches('1').count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_detach_and_tools_report_an_unreachable_master() {
    let system = System::new("");
    let output = system.tool("salt", &["*", "test.ping"]);
    assert_eq!(
        (output.status.code(), support::stdout(&output)),
        (Some(1), "The salt master could not be contacted. Is master running?\n".into())
    );
    let output = system.tool("salt-master", &["-d", "--log-file", &system.path("log").display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let pid = std::fs::read_to_string(system.path("master.pid")).unwrap();
    assert_eq!(system.tool("salt-run", &["test.arg"]).status.code(), Some(0));
    let pid = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    support::until("the daemon ends", || !system.path("master.pid").exists()).await;
}

#[test]
fn the_name_of_the_binary_selects_the_tool() {
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new(BRINE).arg("link").arg(directory.path()).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    for tool in ["salt", "salt-call", "salt-cp", "salt-key", "salt-master", "salt-minion", "salt-run"] {
        let output = Command::new(directory.path().join(tool)).arg("--version").output().unwrap();
        assert!(
            support::stdout(&output).starts_with(&format!("{tool} {}", env!("CARGO_PKG_VERSION"))),
            "{tool}: {output:?}"
        );
        let help = Command::new(directory.path().join(tool)).arg("--help").output().unwrap();
        assert!(support::stdout(&help).contains("Examples:"), "{tool}");
        let usage = Command::new(directory.path().join(tool)).arg("--no-such-option").output().unwrap();
        assert_eq!(usage.status.code(), Some(64), "{tool}");
        assert!(
            stderr(&usage).ends_with(&format!("{tool}: error: no such option: --no-such-option\n")),
            "{}",
            stderr(&usage)
        );
    }
}

/// Stops the daemon of a PID file on drop.
struct Background(std::path::PathBuf);

impl Background {
    fn pid(&self) -> Option<i32> {
        std::fs::read_to_string(&self.0).ok()?.trim().parse().ok()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM);
        }
    }
}

#[test]
fn a_second_daemon_in_the_background_fails_and_keeps_the_pid_file() {
    let system = System::new("log_file: ROOT/log/master\n");
    let etc = system.configure_minion("m1", "log_file: ROOT/log/minion\n").display().to_string();
    for (tool, etc, pid_file, status, cause) in [
        ("salt-master", &system.etc(), "master.pid", 4, "is another salt-master running?"),
        ("salt-minion", &etc, "m1.pid", 1, "another process listens there"),
    ] {
        let daemon = Background(system.path(pid_file));
        let first = System::command(tool, &["-c", etc, "-d"]);
        assert_eq!(first.status.code(), Some(0), "{tool}: {}", stderr(&first));
        let pid = daemon.pid();
        assert!(pid.is_some(), "{tool} serves without a PID file");
        let running = format!("{tool} is running already: process {}, as ", pid.unwrap_or_default());
        // A second master fails by its ports, as in Salt.
        let running = if tool == "salt-master" { cause } else { &running };
        let other = system.path("other.pid").display().to_string();
        for (words, cause) in [
            (&["-c", etc, "-d"][..], running),
            (&["-c", etc], running),
            (&["-c", etc, "-d", "--pid-file", &other], cause),
        ] {
            let second = System::command(tool, words);
            assert_eq!(second.status.code(), Some(status), "{tool} {words:?}: {}", stderr(&second));
            assert!(stderr(&second).contains(cause), "{tool} {words:?}: {}", stderr(&second));
            assert_eq!(daemon.pid(), pid, "{tool} {words:?}");
        }
    }
}
