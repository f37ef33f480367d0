//! Local users: file modes, secrets in logs, commands in arguments.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use brine_value::json::{from_json, to_json};
use brine_value::{list, map};

use crate::cve::{SECRET, salt_call, walk};
use crate::support::{BRINE, Events, System, stderr, stdout, until};

/// A daemon with the most permissive umask and the most verbose log, killed on drop.
struct Daemon(Child);

impl Daemon {
    fn start(system: &System, tool: &str, etc: &str, log: &str) -> Self {
        let log = system.path(log);
        let child = Command::new("sh")
            .args(["-c", "umask 000; exec \"$0\" \"$@\"", BRINE, tool, "-c"])
            .arg(system.path(etc))
            .args(["-l", "quiet", "--log-file-level", "all", "--log-file"])
            .arg(log)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Daemon(child)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.0.id().cast_signed());
        _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        _ = self.0.wait();
    }
}

/// Starts a master and a connected minion `web1`.
async fn fleet(system: &System) -> (Daemon, Daemon, Events) {
    let master = Daemon::start(system, "salt-master", "etc", "logged-master");
    until("the master serves", || system.path("master.pid").exists()).await;
    let mut events = system.events("").await;
    system.configure_minion("web1", "");
    let minion = Daemon::start(system, "salt-minion", "web1/etc", "logged-minion");
    events.until("salt/minion/web1/start").await;
    (master, minion, events)
}

/// Private keys were world-readable.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_17490_keys_sockets_and_logs_are_private_under_any_umask() {
    let system = System::new("auto_accept: True\n");
    let (_master, _minion, _) = fleet(&system).await;
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
    let made = Command::new("sh")
        .args(["-c", "umask 000; exec \"$0\" \"$@\"", BRINE, "salt-key", "--gen-keys", "pair", "--gen-keys-dir"])
        .arg(system.path("pair"))
        .output()
        .unwrap();
    assert!(made.status.success());
    // Path suffixes, and the permitted mode bits.
    let allowed = [
        ("pki/master.pem", 0o400),
        ("minion.pem", 0o400),
        ("pair.pem", 0o400),
        ("_key", 0o400),
        (".ipc", 0o600),
        ("logged-master", 0o640),
        ("logged-minion", 0o640),
        (".pid", 0o644),
        ("brine.redb", 0o600),
    ];
    let all = walk(&system.path(""));
    let mut wrong = Vec::new();
    for (end, allowed) in allowed {
        let paths: Vec<_> = all.iter().filter(|path| path.to_string_lossy().ends_with(end)).collect();
        assert!(!paths.is_empty(), "there is no {end}");
        for path in paths {
            let mode = path.symlink_metadata().unwrap().mode() & 0o7777;
            if mode & !allowed != 0 {
                wrong.push(format!("{} {mode:o}, allowed {allowed:o}", path.display()));
            }
        }
    }
    for socket in all.iter().filter(|path| path.symlink_metadata().is_ok_and(|status| status.file_type().is_socket())) {
        let directory = socket.parent().unwrap().metadata().unwrap().mode() & 0o7777;
        if directory != 0o700 {
            wrong.push(format!("{} is in a directory of mode {directory:o}", socket.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `cmdmod` logged passwords.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_25284_secrets_are_in_no_log_event_or_process_list() {
    let system = System::new("auto_accept: True\n");
    system.write("srv/pillar/top.sls", "base: {web1: [secrets]}\n");
    system.write("srv/pillar/secrets.sls", &format!("password: {SECRET}\n"));
    let seen = system.path("seen").display().to_string();
    system.write("srv/salt/use.sls", &format!("use:\n  cmd.run:\n    - name: cat /proc/[0-9]*/cmdline > {seen}; test -n \"$PASSWORD\"\n    - env:\n      - PASSWORD: {{{{ pillar['password'] }}}}\nfail:\n  cmd.run:\n    - name: echo failed; exit 3\n    - env:\n      - PASSWORD: {{{{ pillar['password'] }}}}\n"));
    let (_master, _minion, mut events) = fleet(&system).await;
    let root_key = system.root_key();
    let run = stdout(&system.tool_async("salt", &["web1", "state.apply", "use"]).await);
    assert!(run.contains("Succeeded: 1") && run.contains("Failed:    1") && !run.contains(SECRET), "{run}");
    // As in Salt, arguments of a job are in its events; they are in no log.
    let env = format!("env={{PASSWORD: '{SECRET}'}}");
    assert!(
        stdout(&system.tool_async("salt", &["web1", "cmd.run", "echo $PASSWORD | wc -c", &env]).await).contains("15")
    );
    system.tool_async("salt-run", &["event.send", "mine/last"]).await;
    loop {
        let (tag, data) = events.next().await;
        if tag == "mine/last" {
            break;
        }
        let text = format!("{data:?}");
        assert!(!text.contains(&root_key), "{tag} has the root key");
        assert!(!text.contains(SECRET) || data.get("fun") == Some(&"cmd.run".into()), "{tag}: {text}");
    }
    let listed = std::fs::read(system.path("seen")).unwrap();
    let listed = String::from_utf8_lossy(&listed);
    assert!(listed.contains("salt-minion") && !listed.contains(SECRET) && !listed.contains(&root_key), "{listed}");
    for log in ["logged-master", "logged-minion"] {
        let log = std::fs::read_to_string(system.path(log)).unwrap();
        assert!(log.len() > 100 && !log.contains(SECRET) && !log.contains(&root_key), "{log}");
    }
}

/// Functions that pass an argument to a program, with their other arguments. They only read.
const CALLS: &[&[&str]] = &[
    &["service.status", "X"],
    &["service.available", "X"],
    &["service.enabled", "X"],
    &["pkg.version", "X"],
    &["pkg.list_pkgs", "X"],
    &["ps.pgrep", "X"],
    &["status.pid", "X"],
    &["user.info", "X"],
    &["user.list_groups", "X"],
    &["group.info", "X"],
    &["shadow.info", "X"],
    &["sysctl.get", "X"],
    &["kmod.is_loaded", "X"],
    &["mount.active", "X"],
    &["mount.is_mounted", "X"],
    &["disk.usage", "X"],
    &["disk.blkid", "X"],
    &["locale.avail", "X"],
    &["alternatives.display", "X"],
    &["cron.list_tab", "X"],
    &["cron.raw_cron", "X"],
    &["debconf.show", "X"],
    &["acl.getfacl", "X"],
    &["network.dig", "X"],
    &["network.get_route", "X"],
    &["git.version", "X"],
    &["git.current_branch", "X"],
    &["git.rev_parse", "X", "X"],
    &["git.ls_remote", "X"],
    &["git.status", "X"],
    &["ssh.auth_keys", "X"],
    &["ssh.recv_known_host_entries", "X", "timeout=1"],
    &["timezone.zone_compare", "X"],
    &["file.stats", "X"],
    &["file.find", "X", "name=X"],
    &["file.grep", "X", "X"],
    &["file.get_mode", "X"],
    &["archive.list", "X"],
    &["hashutil.digest_file", "X"],
    &["pip.list", "X"],
    &["iptables.get_rules", "X"],
    &["cmd.which", "X"],
    &["cmd.has_exec", "X"],
    &["apache.config", "X", "[]", "edit=False"],
];

/// Asserts that no function executes a command in its arguments.
fn assert_runs_nothing(calls: &[&[&str]], argument: impl Fn(&str) -> Vec<String>) {
    let system = System::new("");
    let target = system.path("escaped").display().to_string();
    for call in calls {
        for attack in argument(&target) {
            let words: Vec<String> = call
                .iter()
                .map(|word| if word.contains('X') { word.replace('X', &attack) } else { (*word).to_owned() })
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = salt_call(&system, &words);
            assert_ne!(output.status.code(), Some(101), "{words:?}");
            assert!(!system.path("escaped").exists(), "{words:?}");
        }
    }
}

/// Starts a program, once no other test that starts one holds it open for writing.
fn spawn(program: &Path) -> Child {
    loop {
        match Command::new(program).arg("60").spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            spawned => return spawned.unwrap(),
        }
    }
}

/// The name of a process was executed by a shell.
#[test]
fn cve_2020_28243_names_of_processes_and_files_run_nothing() {
    let system = System::new("");
    let target = system.path("escaped").display().to_string();
    // A process whose name is a command.
    let name = format!(";touch ${{IFS}}{};", target.replace('/', "|"));
    let program = system.path(&name);
    std::fs::copy("/bin/sleep", &program).unwrap();
    let mut child = spawn(&program);
    for words in [
        &["ps.top"][..],
        &["ps.get_pid_list"],
        &["status.procs"],
        &["ps.pgrep", &name],
        &["status.pid", &name],
        &["ps.proc_info", &child.id().to_string()],
    ] {
        assert_ne!(salt_call(&system, words).status.code(), Some(101), "{words:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!system.path("escaped").exists());
    assert_runs_nothing(&CALLS[..20], |target| vec![format!("-x;touch {target}"), format!("--help --output={target}")]);
}

/// `restartcheck` looked up the package of a process, and of its deleted program, in a shell.
#[test]
fn cve_2020_28243_restartcheck_runs_no_names_of_processes() {
    let system = System::new("");
    // restartcheck ignores deleted files in /tmp and /home.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let is_ignored = ["/home/", "/tmp/", "/var/tmp/", "/run/"].iter().any(|path| directory.path().starts_with(path));
    let names = [";touch escaped;", "--admindir=.", "$(touch escaped)", "`touch escaped`\ntouch escaped"];
    let mut children = Vec::new();
    for name in names {
        let program = directory.path().join(name);
        std::fs::copy("/bin/sleep", &program).unwrap();
        children.push(spawn(&program));
        std::fs::remove_file(&program).unwrap();
    }
    let output = salt_call(&system, &["restartcheck.restartcheck", "--out=json"]);
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let report = stdout(&output);
    assert!(output.status.success(), "{report}{}", stderr(&output));
    let lists = |name: &&str| report.contains(*name);
    assert!(is_ignored || names[..3].iter().all(lists), "{report}");
    assert!(!system.path("escaped").exists());
}

/// Arguments of `snapper` were executed by a shell: none of Brine's functions does so.
#[test]
fn cve_2021_31607_arguments_run_no_commands() {
    assert_runs_nothing(CALLS, |target| {
        vec![format!(
            "x;touch {target};`touch {target}`$(touch {target})|touch {target}&'touch {target}\"\ntouch {target}"
        )]
    });
}

/// `snapper` ran `file` on the names of changed files in a shell.
#[test]
fn cve_2021_31607_snapper_runs_no_names_of_files() {
    let system = System::new("");
    let name = "-x;touch escaped;`touch escaped`$(touch escaped)'\"";
    let file = system.path("sub").join(name).display().to_string();
    system.write(&format!("sub/{name}"), "new\n");
    system.write("changed", &format!("+..... {file}\n"));
    // The answers of the program to the commands of these functions.
    let program = system.write(
        "bin/snapper",
        "#!/bin/sh\n\
         case \"$*\" in\n\
         *' status '*) cat ROOT/changed ;;\n\
         *get-config*) echo '{\"SUBVOLUME\": \"ROOT/sub\"}' ;;\n\
         *undochange*) for word; do printf '%s\\0' \"$word\"; done > ROOT/words; echo create:0 modify:0 delete:1 ;;\n\
         esac\n",
    );
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let json = |words: &[&str]| {
        let output = salt_call(&system, &[words, &["num_pre=1", "--out=json"]].concat());
        from_json(&stdout(&output)).unwrap().get("local").cloned().unwrap()
    };
    assert_eq!(json(&["snapper.changed_files"]), list![&file]);
    let diff = json(&["snapper.diff"]);
    assert_eq!(diff.get(&file).and_then(|about| about.get("comment")), Some(&"text file created".into()), "{diff}");
    let undone = json(&["snapper.undo", &format!("files={}", to_json(&list![&file]))]);
    assert_eq!(undone.get("delete"), Some(&"1".into()), "{undone}");
    let words = std::fs::read_to_string(system.path("words")).unwrap();
    assert_eq!(words.split('\0').collect::<Vec<_>>(), ["-c", "root", "undochange", "1..0", &file, ""]);
    for function in ["status", "diff", "undo"] {
        let attack = ["config=root;touch escaped;$(touch escaped)", "num_pre=1"];
        _ = salt_call(&system, &[&[format!("snapper.{function}").as_str()][..], &attack].concat());
    }
    assert!(!system.path("escaped").exists());
}

/// `status` evaluated function names as Python.
#[test]
fn cve_2021_33226_nothing_is_evaluated() {
    let evaluated = |target: &str| {
        vec![
            format!("__import__('os').system('touch {target}')"),
            format!("{{{{ salt['cmd.run']('touch {target}') }}}}"),
            format!("os.system('touch {target}')()"),
        ]
    };
    let calls: &[&[&str]] = &[
        &["status.custom", "X"],
        &["status.pid", "X"],
        &["X"],
        &["test.X"],
        &["sys.doc", "X"],
        &["sys.argspec", "X"],
        &["test.echo", "X"],
        &["match.compound", "X"],
        &["config.get", "X"],
        &["grains.get", "X"],
        &["pillar.get", "X"],
        &["slsutil.merge", "X", "{}"],
    ];
    assert_runs_nothing(calls, evaluated);
}
