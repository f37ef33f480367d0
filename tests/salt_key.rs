//! `salt-key` end to end: the real binary on key directories, with and without a master's sockets.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use brine_crypt::PrivateKey;
use insta::assert_snapshot;

const PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAzcdTUZkfq30UU9xlftCc\n\
0A2QKT6qYWtuHu5eNvZKUk5iNSDGgoAqxKj2/+ue+lMMl72p4TVCLto+SA0/BE79\n\
djVUK2gOLS89d2m+qH3vBHI2MY4HAesKidV+IED/25on04hKD6cg0G14/BrUTGam\n\
JHTjx51iJmIGDPkdQOjti+P9SHl5CGr1iPZkPrw3kXgCeD9Hsvlw2UgUjaUAQOyG\n\
9b/H/tN/RSJcMPODfMXdMU1HssfdKgZCDp5oKzQqwscc8zOYkQz3af32wjWXZL14\n\
SL61sxx3fF7aX4ekF9qtKOZ1MkXj6PqSCJGuPiTHLdTHe4Lpv7+jerLF3mq+TyKS\n\
9wIDAQAB\n-----END PUBLIC KEY-----\n";

/// The directories of a master below a scratch directory.
struct Master {
    root: tempfile::TempDir,
}

impl Master {
    /// Keys: m1 and m2 accepted, p1, p2 and Pq pending, r1 rejected, d1 and m1 denied, and a pending file without a
    /// valid key.
    fn new() -> Self {
        let master = Master { root: tempfile::tempdir().unwrap() };
        // The outputs below are Salt's, with its exit statuses.
        let options = format!("root_dir: {}\npki_dir: pki\nsalt_exit_status: True\n", master.path("").display());
        fs::write(master.path("master"), options).unwrap();
        for key in ["/m1", "/m2", "_pre/p1", "_pre/p2", "_pre/Pq", "_rejected/r1", "_denied/d1", "_denied/m1"] {
            master.write(key, PEM);
        }
        master.write("_pre/bad", "garbage\n");
        master
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, key: &str, text: &str) {
        let path = self.path(&format!("pki/minions{key}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs `salt-key` with these words and this input. Returns its output, with stderr after `!`, and its exit status
    /// if it is not 0.
    fn key(&self, words: &str, input: &str) -> String {
        run(Command::new(env!("CARGO_BIN_EXE_brine")).arg("key").arg("-c").arg(self.path("")), words, input)
    }

    /// Returns all keys on one line.
    fn keys(&self) -> String {
        self.key("--out json --out-indent=-1", "").trim().replace('"', "")
    }
}

fn run(command: &mut Command, words: &str, input: &str) -> String {
    let mut child = command
        .args(words.split_whitespace())
        .env_remove("SALT_CONFIG_DIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A tool without a prompt may have closed its input by now.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        writeln!(text, "! {line}").unwrap();
    }
    if let Some(status) = output.status.code().filter(|status| *status != 0) {
        writeln!(text, "-> {status}").unwrap();
    }
    text
}

#[test]
fn all_keys_are_listed_under_four_headings() {
    let master = Master::new();
    let listed = master.key("-L", "");
    let (keys, advice) = listed.split_once("! ").unwrap();
    assert_eq!(advice.matches("the key of '").count(), 2, "{advice}");
    assert_snapshot!(keys, @r"
    Accepted Keys:
    m1
    m2
    Denied Keys:
    d1
    m1
    Unaccepted Keys:
    Pq
    bad
    p1
    p2
    Rejected Keys:
    r1
    ");
    assert_eq!(master.key("", ""), master.key("-L", ""));
    assert_eq!(master.key("extra words -l all", ""), master.key("-L", ""));
    assert_snapshot!(master.keys(), @"{minions_pre: [bad, p1, p2, Pq], minions_rejected: [r1], minions: [m1, m2], minions_denied: [d1, m1]}");
}

#[test]
fn keys_of_one_state_are_listed_by_its_name() {
    let master = Master::new();
    assert_snapshot!(master.key("-l acc", ""), @r"
    Accepted Keys:
    m1
    m2
    ");
    assert_snapshot!(master.key("--list=un --out yaml", ""), @r"
    minions_pre:
    - bad
    - p1
    - p2
    - Pq
    ");
    assert_snapshot!(master.key("-l rejected --force-color", "").replace('\x1b', "ESC"), @r"
    ESC[0;1;34mRejected Keys:ESC[0;0m
    ESC[0;34mr1ESC[0;0m
    ");
    assert_snapshot!(master.key("-l bogus", ""), @r"
    ! Usage: salt-key [options]
    ! 
    ! salt-key: error: 'bogus' is not a valid argument to '--list'
    -> 64
    ");
}

#[test]
fn accepting_asks_and_takes_an_empty_answer_as_yes() {
    let master = Master::new();
    assert_snapshot!(master.key("-a p1,P*", "\n"), @r"
    The following keys are going to be accepted:
    Unaccepted Keys:
    Pq
    p1
    Proceed? [n/Y] Key for minion p1 accepted.
    Key for minion Pq accepted.
    ");
    assert_snapshot!(master.keys(), @"{minions_pre: [bad, p2], minions_rejected: [r1], minions: [m1, m2, p1, Pq], minions_denied: [d1, m1]}");
    assert_snapshot!(master.key("-A", "no\n"), @r"
    The following keys are going to be accepted:
    Unaccepted Keys:
    bad
    p2
    Proceed? [n/Y]
    ");
    assert_snapshot!(master.key("-y -A", ""), @r"
    The following keys are going to be accepted:
    Unaccepted Keys:
    bad
    p2
    Key for minion p2 accepted.
    ! Unable to accept invalid key for bad.
    ");
    assert_snapshot!(master.key("-a zz --include-rejected --include-denied", ""), @"The key glob 'zz' does not match any unaccepted, rejected or denied keys.");
    assert_snapshot!(master.key("-a r1 --include-all -y", ""), @r"
    The following keys are going to be accepted:
    Rejected Keys:
    r1
    Key for minion r1 accepted.
    ");
    assert_snapshot!(master.keys(), @"{minions_pre: [bad], minions_rejected: [], minions: [m1, m2, p1, p2, Pq, r1], minions_denied: [d1, m1]}");
}

#[test]
fn end_of_input_is_not_an_answer() {
    let master = Master::new();
    assert_snapshot!(master.key("-r p1", ""), @r"
    The following keys are going to be rejected:
    Unaccepted Keys:
    p1
    Proceed? [n/Y] ! [ERROR   ] EOF when reading a line: nothing is changed
    ");
    assert!(master.keys().contains("minions_pre: [bad, p1, p2, Pq]"));
}

#[test]
fn rejecting_includes_other_states_on_demand() {
    let master = Master::new();
    assert_snapshot!(master.key("-r *1 --include-accepted --include-denied", "Y\n"), @r"
    The following keys are going to be rejected:
    Accepted Keys:
    m1
    Denied Keys:
    d1
    m1
    Unaccepted Keys:
    p1
    Proceed? [n/Y] Key for minion p1 rejected.
    Key for minion m1 rejected.
    Key for minion d1 rejected.
    Key for minion m1 rejected.
    ");
    assert_snapshot!(master.keys(), @"{minions_pre: [bad, p2, Pq], minions_rejected: [d1, m1, p1, r1], minions: [m2], minions_denied: []}");
}

#[test]
fn deleting_asks_and_takes_an_empty_answer_as_no() {
    let master = Master::new();
    assert_snapshot!(master.key("-d m1", "\n"), @r"
    The following keys are going to be deleted:
    Accepted Keys:
    m1
    Denied Keys:
    m1
    Proceed? [N/y]
    ");
    assert_snapshot!(master.key("-d m1,r1", "yes\n"), @r"
    The following keys are going to be deleted:
    Accepted Keys:
    m1
    Denied Keys:
    m1
    Rejected Keys:
    r1
    Proceed? [N/y] Key for minion r1 deleted.
    Key for minion m1 deleted.
    Key for minion m1 deleted.
    ");
    assert_snapshot!(master.key("-d m1", ""), @"The key glob 'm1' does not match any unaccepted keys.");
    assert_snapshot!(master.key("-D -y", ""), @r"
    The following keys are going to be deleted:
    Accepted Keys:
    m2
    Denied Keys:
    d1
    Unaccepted Keys:
    Pq
    bad
    p1
    p2
    Key for minion bad deleted.
    Key for minion p1 deleted.
    Key for minion p2 deleted.
    Key for minion Pq deleted.
    Key for minion m2 deleted.
    Key for minion d1 deleted.
    ");
    assert_snapshot!(master.key("-D", ""), @"The key glob '*' does not match any unaccepted keys.");
}

#[test]
fn only_the_key_of_a_file_is_printed() {
    let master = Master::new();
    let clean = master.key("-p p2", "");
    master.write("_pre/p2", &format!("text before\n{}text behind\n", PEM.replace('\n', "\r\n")));
    assert_eq!(master.key("-p p2", ""), clean);
}

#[test]
fn keys_and_fingerprints_are_shown() {
    let master = Master::new();
    assert_snapshot!(master.key("-p m1", ""), @r"
    Accepted Keys:
    m1:  -----BEGIN PUBLIC KEY-----
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAzcdTUZkfq30UU9xlftCc
    0A2QKT6qYWtuHu5eNvZKUk5iNSDGgoAqxKj2/+ue+lMMl72p4TVCLto+SA0/BE79
    djVUK2gOLS89d2m+qH3vBHI2MY4HAesKidV+IED/25on04hKD6cg0G14/BrUTGam
    JHTjx51iJmIGDPkdQOjti+P9SHl5CGr1iPZkPrw3kXgCeD9Hsvlw2UgUjaUAQOyG
    9b/H/tN/RSJcMPODfMXdMU1HssfdKgZCDp5oKzQqwscc8zOYkQz3af32wjWXZL14
    SL61sxx3fF7aX4ekF9qtKOZ1MkXj6PqSCJGuPiTHLdTHe4Lpv7+jerLF3mq+TyKS
    9wIDAQAB
    -----END PUBLIC KEY-----

    Denied Keys:
    m1:  -----BEGIN PUBLIC KEY-----
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAzcdTUZkfq30UU9xlftCc
    0A2QKT6qYWtuHu5eNvZKUk5iNSDGgoAqxKj2/+ue+lMMl72p4TVCLto+SA0/BE79
    djVUK2gOLS89d2m+qH3vBHI2MY4HAesKidV+IED/25on04hKD6cg0G14/BrUTGam
    JHTjx51iJmIGDPkdQOjti+P9SHl5CGr1iPZkPrw3kXgCeD9Hsvlw2UgUjaUAQOyG
    9b/H/tN/RSJcMPODfMXdMU1HssfdKgZCDp5oKzQqwscc8zOYkQz3af32wjWXZL14
    SL61sxx3fF7aX4ekF9qtKOZ1MkXj6PqSCJGuPiTHLdTHe4Lpv7+jerLF3mq+TyKS
    9wIDAQAB
    -----END PUBLIC KEY-----
    ");
    assert_snapshot!(master.key("-f *1", ""), @r"
    Accepted Keys:
    m1:  7d:5c:00:39:95:6c:60:33:c3:1c:1f:41:3f:8c:1c:38:3d:94:49:ae:d1:88:01:43:7c:7c:8f:09:61:64:d5:9f
    Denied Keys:
    d1:  7d:5c:00:39:95:6c:60:33:c3:1c:1f:41:3f:8c:1c:38:3d:94:49:ae:d1:88:01:43:7c:7c:8f:09:61:64:d5:9f
    m1:  7d:5c:00:39:95:6c:60:33:c3:1c:1f:41:3f:8c:1c:38:3d:94:49:ae:d1:88:01:43:7c:7c:8f:09:61:64:d5:9f
    Unaccepted Keys:
    p1:  7d:5c:00:39:95:6c:60:33:c3:1c:1f:41:3f:8c:1c:38:3d:94:49:ae:d1:88:01:43:7c:7c:8f:09:61:64:d5:9f
    Rejected Keys:
    r1:  7d:5c:00:39:95:6c:60:33:c3:1c:1f:41:3f:8c:1c:38:3d:94:49:ae:d1:88:01:43:7c:7c:8f:09:61:64:d5:9f
    ");
    assert_snapshot!(master.key("-f bad", ""), @r"
    Unaccepted Keys:
    bad:  the key of bad: this is not a usable RSA key: it has no BEGIN and END line of a PEM file
    ");
    let missing =
        "! The key glob 'zz' does not match any keys.\n! More: brine docs troubleshooting#a-minion-does-not-appear\n";
    assert_eq!(master.key("-f zz", ""), missing);
    let pair = PrivateKey::load_or_generate(master.path("pki"), "master", 2048).unwrap();
    let finger = pair.public().fingerprint();
    let all = master.key("-F", "");
    assert!(all.starts_with(&format!("Local Keys:\nmaster.pem:  {finger}\nmaster.pub:  {finger}\nAccepted")), "{all}");
}

#[test]
fn results_can_go_to_a_file_and_questions_do_not() {
    let master = Master::new();
    let file = master.path("out");
    assert_snapshot!(master.key(&format!("-a p1 --out-file {}", file.display()), "n\n"), @r"
    The following keys are going to be accepted:
    Proceed? [n/Y]
    ");
    assert_eq!(fs::read_to_string(file).unwrap(), "Unaccepted Keys:\np1\n");
}

#[test]
fn a_key_pair_is_generated_and_not_replaced() {
    let master = Master::new();
    let directory = master.path("made");
    let words = format!("--gen-keys web1 --gen-keys-dir {}", directory.display());
    let first = master.key(&words, "");
    assert!(first.starts_with("return:\n    "), "{first}");
    assert_eq!(master.key(&words, ""), first);
    let pair = PrivateKey::load(directory.join("web1.pem"), None).unwrap().unwrap();
    assert_eq!(fs::read_to_string(directory.join("web1.pub")).unwrap(), pair.public().to_pem());
    assert_snapshot!(master.key("--gen-keys ../web1", ""), @r#"
    ! salt-key: the name of the key pair is invalid: "../web1" cannot be a minion id: expected 1 to 255 bytes without '/', '\', control characters or a leading dot
    -> 1
    "#);
    assert_snapshot!(master.key("--gen-keys web1 --keysize 1024", ""), @r"
    ! Usage: salt-key [options]
    ! 
    ! salt-key: error: The minimum value for keysize is 2048
    -> 64
    ");
}

#[test]
fn usage_errors_match_salt() {
    let master = Master::new();
    assert_snapshot!(master.key("--nope", ""), @r"
    ! Usage: salt-key [options]
    ! 
    ! salt-key: error: no such option: --nope
    -> 64
    ");
    assert_snapshot!(master.key("-y -a", ""), @r"
    ! Usage: salt-key [options]
    ! 
    ! salt-key: error: -a option requires 1 argument
    -> 64
    ");
    assert_snapshot!(master.key("--keysize abc", ""), @r"
    ! Usage: salt-key [options]
    ! 
    ! salt-key: error: option --keysize: invalid integer value: 'abc'
    -> 64
    ");
    assert_snapshot!(master.key("-l un --out bogus", ""), @r"
    minions_pre:
        - bad
        - p1
        - p2
        - Pq
    ! [ERROR   ] Invalid outputter bogus specified, fall back to nested
    ");
}

#[test]
fn missing_and_invalid_configurations_are_reported() {
    let master = Master::new();
    fs::write(master.path("master"), format!("root_dir: {}\npki_dirr: x\n", master.path("").display())).unwrap();
    let directory = master.path("").display().to_string();
    assert_snapshot!(master.key("-l acc", "").replace(&directory, "ETC/"), @r"
    Accepted Keys:
    ! [WARNING ] ETC/master:2: unknown option 'pki_dirr': did you mean 'pki_dir'?
    ");
    fs::write(master.path("master"), "max_minions: many\n").unwrap();
    assert_snapshot!(master.key("-l acc", "").replace(&directory, "ETC/"), @r"
    ! salt-key: ETC/master:1: option 'max_minions': expected a non-negative integer, got 'many'
    ! More: brine docs option max_minions
    -> 1
    ");
    fs::write(master.path("file"), "").unwrap();
    fs::write(master.path("master"), format!("root_dir: {}/file\n", master.path("").display())).unwrap();
    assert!(master.key("-l acc", "").starts_with("! salt-key: cannot create "));
}

#[test]
fn deleting_and_rejecting_rotate_the_publish_key() {
    let master = Master::new();
    let cache = master.path("var/cache/salt/master");
    let file = cache.join(".dfn");
    fs::create_dir_all(&cache).unwrap();
    master.key("-y -a p1", "");
    master.key("-y -d zz", "");
    master.key("-y -d p1 --rotate-aes-key False", "");
    assert!(!file.exists());
    master.key("-y -d m1", "");
    assert!(file.exists());
    fs::remove_file(&file).unwrap();
    master.key("-y -r p2", "");
    assert!(file.exists());
}

#[test]
fn a_running_master_is_notified_by_events() {
    use brine_bus::SocketNames;
    use brine_event::Event;
    use brine_zmtp::{Limits, Listener, Pull};

    let master = Master::new();
    let sockets = master.path("var/run/salt/master");
    fs::create_dir_all(&sockets).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let listener = runtime.block_on(Listener::bind(&SocketNames::master().pull_endpoint(&sockets))).unwrap();
    let take = move |frames: Vec<bytes::Bytes>| {
        for frame in frames {
            let event = Event::from_frame(frame).unwrap();
            let mut data = event.data();
            if let Some(pem) = data.get_mut("pub") {
                *pem = pem.to_string().lines().next().unwrap().into();
            }
            // The operator is the user of the tests.
            let by = data.shift_remove("_by").unwrap().to_string();
            assert!(by.starts_with("salt-key of "), "{by}");
            sender.send(format!("{} {}", event.tag(), brine_value::Value::from(data))).unwrap();
        }
        std::future::ready(())
    };
    let shutdown = tokio_util::sync::CancellationToken::new();
    runtime.spawn(Pull::serve(listener, take, Limits::default(), shutdown));
    assert_snapshot!(master.key("-y -a p?", ""), @r"
    The following keys are going to be accepted:
    Unaccepted Keys:
    p1
    p2
    Key for minion p1 accepted.
    Key for minion p2 accepted.
    ");
    master.key("-y -d p1", "");
    let next = || receiver.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    assert_snapshot!([next(), next(), next()].join("\n"), @r"
    salt/key {'result': True, 'act': 'accepted', 'id': 'p1', 'pub': '-----BEGIN PUBLIC KEY-----'}
    salt/key {'result': True, 'act': 'accepted', 'id': 'p2', 'pub': '-----BEGIN PUBLIC KEY-----'}
    salt/key {'result': True, 'act': 'delete', 'id': 'p1'}
    ");
}

#[test]
fn unserved_event_socket_is_only_a_warning() {
    let master = Master::new();
    let sockets = master.path("var/run/salt/master");
    fs::create_dir_all(&sockets).unwrap();
    drop(std::os::unix::net::UnixListener::bind(sockets.join("master_event_pull.ipc")).unwrap());
    let report = master.key("-y -a p1", "");
    assert!(
        report.contains("Key for minion p1 accepted.\n! [WARNING ] notifying the master of the changed keys failed"),
        "{report}"
    );
}

#[test]
fn the_name_of_the_binary_selects_the_tool() {
    let directory = tempfile::tempdir().unwrap();
    let brine = env!("CARGO_BIN_EXE_brine");
    let links = format!("link {}", directory.path().display());
    let made = run(&mut Command::new(brine), &links, "");
    assert!(made.contains("/salt-key -> "), "{made}");
    assert_eq!(run(&mut Command::new(brine), &links, ""), "");
    let version = run(&mut Command::new(directory.path().join("salt-key")), "--version", "");
    assert_eq!(version, format!("salt-key {} (Brine)\n", brine_config::VERSION));
    assert_eq!(run(&mut Command::new(brine), "salt-key --version", ""), version);
    let unknown = run(&mut Command::new(brine), "nope", "");
    let start =
        "! Usage: brine <tool> [options]\n! \n! brine: error: no such tool: nope; choose one of salt, api, call, ";
    assert!(unknown.starts_with(start) && unknown.ends_with(", man\n-> 64\n"), "{unknown}");
    assert!(run(&mut Command::new(brine), "", "").starts_with("Usage: brine <tool> [options]\n"));

    let other: &Path = &directory.path().join("salt-key");
    fs::remove_file(other).unwrap();
    fs::write(other, "something else").unwrap();
    let report = run(&mut Command::new(brine), &links, "");
    assert!(report.ends_with("failed: the file exists; replace it with --force\n-> 1\n"), "{report}");
    run(&mut Command::new(brine), &format!("{links} --force"), "");
    assert!(fs::read_link(other).is_ok());
}
