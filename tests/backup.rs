//! `brine backup` of a running and of a stopped master, and `brine restore`: minions come back with the keys they have.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::support::{System, stderr, stdout};

/// Runs `brine backup` for a system.
fn backup(system: &System, words: &[&str]) -> Output {
    system.tool("backup", words)
}

fn restore(words: &[&str]) -> Output {
    System::command("restore", words)
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_return_to_a_restored_master() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    system.write("etc/master.d/site.conf", "keep_jobs_seconds: 1234\n");
    system.write("srv/salt/hello.sls", "hello: test.nop\n");
    let job = stdout(&system.tool_async("salt", &["--async", "web1", "test.ping"]).await);
    let jid = job.split_whitespace().last().unwrap().to_owned();
    let mut events = system.events("site/").await;
    let ended = |system: &System| stdout(&system.tool("salt-run", &["jobs.lookup_jid", &jid])).contains("True");
    support::until("the job is in the job cache", || ended(&system)).await;

    // Events arrive while the snapshot is made: those that were acknowledged before it are in it.
    let before = stdout(&system.tool_async("salt-run", &["event.send", "site/before", "{n: 1}"]).await);
    assert_eq!(before.trim(), "True");
    let path = system.path("backup.tar.gz").display().to_string();
    let etc = system.etc();
    let writer = std::thread::spawn(move || {
        for _ in 0..5 {
            System::command("salt-run", &["-c", &etc, "event.send", "site/meanwhile"]);
        }
    });
    let made = backup(&system, &["--roots", &path]);
    assert!(made.status.success(), "{}", stderr(&made));
    writer.join().unwrap();
    events.until("site/meanwhile").await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!system.path("cache/backup.redb").exists(), "the snapshot is still there");
    assert!(stderr(&backup(&system, &[&path])).contains("exists: choose another name"));

    let running = restore(&[&path]);
    assert!(!running.status.success());
    assert!(stderr(&running).contains("in use by another process"), "{}", stderr(&running));
    system.stop_master();
    let replaced = restore(&[&path]);
    assert!(stderr(&replaced).contains("would be replaced"), "{}", stderr(&replaced));

    // The disk is lost.
    for directory in ["pki", "cache", "etc", "srv"] {
        std::fs::remove_dir_all(system.path(directory)).unwrap();
    }
    let restored = restore(&[&path]);
    assert!(restored.status.success(), "{}", stderr(&restored));
    assert!(system.path("srv/salt/hello.sls").exists());
    assert!(system.path("etc/master.d/site.conf").exists());
    assert_eq!(std::fs::metadata(system.path("pki/master.pem")).unwrap().permissions().mode() & 0o777, 0o400);
    let leftover = std::fs::read_dir(system.path("")).unwrap();
    let leftover: Vec<_> =
        leftover.flatten().filter(|entry| entry.path().to_string_lossy().contains("restor")).collect();
    assert!(leftover.is_empty(), "{leftover:?}");

    system.start_master().await;
    let pinged = || stdout(&system.tool("salt", &["-t", "5", "web1", "test.ping"])).contains("True");
    support::until("web1 is back", pinged).await;
    assert!(ended(&system), "the job cache is restored");
    let journal = stdout(&system.tool("salt-run", &["--out=json", "event_bus.since", "1", "limit=10000"]));
    assert!(journal.contains("site/before"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_stopped_master_is_complete() {
    let mut system = System::start("").await;
    let sent = stdout(&system.tool_async("salt-run", &["event.send", "site/before"]).await);
    assert_eq!(sent.trim(), "True");
    system.stop_master();
    let path = system.path("backup.tar.gz").display().to_string();
    let made = backup(&system, &[&path]);
    assert!(made.status.success(), "{}", stderr(&made));
    let listed = stdout(&restore(&["--list", &path]));
    for name in ["etc/master", "pki", "cache/brine.redb"] {
        assert!(listed.contains(&system.path(name).display().to_string()), "{listed}");
    }

    // What is there keeps another name.
    let forced = restore(&["--force", &path]);
    assert!(forced.status.success(), "{}", stderr(&forced));
    let names = std::fs::read_dir(system.path("")).unwrap().flatten();
    assert!(names.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("pki.before-restore-")));
    system.start_master().await;
    let journal = stdout(&system.tool("salt-run", &["--out=json", "event_bus.since", "1", "limit=10000"]));
    assert!(journal.contains("site/before"));
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_and_foreign_archives_restore_nothing() {
    let mut system = System::start("").await;
    system.stop_master();
    let path = system.path("backup.tar.gz").display().to_string();
    let made = backup(&system, &[&path]);
    assert!(made.status.success(), "{}", stderr(&made));
    let whole = std::fs::read(&path).unwrap();

    let root = tempfile::tempdir().unwrap();
    let into = root.path().display().to_string();
    let damaged = system.path("damaged.tar.gz");
    let damaged = damaged.to_str().unwrap();
    for size in [0, 1, 100, whole.len() / 2, whole.len() - 9] {
        std::fs::write(damaged, &whole[..size]).unwrap();
        let tried = restore(&["--root", &into, damaged]);
        assert!(!tried.status.success(), "{size} of {} bytes", whole.len());
    }
    // Members that the manifest does not name, or that are neither files nor directories.
    for (name, kind, expected) in [
        ("files/etc/passwd", tar::EntryType::Regular, "the backup is damaged: it has the file"),
        ("files/etc/salt/pki/../../passwd", tar::EntryType::Regular, "the backup is damaged: it has the file"),
        ("files/etc/salt/pki/link", tar::EntryType::Symlink, "neither a file nor a directory"),
    ] {
        std::fs::write(damaged, forged(name, kind)).unwrap();
        let tried = restore(&["--root", &into, damaged]);
        assert!(stderr(&tried).contains(expected), "{name}: {}", stderr(&tried));
    }
    let made = walk(root.path());
    assert!(made.is_empty(), "{made:?}");
}

/// Returns an archive whose second member is this one.
fn forged(name: &str, kind: tar::EntryType) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(gzip);
    let manifest =
        br#"{"format": 1, "version": "1", "time": "", "host": "", "store": "/var/x.redb", "units": ["/etc/salt/pki"]}"#;
    let mut header = tar::Header::new_gnu();
    header.set_size(manifest.len() as u64);
    archive.append_data(&mut header, "brine-backup.json", &manifest[..]).unwrap();
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(u64::from(kind == tar::EntryType::Regular));
    if kind == tar::EntryType::Symlink {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    let content: &[u8] = if kind == tar::EntryType::Regular { b"x" } else { b"" };
    archive.append(&header, content).unwrap();
    archive.into_inner().unwrap().finish().unwrap()
}

/// Returns the files below a directory.
fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        if entry.path().is_dir() { files.extend(walk(&entry.path())) } else { files.push(entry.path()) }
    }
    files
}
