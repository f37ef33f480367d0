//! Daemons and tools started by root run as the user of the configuration.

use crate::support;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::support::{BRINE, System, stderr, stdout};
use nix::unistd::{User, geteuid};

const USER: &str = "nobody";

/// Returns the user to change to; `None` with a message if tests do not run as root.
fn user() -> Option<User> {
    if !geteuid().is_root() {
        eprintln!("left out: only root can change its user");
        return None;
    }
    Some(User::from_name(USER).unwrap().unwrap())
}

/// Returns the real, effective and other user ids, and the group ids, of a process.
fn ids(pid: &str) -> Vec<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let lines = status.lines().filter(|line| line.starts_with("Uid:") || line.starts_with("Gid:"));
    lines.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")).collect()
}

fn owner(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).uid()
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_and_tools_run_as_the_user_of_the_configuration() {
    let Some(user) = user() else { return };
    let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
    let mut system = System::new("user: nobody\nauto_accept: True\n");
    // The user must reach the tree.
    std::fs::set_permissions(system.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    system.write("srv/salt/x.txt", "x\n");
    // Files of an earlier start as root.
    for name in ["cache/old/file", "web1/cache/old", "web1/pki/old"] {
        system.write(name, "x");
    }
    system.start_master().await;
    system.configure_minion("web1", "user: nobody\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;

    let pid = |name: &str| std::fs::read_to_string(system.path(name)).unwrap().trim().to_owned();
    for name in ["master.pid", "web1.pid"] {
        let four = |id: u32| [id; 4].map(|id| id.to_string()).join(" ");
        assert_eq!(ids(&pid(name)), [four(uid), four(gid)], "{name}");
        assert_eq!(owner(&system.path(name)), uid, "{name}");
    }
    for name in [
        "pki",
        "pki/minions",
        "pki/minions/web1",
        "pki/master.pem",
        "cache",
        "cache/old/file",
        "cache/.nobody_key",
        "run",
        "web1/pki",
        "web1/pki/old",
        "web1/pki/minion.pem",
        "web1/cache/old",
    ] {
        assert_eq!(owner(&system.path(name)), uid, "{name}");
    }
    // The configuration still belongs to root.
    assert_eq!(owner(&system.path("etc/master")), 0);

    // The minion's commands have the user's identity, groups and home.
    let report = system.salt_json(&["web1", "cmd.run", "id -un; id -G; echo $HOME", "python_shell=True"]);
    let report = report.get("web1").unwrap().to_string();
    let lines: Vec<&str> = report.lines().collect();
    let groups = stdout(&Command::new("id").args(["-G", USER]).output().unwrap());
    assert_eq!(lines, [USER, groups.trim(), &user.dir.display().to_string()]);
    assert_eq!(system.salt_json(&["web1", "cp.get_file_str", "salt://x.txt"]).get("web1"), Some(&"x\n".into()));

    // Tools create no files of root.
    let run = system.tool("salt-run", &["test.arg", "1"]);
    assert!(run.status.success(), "{}", stderr(&run));
    let listed = system.tool("salt-key", &["-L"]);
    assert!(stdout(&listed).contains("web1"), "{}", stderr(&listed));
    let deleted = system.tool("salt-key", &["-y", "-d", "web1"]);
    assert!(deleted.status.success(), "{}", stderr(&deleted));
    let find = Command::new("find").arg(system.path("pki")).arg(system.path("cache")).args(["-user", "root"]).output();
    assert_eq!(stdout(&find.unwrap()), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_in_the_background_drops_privileges() {
    let Some(user) = user() else { return };
    let system = System::new("user: nobody\n");
    std::fs::set_permissions(system.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let log = system.path("logs/master");
    std::fs::create_dir(system.path("logs")).unwrap();
    let output = system.tool("salt-master", &["-d", "--log-file", &log.display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let pid = std::fs::read_to_string(system.path("master.pid")).unwrap().trim().to_owned();
    assert!(ids(&pid)[0].starts_with(&format!("{} ", user.uid)), "{pid}");
    assert_eq!(owner(&log), user.uid.as_raw());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.parse().unwrap()), nix::sys::signal::Signal::SIGTERM)
        .unwrap();
    // The directory belongs to root: the PID file can only be truncated.
    let file = system.path("master.pid");
    support::until("the daemon ends", || std::fs::read_to_string(&file).is_ok_and(|text| text.is_empty())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_to_change_the_user_are_reported_in_one_sentence() {
    let Some(_) = user() else { return };
    let system = System::new("user: no-such-user\n");
    for tool in ["salt-master", "salt-run", "salt-key"] {
        let output = system.tool(tool, &if tool == "salt-run" { vec!["test.arg"] } else { vec![] });
        let report = stderr(&output);
        assert_eq!(output.status.code(), Some(67), "{tool}: {report}");
        assert!(report.contains("running as user 'no-such-user' failed: the user does not exist"), "{tool}: {report}");
    }
    let output = system.tool("salt-master", &["-u", "also-none"]);
    assert!(stderr(&output).contains("'also-none'"), "{}", stderr(&output));

    // A user other than root cannot change to a third one.
    let system = System::new("user: root\n");
    let everybody = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    everybody(&system.path(""));
    let copy = system.path("brine");
    std::fs::copy(BRINE, &copy).unwrap();
    everybody(&copy);
    let setpriv = Command::new("setpriv")
        .args(["--reuid", USER, "--regid", "nogroup", "--clear-groups"])
        .arg(&copy)
        .args(["salt-master", "-c", &system.etc()])
        .output()
        .unwrap();
    assert_eq!(setpriv.status.code(), Some(1), "{}", stderr(&setpriv));
    let expected = "running as user 'root' failed: only root can change to another user; start it as root or as 'root'";
    assert!(stderr(&setpriv).contains(expected), "{}", stderr(&setpriv));
}

/// A group that exists only in the test's own `/etc/group`, with the user as a member.
const GROUP: &str = "54321";

/// Runs this binary where the user has a supplementary group.
fn with_group(system: &System, words: &[&str]) -> Command {
    let groups = std::fs::read_to_string("/etc/group").unwrap();
    let file = system.write("group", &format!("{groups}brine-extra:x:{GROUP}:{USER}\n"));
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", "mount --bind \"$0\" /etc/group && exec \"$@\""])
        .args([file.as_os_str(), BRINE.as_ref()])
        .args(words);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn users_keep_their_supplementary_groups() {
    let Some(_) = user() else { return };
    let system = System::new("user: nobody\n");
    std::fs::set_permissions(system.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut master = with_group(&system, &["salt-master", "-c", &system.etc()]).spawn().unwrap();
    let file = system.path("master.pid");
    support::until("the master serves", || std::fs::read_to_string(&file).is_ok_and(|text| !text.is_empty())).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", master.id())).unwrap();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
    assert!(groups.split_whitespace().any(|group| group == GROUP), "{groups}");
    master.kill().unwrap();
    master.wait().unwrap();

    // The same for programs that a minion of root runs as the user.
    system.write("call/minion", "id: web1\nroot_dir: ROOT/call\nfile_client: local\n");
    let git = system.write("bin/git", "#!/bin/sh\nexec id -G\n");
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", system.path("bin").display(), std::env::var("PATH").unwrap());
    let (etc, cwd) = (system.path("call").display().to_string(), system.path("bin").display().to_string());
    let onlyif = format!("onlyif=id -G | grep -q {GROUP}");
    for (words, part) in [
        (&["cmd.run", "id -G", "runas=nobody"][..], GROUP),
        (&["cmd.run_all", "id -G", "runas=nobody"], GROUP),
        (&["cmd.run", "id -G", "runas=nobody", "umask=077", "python_shell=True"], GROUP),
        (&["git.current_branch", &cwd, "user=nobody"], GROUP),
        (&["state.single", "cmd.run", "name=id -G", "runas=nobody"], GROUP),
        (&["state.single", "test.succeed_with_changes", "name=x", &onlyif, "runas=nobody"], "Success!"),
    ] {
        let called = [&["salt-call", "--local", "-c", &etc, "--out=json"], words].concat();
        let output = with_group(&system, &called).env("PATH", &path).output().unwrap();
        assert!(stdout(&output).contains(part), "{words:?}: {}{}", stdout(&output), stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn published_jobs_run_as_the_sudo_user() {
    let mut system = System::start("show_jid: True\ncli_summary: True\n").await;
    // A stand-in for `sudo`, which sets the variable `AS` for the command.
    let sudo = system
        .write("bin/sudo", "#!/bin/sh\n[ \"$1 $2 $3\" = '-n -u deploy' ] || exit 7\nshift 3\nAS=$0 exec \"$@\"\n");
    std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o755)).unwrap();
    system.configure_minion("web1", "sudo_user: deploy\nrandom_startup_delay: 1\n");
    let mut events = system.events("salt/minion/").await;
    let path = format!("{}:{}", system.path("bin").display(), std::env::var("PATH").unwrap());
    system.spawn_minion_with("web1", &[("PATH", &path)]);
    events.until("salt/minion/web1/start").await;

    let report = system.salt_json(&["web1", "cmd.run", "echo $AS; false", "python_shell=True"]);
    assert_eq!(report.get("web1").unwrap().to_string(), sudo.display().to_string());
    let echoed = system.salt_json(&["web1", "test.arg", "5", "a b", "k={x: [1, 'y']}", "--no-parse=k"]);
    let args = echoed.get("web1").unwrap();
    assert_eq!(args.get("args").unwrap().to_string(), "[5, 'a b']");
    assert_eq!(args.get("kwargs").unwrap().get("k").unwrap().to_string(), "{x: [1, 'y']}");

    let output = system.tool("salt", &["web1", "cmd.retcode", "exit 3", "python_shell=True"]);
    let text = stdout(&output);
    assert!(text.starts_with("jid: 20") && text.contains("# of minions returned: 1"), "{text}");

    // If `sudo` refuses, its message is the return.
    system.write("bin/sudo", "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n");
    let refused = system.salt_json(&["web1", "test.ping"]);
    assert_eq!(refused.get("web1"), Some(&"sudo: a password is required".into()));
}
