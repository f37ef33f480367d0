//! Functions and states on hosts by ssh, with a real `sshd`: without a running master, and against hostile hosts.

use crate::support;

use std::path::PathBuf;

use crate::support::sshd::{Sshd, ssh, ssh_json, user};
use crate::support::{BRINE, System, stderr, stdout};
use brine_value::{Value, json};

/// Returns the path of the program on the hosts.
fn program(system: &System) -> PathBuf {
    let mut all = std::fs::read_dir(system.path("thin")).unwrap().map(|entry| entry.unwrap().path());
    all.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("brine-")).expect("no program is there")
}

fn inode(path: &PathBuf) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_run_on_the_hosts_of_a_roster() {
    let system = System::new("roster_defaults: {cmd_umask: '022'}\nnodegroups: {group: 'web*'}\n");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    let down = support::free_port();
    system.write(
        "etc/roster",
        &format!(
            "{{% for n in [1, 2] %}}\n{}{{% endfor %}}\n{}{}",
            sshd.entry("web{{ n }}", ", grains: {role: web}"),
            sshd.entry("db1", ", minion_opts: {note: mine}"),
            sshd.entry("down", "").replace(&sshd.port.to_string(), &down.to_string())
        ),
    );
    assert_eq!(ssh_json(&system, &["web*", "test.ping"]), json::from_json(r#"{"web1": true, "web2": true}"#).unwrap());
    let first = inode(&program(&system));
    for (words, expected) in [
        (&["-N", "group", "test.echo", "x"][..], r#"{"web1": "x", "web2": "x"}"#),
        (&["-L", "web1,db1", "config.get", "note"], r#"{"web1": "", "db1": "mine"}"#),
        (&["-G", "role:web", "grains.get", "id"], r#"{"web1": "web1", "web2": "web2"}"#),
        (&["-E", "d.1", "cmd.run", "echo $((1+1))"], r#"{"db1": "2"}"#),
        (&["db1", "test.echo", "text=[1, two]"], r#"{"db1": [1, "two"]}"#),
    ] {
        assert_eq!(ssh_json(&system, words), json::from_json(expected).unwrap(), "{words:?}");
    }
    assert_eq!(inode(&program(&system)), first, "the program is pushed once");
    // An unreachable host, a failing function, and an unknown function.
    let output = ssh(&system, &["-L", "web1,down", "test.ping"]);
    let text = stdout(&output);
    assert!(text.contains("web1:\n    True") && text.contains("Connection refused"), "{text}");
    assert_eq!(output.status.code(), Some(20));
    assert_eq!(ssh(&system, &["web1", "cmd.run", "exit 3"]).status.code(), Some(20));
    assert!(stdout(&ssh(&system, &["web1", "no.such"])).contains("'no.such' is not available."));
    let nobody = ssh(&system, &["none", "test.ping"]);
    assert!(stderr(&nobody).contains("No hosts found with target none of type glob"), "{}", stderr(&nobody));
    assert_eq!(nobody.status.code(), Some(1));
    // Custom modules of all environments, without a sync before: new, changed, and gone.
    for (source, expected) in [("return 1", "    1\n"), ("return 2", "    2\n")] {
        system.write("srv/salt/_modules/own.py", &format!("def f():\n    {source}\n"));
        let output = ssh(&system, &["web1", "own.f"]);
        assert!(stdout(&output).contains(expected), "{}{}", stdout(&output), stderr(&output));
    }
    std::fs::remove_file(system.path("srv/salt/_modules/own.py")).unwrap();
    assert!(stdout(&ssh(&system, &["web1", "own.f"])).contains("'own.f' is not available."));
    // A command in the host's own shell (`-r`).
    let raw = ssh_json(&system, &["-r", "web1", "echo out; echo err >&2; exit 4"]);
    assert_eq!(raw, json::from_json(r#"{"web1": {"retcode": 4, "stderr": "err", "stdout": "out\n"}}"#).unwrap());
    assert!(stdout(&ssh(&system, &["-H", "web*"])).contains("web2: 127.0.0.1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn states_use_the_files_and_pillar_of_their_host() {
    let system = System::new("ssh_list_nodegroups: {named: [web1]}\n");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    system.write("etc/roster", &[sshd.entry("web1", ""), sshd.entry("web2", "")].concat());
    system.write("srv/pillar/top.sls", "base: {named: [{match: nodegroup}, secret], web2: [other]}\n");
    system.write("srv/pillar/secret.sls", "key: of {{ grains.id }}\n");
    system.write("srv/pillar/other.sls", "other: {{ salt['test.echo']('x') }}\n");
    let large = "0123456789abcdef".repeat(200_000);
    system.write("srv/salt/large.txt", &large);
    system.write("srv/salt/map.jinja", "{% set out = 'ROOT/out' %}");
    system.write(
        "srv/salt/web.sls",
        "{% from 'map.jinja' import out %}\nconf:\n  file.managed:\n    - name: {{ out }}/{{ grains.id }}\n    - makedirs: True\n    - contents: {{ pillar.get('key', 'none') }}\nlarge:\n  file.managed:\n    - name: {{ out }}/large-{{ grains.id }}\n    - source: salt://large.txt\n",
    );
    system.write("srv/salt/top.sls", "base: {'web*': [web]}\n");
    let tested = stdout(&ssh(&system, &["web1", "state.apply", "web", "test=True"]));
    assert!(tested.matches("is set to be changed").count() == 2 && !system.path("out").exists(), "{tested}");
    let applied = ssh(&system, &["*", "state.apply"]);
    assert!(
        applied.status.success() && stdout(&applied).matches("Succeeded: 2 (changed=2)").count() == 2,
        "{}",
        stdout(&applied)
    );
    assert_eq!(std::fs::read_to_string(system.path("out/web1")).unwrap(), "of web1\n");
    assert_eq!(std::fs::read_to_string(system.path("out/web2")).unwrap(), "none\n");
    assert_eq!(std::fs::read_to_string(system.path("out/large-web2")).unwrap(), large);
    assert!(stdout(&ssh(&system, &["web1", "state.highstate"])).contains("Succeeded: 2\n"));
    let answers = ssh_json(&system, &["*", "match.pillar", "key:of web1"]);
    assert_eq!((answers.get("web1"), answers.get("web2")), (Some(&true.into()), Some(&false.into())));
    let failed = ssh(&system, &["web1", "state.single", "test.fail_without_changes", "name=x"]);
    assert_eq!(failed.status.code(), Some(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_on_a_host_is_verified_and_wiped() {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    system.write("etc/roster", &sshd.entry("web1", ""));
    assert_eq!(ssh_json(&system, &["web1", "test.ping"]).get("web1"), Some(&true.into()));
    let path = program(&system);
    // A file with the hash as its name, but with other content, is not run.
    let planted = system.path("planted").display().to_string();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\ntouch {planted}\n")).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(ssh_json(&system, &["web1", "test.ping"]).get("web1"), Some(&true.into()));
    assert!(!system.path("planted").exists());
    // Other users can neither read nor write there.
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(system.path("thin")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    // A directory that is a link is not used.
    std::fs::rename(system.path("thin"), system.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(system.path("elsewhere"), system.path("thin")).unwrap();
    let refused = stdout(&ssh(&system, &["web1", "test.ping"]));
    assert!(refused.contains("belongs to another user: set thin_dir"), "{refused}");
    std::fs::remove_file(system.path("thin")).unwrap();
    assert_eq!(ssh_json(&system, &["--wipe", "web1", "test.ping"]).get("web1"), Some(&true.into()));
    assert!(!system.path("thin").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_receive_the_program_for_their_architecture() {
    let system = System::new("ssh_program_dir: ROOT/programs\n");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    let path = format!(", set_path: '{}:/usr/bin:/bin'", system.path("fake").display());
    system.write("etc/roster", &sshd.entry("web1", &path));
    let make_executable = |name: &str, content: &str| {
        let path = system.write(name, content);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    make_executable("fake/uname", "#!/bin/sh\necho Linux riscv64\n");
    let refused = ssh_json(&system, &["web1", "test.ping"]);
    let message = refused.get("web1").and_then(|reply| reply.get("stderr")).and_then(Value::as_str).unwrap().to_owned();
    let missing = system.path("programs/brine-ssh-host-riscv64").display().to_string();
    assert!(message.contains("the host is a 'Linux riscv64'") && message.ends_with(&missing), "{message}");
    assert!(!system.path("thin").exists(), "nothing is written there");
    make_executable(
        "programs/brine-ssh-host-riscv64",
        &format!("#!/bin/sh\ntouch {}\nexec {BRINE} \"$@\"\n", system.path("called").display()),
    );
    assert_eq!(ssh_json(&system, &["web1", "test.ping"]).get("web1"), Some(&true.into()));
    assert!(system.path("called").exists());
    assert!(std::fs::metadata(program(&system)).unwrap().len() < 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn successive_calls_share_a_connection() {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    system.write("etc/roster", &sshd.entry("web1", ""));
    let logins = || std::fs::read_to_string(&sshd.log).unwrap().matches("Accepted publickey").count();
    let ping = |words: &[&str]| {
        let pinged = ssh_json(&system, &[words, &["web1", "test.ping"]].concat());
        assert_eq!(pinged.get("web1"), Some(&true.into()), "{words:?} {pinged}");
        logins()
    };
    assert_eq!((ping(&[]), ping(&[])), (1, 1));
    // Only the user may enter the directory, and so use the connection.
    let sockets = system.path("./brine-control");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&sockets).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    // A call with other options of `ssh` does not share the connection.
    assert_eq!((ping(&["--ssh-option", "HashKnownHosts=yes"]), ping(&[])), (2, 2));
    // The user's own settings take precedence.
    let config = system.write("ssh_config", "Host 127.0.0.1\nControlMaster no\nControlPath none\n");
    system.write("etc/roster", &sshd.entry("web1", &format!(", config_file: {}", config.display())));
    assert_eq!((ping(&[]), ping(&[])), (3, 4));
    system.write("etc/master.d/ssh.conf", "ssh_control_persist: 0\n");
    system.write("etc/roster", &sshd.entry("web1", ""));
    assert_eq!((ping(&[]), ping(&[])), (5, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_prepared_before_the_first_call() {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    let script = system.write("prepare", "#!/no/such/interpreter\necho \"$# $2\" >> ROOT/ran\nexit $1\n");
    let roster = |status: u8, more: &str| {
        let more = format!(", ssh_pre_flight: {}, ssh_pre_flight_args: '{status} \"a b\"'{more}", script.display());
        system.write("etc/roster", &sshd.entry("web1", &more));
    };
    let ran = || std::fs::read_to_string(system.path("ran")).unwrap_or_default();
    // The failure of a script is the result, and the program is not pushed.
    roster(3, "");
    let failed = ssh_json(&system, &["web1", "test.ping"]);
    assert_eq!(failed.get("web1").and_then(|result| result.get("retcode")), Some(&3.into()), "{failed}");
    assert!(!system.path("thin").exists());
    roster(0, "");
    for (words, runs) in [
        (&["web1", "test.ping"][..], 2),
        (&["web1", "test.ping"], 2),
        (&["--pre-flight", "web1", "test.ping"], 3),
        (&["--wipe", "web1", "test.ping"], 3),
        (&["web1", "test.ping"], 4),
    ] {
        assert_eq!(ssh_json(&system, words).get("web1"), Some(&true.into()), "{words:?}");
        assert_eq!(ran(), "2 a b\n".repeat(runs), "{words:?}");
    }
    roster(0, &format!(", ssh_pre_hook: 'touch {}'", system.path("hooked").display()));
    assert_eq!(ssh_json(&system, &["web1", "test.ping"]).get("web1"), Some(&true.into()));
    assert!(system.path("hooked").exists());
    // If the script does not exist, the call is made without it.
    std::fs::remove_file(&script).unwrap();
    assert_eq!(ssh_json(&system, &["--pre-flight", "web1", "test.ping"]).get("web1"), Some(&true.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_work_over_a_tty() {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    system.write("etc/roster", &sshd.entry("web1", ", tty: True"));
    system.write("srv/salt/init.sls", "file:\n  file.managed: [{name: ROOT/made}, {source: 'salt://binary'}]\n");
    // All bytes, including those that a terminal would change or interpret.
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    std::fs::write(system.path("srv/salt/binary"), &bytes).unwrap();
    // The program is pushed and then found.
    for _ in 0..2 {
        let echoed = ssh_json(&system, &["web1", "test.echo", "a\r\nb\u{3}\u{4}\u{11}ü"]);
        assert_eq!(echoed.get("web1").and_then(Value::as_str), Some("a\r\nb\u{3}\u{4}\u{11}ü"), "{echoed}");
    }
    let applied = ssh(&system, &["web1", "state.apply", "init"]);
    assert_eq!(applied.status.code(), Some(0), "{}{}", stdout(&applied), stderr(&applied));
    assert_eq!(std::fs::read(system.path("made")).unwrap(), bytes);
    let raw = ssh_json(&system, &["-r", "web1", "tty -s && echo terminal"]);
    assert_eq!(raw.get("web1").and_then(|result| result.get("stdout")), Some(&"terminal\r\n".into()), "{raw}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_read_mine_data_of_hosts_and_minions() {
    let mut system = System::start("mine_functions: {test.ping: []}\n").await;
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    let note = ", mine_functions: {note: [{mine_function: test.echo}, 'of {{ n }}']}";
    system.write("etc/roster", &format!("{{% for n in [1, 2] %}}\n{}{{% endfor %}}\n", sshd.entry("web{{ n }}", note)));
    system.write("srv/pillar/top.sls", "base: {'*': [data]}\n");
    system.write("srv/pillar/data.sls", "mine_functions:\n  of_pillar: [{mine_function: grains.get}, id]\n");
    let echo = "[{mine_function: test.echo}, seen";
    system.configure_minion(
        "min1",
        &format!(
            "mine_functions: {{open: {echo}], hidden: {echo}, {{allow_tgt: 'other*'}}], shown: {echo}, {{allow_tgt: 'web1', allow_tgt_type: list}}]}}\n"
        ),
    );
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("min1");
    events.until("salt/minion/min1/start").await;
    let updated = system.tool("salt", &["min1", "mine.update"]);
    assert!(updated.status.success(), "{}", stderr(&updated));
    let of_both = r#"{"web1": "of 1", "web2": "of 2"}"#;
    for (words, expected) in [
        (&["*", "note"][..], of_both),
        (&["web2", "note"], r#"{"web2": "of 2"}"#),
        (&["web1,web2", "note", "list"], of_both),
        (&["*", "of_pillar"], r#"{"web1": "web1", "web2": "web2"}"#),
        (&["*", "test.ping"], r#"{"web1": true, "web2": true}"#),
        // A function that is not in the mine of another host is not called there.
        (&["*", "grains.items"], "{}"),
        (&["*", "note", "ssh_minions=False"], "{}"),
        (&["*", "open", "ssh_minions=False", "regular_minions=True"], r#"{"min1": "seen"}"#),
        (&["*", "shown", "ssh_minions=False", "regular_minions=True"], r#"{"min1": "seen"}"#),
        (&["*", "hidden", "ssh_minions=False", "regular_minions=True"], "{}"),
        (&["none", "note"], "{}"),
        // A host does not choose where salt-ssh logs in.
        (&["127.0.0.1", "note", "roster=scan"], "{}"),
    ] {
        let answers = ssh_json(&system, &[&["web1", "mine.get"], words].concat());
        assert_eq!(answers.get("web1"), Some(&json::from_json(expected).unwrap()), "{words:?} {answers}");
    }
    system.write(
        "srv/salt/of_mine.sls",
        "{% set notes = salt['mine.get']('*', 'note') %}\nfile:\n  file.managed:\n    - name: ROOT/notes-{{ grains.id }}\n    - contents: {{ notes | json }}\n",
    );
    let applied = ssh(&system, &["*", "state.apply", "of_mine"]);
    assert_eq!(applied.status.code(), Some(0), "{}{}", stdout(&applied), stderr(&applied));
    for id in ["web1", "web2"] {
        let written = std::fs::read_to_string(system.path(&format!("notes-{id}"))).unwrap();
        assert!(written.contains("of 1") && written.contains("of 2"), "{written}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_with_a_passphrase_and_jump_hosts_work() {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "open sesame", "").await;
    let jump = Sshd::start(&system, "jump", "", "").await;
    let entry = sshd.entry("web1", ", priv_passwd: open sesame");
    let wrong = sshd.entry("web2", ", priv_passwd: wrong");
    system.write("etc/roster", &format!("{entry}{wrong}"));
    assert_eq!(ssh_json(&system, &["web1", "test.ping"]).get("web1"), Some(&true.into()));
    let refused = stdout(&ssh(&system, &["web2", "test.ping"]));
    assert!(refused.contains("Permission denied"), "{refused}");
    // The configuration of `ssh` as the roster: its jump host, ports and users apply.
    let (port, key, user) = (jump.port, jump.key.display(), user());
    let common = "  HostName 127.0.0.1\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n";
    let far = format!("Host far\n  Port {port}\n  User {user}\n  IdentityFile {key}\n  ProxyJump near\n{common}");
    let near = format!("Host near\n  Port {port}\n  User {user}\n  IdentityFile {key}\n{common}");
    let config = system.write("ssh_config", &format!("{far}{near}Host *\n  Compression no\n")).display().to_string();
    let roster = system.path("thin").display().to_string();
    system.write(
        "etc/master.d/roster.conf",
        &format!("roster_defaults: {{thin_dir: {roster}}}\ndefault_include: master.d/*.conf\n"),
    );
    let answers = ssh_json(&system, &["--roster=sshconfig", "--roster-file", &config, "*", "test.ping"]);
    assert_eq!(answers, json::from_json(r#"{"far": true, "near": true}"#).unwrap());
    // The same by options of the master, and a group of hosts.
    system.write(
        "etc/master.d/ssh.conf",
        &format!("roster: sshconfig\nssh_config_file: {config}\nssh_list_nodegroups: {{inner: [far, other]}}\n"),
    );
    assert_eq!(ssh_json(&system, &["-N", "inner", "test.ping"]), json::from_json(r#"{"far": true}"#).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_ssh_starts_do_not_inherit_the_password() {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "open sesame", "").await;
    system.write("etc/roster", &sshd.entry("web1", ", priv_passwd: open sesame"));
    let proxy = system.write(
        "proxy",
        "#!/bin/bash\nenv > ROOT/environment\ncat /proc/$PPID/environ /proc/$PPID/cmdline > ROOT/parent\n\
         exec 3<> /dev/tcp/$1/$2\ncat <&3 &\ncat >&3\n",
    );
    let option = format!("--ssh-option=ProxyCommand=bash {} %h %p", proxy.display());
    assert_eq!(ssh_json(&system, &[&option, "web1", "test.ping"]).get("web1"), Some(&true.into()));
    for file in ["environment", "parent"] {
        let bytes = std::fs::read(system.path(file)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("SSH_ASKPASS") && !text.contains("open sesame"), "{file}: {text}");
    }
}

/// A hostile host, which sends arbitrary messages.
const HOSTILE: &str = r#"
import os, re, struct, sys
def pack(value):
    if isinstance(value, str):
        data = value.encode()
        return b"\xdb" + struct.pack(">I", len(data)) + data
    if isinstance(value, dict):
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
out, into = sys.stdout.buffer, sys.stdin.buffer
def send(value):
    data = pack(value)
    out.write(struct.pack(">I", len(data)) + data)
    out.flush()
def receive():
    return into.read(struct.unpack(">I", into.read(4))[0])
token = re.search(r"brine-[0-9a-f]{16}(?= )", os.environ["SSH_ORIGINAL_COMMAND"]).group()
out.write(("noise\n" + token + " READY\n").encode())
out.flush()
receive()
asked = [
    {"cmd": "_serve_file", "path": "../secret", "saltenv": "base", "loc": 0},
    {"cmd": "_serve_file", "path": "|/../../secret", "saltenv": "base", "loc": 0},
    {"cmd": "_file_find", "path": "../../srv/secret", "saltenv": "base"},
    {"cmd": "_serve_file", "path": "secret", "saltenv": "..", "loc": 0},
    {"cmd": "_pillar", "id": "web1", "grains": {"id": "web1"}, "saltenv": "base"},
    {"cmd": "_return", "jid": "20261124000000000000", "id": "web1", "return": "forged", "fun": "test.ping"},
    {"cmd": "runner", "fun": "test.arg"},
    {"cmd": "_mine_get", "id": "web1", "tgt": "*", "fun": "x"},
    {"cmd": "no such command"},
]
answers = b""
for load in asked:
    send({"ask": load})
    answers += receive()
open(sys.argv[1], "wb").write(answers)
if sys.argv[2] == "huge":
    out.write(struct.pack(">I", 0xffffffff) + b"x" * 1000)
elif sys.argv[2] == "garbage":
    out.write(struct.pack(">I", 4) + b"\xff\xff\xff\xff")
elif sys.argv[2] == "end":
    sys.exit(7)
else:
    send({"return": "mine", "retcode": 0})
out.flush()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_host_receives_only_its_own_data() {
    let system = System::new("");
    let script = system.write("hostile.py", HOSTILE).display().to_string();
    let answers = system.path("answers");
    system.write("srv/secret", "SECRET-file");
    system.write("srv/salt/public", "public");
    system.write("srv/pillar/top.sls", "base: {web1: [web1], evil: [evil]}\n");
    system.write("srv/pillar/web1.sls", "key: SECRET-pillar\n");
    system.write("srv/pillar/evil.sls", "own: OWN-pillar\n");
    for (mode, expected) in [("good", "mine"), ("huge", "too large"), ("garbage", "invalid message"), ("end", "")] {
        let name = format!("sshd-{mode}");
        let command = format!("command=\"python3 {script} {} {mode}\" ", answers.display());
        let sshd = Sshd::start(&system, &name, "", &command).await;
        system.write("etc/roster", &sshd.entry("evil", ""));
        let output = ssh(&system, &["evil", "test.ping"]);
        let text = stdout(&output);
        assert!(text.contains("evil:") && text.contains(expected), "{mode}: {text}{}", stderr(&output));
        assert_eq!(output.status.success(), mode == "good", "{mode}: {text}");
        let reported = String::from_utf8_lossy(&std::fs::read(&answers).unwrap()).into_owned();
        assert!(reported.contains("OWN-pillar") && !reported.contains("SECRET"), "{mode}: {reported}");
        std::fs::remove_file(&answers).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_applied_on_the_hosts_that_it_names() {
    let system = System::new("");
    let sshd = Sshd::start(&system, "sshd", "", "").await;
    system.write("etc/roster", &[sshd.entry("web1", ""), sshd.entry("web2", "")].concat());
    system.write(
        "srv/salt/web.sls",
        "ROOT/{{ grains.id }}.txt:\n  file.managed:\n    - contents: {{ pillar.get('text', 'one') }}\n",
    );
    let path = system.path("plan.brine").display().to_string();
    let planned = ssh(&system, &["*", "state.apply", "web", &format!("--plan={path}")]);
    assert!(planned.status.success(), "{}{}", stdout(&planned), stderr(&planned));
    assert!(stdout(&planned).contains("Plan: 2 minions would change in 2 ways"), "{}", stdout(&planned));
    assert!(stderr(&planned).contains("`salt-ssh --apply"), "{}", stderr(&planned));
    let content = |id: &str| std::fs::read_to_string(system.path(&format!("{id}.txt"))).unwrap_or_default();
    assert_eq!(content("web1"), "");

    // One host has changed meanwhile, and one host has left the roster.
    system.write("web1.txt", "other\n");
    system.write("etc/roster", &sshd.entry("web1", ""));
    let applied = ssh(&system, &["--apply", &path]);
    assert!(!applied.status.success() && stdout(&applied).contains("the plan no longer holds"), "{}", stdout(&applied));
    assert!(stderr(&applied).contains("web2: no host in"), "{}", stderr(&applied));
    assert_eq!(content("web1"), "other\n");
    std::fs::remove_file(system.path("web1.txt")).unwrap();
    let applied = ssh(&system, &["--apply", &path]);
    assert_eq!(content("web1"), "one\n", "{}{}", stdout(&applied), stderr(&applied));
    let refused = ssh(&system, &["--apply", &path, "web1"]);
    assert!(stderr(&refused).contains("--apply takes target and function from the plan"), "{}", stderr(&refused));
}
