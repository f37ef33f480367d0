//! `brine doctor` run by root gives nothing to other users, and bundles have no secrets.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::doctor::{NOBODY, chmod, chown, field, is_root, remove, report, run, with_roots};
use crate::support::{BRINE, System, stderr, stdout, within_limit};

#[tokio::test(flavor = "multi_thread")]
async fn others_gain_nothing_from_the_doctor_of_root() {
    if !is_root() {
        eprintln!("left out: only root can change its user");
        return;
    }
    let mut system = with_roots(System::start("").await);
    chmod(&system.path(""), 0o755);
    let etc = system.path("etc");
    system.start_minion("m1").await;
    // Another user sees what it may see, says what it could not see, and mends nothing.
    let mut command = within_limit(BRINE);
    command.args(["doctor", "--json", "--fix", "-c"]).arg(&etc).uid(NOBODY).gid(NOBODY);
    chmod(&system.path("pki/master.pub"), 0o666);
    let output = command.output().unwrap();
    let seen = brine_value::json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let kinds = field(&seen, "kind");
    assert!(kinds.iter().all(|kind| kind == "not-seen"), "{seen}");
    assert!(kinds.len() > 2, "{seen}");
    chmod(&system.path("pki/master.pub"), 0o644);

    // A process of another user that looks like the daemon does not make that user the owner of the files.
    system.stop_minion("m1");
    system.stop_master();
    let fake = system.path("salt-master");
    fs::copy("/bin/sleep", &fake).unwrap();
    chmod(&fake, 0o755);
    let mut command = std::process::Command::new("/bin/bash");
    command
        .arg("-c")
        .arg(format!("exec -a '{} -c {}' sleep 60", fake.display(), etc.display()))
        .uid(NOBODY)
        .gid(NOBODY);
    let mut process = command.spawn().unwrap();
    let (fixed, _) = report(&etc, &["--fix"]);
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(field(&fixed, "kind")[0], "daemon-down", "{fixed}");
    assert_eq!(fs::metadata(system.path("pki")).unwrap().uid(), 0);

    // A configuration that another user can change is none for mends and bundles of root.
    let bundle = system.path("bundle.tar.gz");
    let bundle = bundle.to_str().unwrap();
    chown(&etc, NOBODY);
    chmod(&system.path("pki"), 0o755);
    for words in [&["--fix"][..], &["--bundle", bundle]] {
        let output = run(&etc, words);
        assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
        assert!(stderr(&output).contains("another user can change"), "{}", stderr(&output));
    }
    assert!(!Path::new(bundle).exists());
    assert_eq!(fs::metadata(system.path("pki")).unwrap().mode() & 0o777, 0o755);
    chown(&etc, 0);

    // A link in the place of a key leads a mend of root to no other file.
    let secret = system.write("secret", "x");
    chmod(&secret, 0o644);
    remove(&system, "pki/master.pub");
    symlink(&secret, system.path("pki/master.pub")).unwrap();
    chown(&system.path("pki/master.pub"), NOBODY);
    chown(&system.path("pki"), NOBODY);
    chmod(&system.path("pki/minions/m1"), 0o666);
    run(&etc, &["--fix"]);
    let status = fs::metadata(&secret).unwrap();
    assert_eq!((status.uid(), status.mode() & 0o777), (0, 0o644));
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_have_no_secrets_and_replace_nothing() {
    let mut system = with_roots(System::new(
        "key_pass: 'hidden-1'\nmysql.pass: hidden-2\next_pillar: [{cmd_yaml: 'x --token=hidden-3'}]\n",
    ));
    system.start_master().await;
    let etc = system.path("etc");
    let bundle = system.path("bundle.tar.gz");
    let name = bundle.to_str().unwrap();
    // What a minion can bring into a log is neither a secret nor a sequence for the terminal.
    let log = system.path("var/log/salt/master");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, "[ERROR   ] \x1b]0;title\x07 password=hidden-4\n-----BEGIN RSA PRIVATE KEY-----\nhidden-5\n-----END RSA PRIVATE KEY-----\n")
        .unwrap();
    let output = run(&etc, &["--bundle", name]);
    assert!(stdout(&output).contains("read it before you send it"), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(fs::metadata(&bundle).unwrap().mode() & 0o777, 0o600);
    let unpacked = std::process::Command::new("tar").args(["-xzf", name, "-C"]).arg(system.path("")).output().unwrap();
    assert!(unpacked.status.success(), "{unpacked:?}");
    let names: Vec<String> =
        ["versions.txt", "findings.json", "metrics.json", "master.json", "master-files.txt", "master.log"]
            .map(|name| {
                fs::read_to_string(system.path(&format!("brine-doctor/{name}"))).unwrap_or_else(|_| panic!("{name}"))
            })
            .into();
    let all = names.concat();
    let key = fs::read_to_string(system.path("cache/.root_key")).unwrap();
    assert!(!all.contains("hidden-") && !all.contains("BEGIN") && !all.contains(key.trim()), "{all}");
    assert!(all.contains("ret_port") && all.contains("brine_store_bytes"), "{all}");
    // A second one does not replace the first, or what a link names.
    let again = run(&etc, &["--bundle", name]);
    assert!(!again.status.success() && stderr(&again).contains("exists"), "{}", stderr(&again));
    let link = system.path("link.tar.gz");
    symlink(system.path("elsewhere"), &link).unwrap();
    assert!(!run(&etc, &["--bundle", link.to_str().unwrap()]).status.success());
    assert!(!system.path("elsewhere").exists());
    // The last error of a daemon that is down is shown, without its control characters.
    system.stop_master();
    fs::write(&log, "[ERROR   ] \x1b]0;title\x07 \u{202e}x\n").unwrap();
    let text = stdout(&run(&etc, &[]));
    assert!(text.contains("its last error: [ERROR   ] "), "{text}");
    assert!(!text.contains(['\x1b', '\u{202e}', '\x07']), "{text:?}");
}
