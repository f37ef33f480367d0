//! Most rules are about root and another user, so these tests do nothing without root.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::os::unix::fs::{chown, lchown, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::unistd::geteuid;

use super::*;

/// The UID and GID of nobody.
const NOBODY: u32 = 65534;

/// A directory of nobody beside a file of root.
struct Beside {
    directory: tempfile::TempDir,
}

impl Beside {
    fn new() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let beside = Beside { directory };
        fs::create_dir(beside.at("home")).unwrap();
        chown(beside.at("home"), Some(NOBODY), Some(NOBODY)).unwrap();
        fs::create_dir(beside.at("root")).unwrap();
        fs::write(beside.at("root/victim"), "secret").unwrap();
        fs::set_permissions(beside.at("root/victim"), Permissions::from_mode(0o600)).unwrap();
        Some(beside)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Creates a file of nobody.
    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, text).unwrap();
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Creates a link of nobody.
    fn link(&self, target: impl AsRef<Path>, name: &str) -> PathBuf {
        let path = self.at(name);
        symlink(target, &path).unwrap();
        lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        path
    }

    fn assert_victim_is_unchanged(&self, label: &str) {
        let victim = self.at("root/victim");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "secret", "{label}");
        assert_eq!(attributes(&victim), (0, 0, 0o600), "{label}");
        let names: Vec<_> = fs::read_dir(self.at("root")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["victim"], "{label}");
    }
}

fn attributes(path: &Path) -> (u32, u32, u32) {
    let status = fs::symlink_metadata(path).unwrap();
    (status.uid(), status.gid(), status.mode() & 0o7777)
}

/// Every operation, on a path.
fn operations(path: &Path) -> Vec<(&'static str, io::Result<()>)> {
    let other = path.with_file_name("other");
    let now = SystemTime::now();
    vec![
        ("write", write(path, "x")),
        ("append", append(path, b"x")),
        ("append_bytes", append_bytes(path, b"x")),
        ("open_in_place", open_in_place(path).and_then(|mut file| file.write_all(b"x"))),
        ("create", create(path)),
        ("read", read(path).map(|_| ())),
        ("copy to", copy(&other, path)),
        ("copy from", copy(path, path.with_file_name("leaked"))),
        ("back_up from", back_up(path, path.with_file_name("leaked"))),
        ("set_mode", set_mode(path, 0o666, Links::Follow)),
        ("set_owner", set_owner(path, Some(NOBODY), None, Links::Follow)),
        ("set_times", set_times(path, now, now)),
        ("rewrite", crate::files::rewrite(path, b"x", 0o644).map_err(|error| error.source)),
    ]
}

#[test]
fn links_of_others_are_followed_only_to_what_they_own() {
    let Some(beside) = Beside::new() else { return };
    beside.file("home/other", "x", 0o644);
    for (target, name) in [
        (beside.at("root/victim"), "home/direct"),
        (PathBuf::from("../root/victim"), "home/relative"),
        (beside.at("root/new"), "home/dangling"),
    ] {
        let link = beside.link(target, name);
        for (operation, result) in operations(&link) {
            assert!(result.is_err(), "{operation} {name}");
            beside.assert_victim_is_unchanged(operation);
        }
    }
    beside.link("direct", "home/twice");
    beside.link(beside.at("root"), "home/directory");
    for path in ["home/twice", "home/directory/victim", "home/directory/new", "home/directory/../root/victim"] {
        for (operation, result) in operations(&beside.at(path)) {
            assert!(result.is_err(), "{operation} {path}");
            beside.assert_victim_is_unchanged(operation);
        }
    }
    assert!(!beside.at("home/leaked").exists());
    let below = beside.at("home/directory/victim");
    for (operation, result) in [
        ("remove_file", remove_file(&below)),
        ("remove_dir_all", remove_dir_all(&below)),
        ("rename from", rename(&below, beside.at("home/x"))),
        ("rename to", rename(beside.at("home/other"), &below)),
        ("hard_link", hard_link(&below, beside.at("home/x"))),
        ("symlink", symlink_in(&below)),
        ("replace_symlink", replace_symlink("x", &below)),
        ("replace_hard_link", replace_hard_link(beside.at("home/other"), &below)),
        ("make_node", make_node(beside.at("home/directory/p"), SFlag::S_IFIFO, 0o600, 0)),
        ("create_dir", create_dir(beside.at("home/directory/new"), 0o777)),
        ("create_dir_all", create_dir_all(beside.at("home/directory/a/b"))),
        ("back_up", back_up(beside.at("home/other"), &below)),
        ("write_atomic", crate::files::write_atomic(&below, b"x", 0o600).map_err(|error| error.source)),
        (
            "write_new",
            crate::files::write_new(beside.at("home/directory/n"), b"x", 0o600)
                .map(|_| ())
                .map_err(|error| error.source),
        ),
    ] {
        assert!(result.is_err(), "{operation}");
        beside.assert_victim_is_unchanged(operation);
    }
    let error = write(beside.at("home/direct"), "x").unwrap_err().to_string();
    assert!(error.contains("home/direct of user 65534 leads to a file or directory of user 0"), "{error}");
}

fn symlink_in(path: &Path) -> io::Result<()> {
    symlink_entry(Path::new("x"), &keep(&path.with_file_name("l"))?)
}

#[test]
fn links_to_own_files_and_links_of_root_are_followed() {
    let Some(beside) = Beside::new() else { return };
    let real = beside.file("home/real", "a", 0o640);
    let link = beside.link("real", "home/link");
    write(&link, "b").unwrap();
    assert_eq!((fs::read_to_string(&real).unwrap().as_str(), attributes(&real)), ("b", (NOBODY, NOBODY, 0o640)));
    assert!(link.is_symlink());
    beside.link("new", "home/dangling");
    write(beside.at("home/dangling"), "c").unwrap();
    assert_eq!(fs::read_to_string(beside.at("home/new")).unwrap(), "c");
    symlink(beside.at("root/victim"), beside.at("home/of_root")).unwrap();
    append(beside.at("home/of_root"), b"more\n").unwrap();
    assert_eq!(fs::read_to_string(beside.at("root/victim")).unwrap(), "secret\nmore\n");
    symlink("loop", beside.at("home/loop")).unwrap();
    assert_eq!(write(beside.at("home/loop"), "").unwrap_err().raw_os_error(), Some(Errno::ELOOP as i32));
}

#[test]
fn files_with_planted_names_are_not_changed_in_place() {
    let Some(beside) = Beside::new() else { return };
    beside.file("home/other", "x", 0o644);
    fs::create_dir(beside.at("shared")).unwrap();
    fs::set_permissions(beside.at("shared"), Permissions::from_mode(0o1777)).unwrap();
    for name in ["home/hard", "shared/hard"] {
        let path = beside.at(name);
        fs::hard_link(beside.at("root/victim"), &path).unwrap();
        for (operation, result) in [
            ("append", append(&path, b"x")),
            ("read", read(&path).map(|_| ())),
            ("copy", copy(&path, beside.at("home/leaked"))),
            ("append_bytes", append_bytes(&path, b"x")),
            ("open_in_place", open_in_place(&path).map(|_| ())),
            ("set_mode", set_mode(&path, 0o666, Links::Follow)),
            ("set_owner", set_owner(&path, Some(NOBODY), None, Links::Follow)),
            ("set_owner of a link", set_owner(&path, Some(NOBODY), None, Links::Keep)),
        ] {
            assert!(result.unwrap_err().to_string().contains("one of several names"), "{operation}");
            beside.assert_victim_is_unchanged(operation);
        }
        // A replacement has an inode of its own.
        write(&path, "new").unwrap();
        beside.assert_victim_is_unchanged("write");
    }
    // What a user owns has as many names as the user wants, and so has what root owns in directories of root.
    let own = beside.file("home/own", "x", 0o600);
    fs::hard_link(&own, beside.at("home/own2")).unwrap();
    set_mode(&own, 0o640, Links::Follow).unwrap();
    fs::create_dir(beside.at("closed")).unwrap();
    fs::hard_link(beside.at("root/victim"), beside.at("closed/hard")).unwrap();
    append(beside.at("closed/hard"), b"x").unwrap();
}

#[test]
fn owner_and_mode_are_kept_and_never_wider_meanwhile() {
    let Some(beside) = Beside::new() else { return };
    let path = beside.file("home/program", "a", 0o4755);
    let is_done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = std::collections::BTreeSet::new();
            while !is_done.load(Ordering::Relaxed) {
                seen.insert(attributes(&path));
            }
            seen
        });
        for number in 0..50 {
            write(&path, number.to_string()).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(NOBODY, NOBODY, 0o4755)]);
    // The bits go where the owner changes, and where the file may have been exchanged for one of root.
    let entry = || Entry::resolve(&path, Links::Follow).unwrap();
    let to_root = Attributes { uid: Some(0), ..Attributes::default() };
    write_with(entry(), b"b", to_root, 0o644, Flush::Later).unwrap();
    assert_eq!(attributes(&path), (0, NOBODY, 0o755));
    fs::set_permissions(&path, Permissions::from_mode(0o4755)).unwrap();
    write(&path, "c").unwrap();
    assert_eq!(attributes(&path), (0, NOBODY, 0o755));
}

#[test]
fn backups_replace_links_and_lose_setuid() {
    let Some(beside) = Beside::new() else { return };
    let path = beside.file("home/program", "a", 0o4755);
    let backup = beside.link(beside.at("root/victim"), "home/program.bak");
    back_up(&path, &backup).unwrap();
    beside.assert_victim_is_unchanged("back_up");
    assert_eq!((fs::read_to_string(&backup).unwrap().as_str(), attributes(&backup)), ("a", (NOBODY, NOBODY, 0o755)));
    copy(&path, beside.at("home/copy")).unwrap();
    assert_eq!(attributes(&beside.at("home/copy")), (NOBODY, NOBODY, 0o4755));
}

#[test]
fn pipes_and_sockets_do_not_block() {
    let Some(beside) = Beside::new() else { return };
    let pipe = beside.at("home/pipe");
    make_node(&pipe, SFlag::S_IFIFO, 0o666, 0).unwrap();
    for (operation, result) in operations(&pipe) {
        let is_harmless = ["create", "read", "set_mode", "set_owner", "set_times"].contains(&operation);
        assert!(is_harmless || result.is_err() || operation == "copy to", "{operation}");
    }
    write("/dev/null", "x").unwrap();
}

#[test]
fn created_directories_have_owner_and_mode() {
    let Some(beside) = Beside::new() else { return };
    let expected = Attributes { uid: Some(NOBODY), gid: Some(NOBODY), mode: Some(0o710) };
    let created = create_dir_all_with(beside.at("home/a/b"), expected).unwrap();
    assert_eq!(created, [beside.at("home/a"), beside.at("home/a/b")].map(|path| path.canonicalize().unwrap()));
    for path in created {
        assert_eq!(attributes(&path), (NOBODY, NOBODY, 0o710));
    }
    assert!(create_dir_all_with(beside.at("home/a/b"), expected).unwrap().is_empty());
    beside.file("home/file", "", 0o600);
    assert_eq!(create_dir_all_with(beside.at("home/file"), expected).unwrap_err().kind(), ErrorKind::AlreadyExists);
    remove_dir_all(beside.at("home/a")).unwrap();
    assert!(!beside.at("home/a").exists());
}

/// Another user exchanges the entry for links and directories all the time; root's file is never read or changed.
#[test]
fn races_redirect_nothing() {
    let Some(beside) = Beside::new() else { return };
    beside.file("home/other", "x", 0o644);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (name, spare) = (beside.at("home/d"), beside.at("home/spare"));
            let mut round = 0;
            while !is_done.load(Ordering::Relaxed) {
                round += 1;
                _ = fs::remove_dir_all(&spare);
                _ = fs::remove_file(&spare);
                match round % 3 {
                    0 => {
                        fs::create_dir(&spare).unwrap();
                        _ = chown(&spare, Some(NOBODY), Some(NOBODY));
                        fs::write(spare.join("victim"), "own").unwrap();
                        _ = chown(spare.join("victim"), Some(NOBODY), Some(NOBODY));
                    }
                    1 => _ = beside.link(beside.at("root"), "home/spare"),
                    _ => _ = beside.link("../root", "home/spare"),
                }
                _ = fs::remove_dir_all(&name);
                _ = fs::remove_file(&name);
                _ = fs::rename(&spare, &name);
            }
        });
        for _ in 0..300 {
            let path = beside.at("home/d/victim");
            for (operation, result) in operations(&path) {
                if operation == "read" && result.is_ok() {
                    assert_ne!(read(&path).unwrap_or_default(), b"secret");
                }
            }
            _ = remove_file(&path);
            _ = rename(beside.at("home/other"), beside.at("home/d/new"));
            _ = create_dir_all_with(beside.at("home/d/a/b"), Attributes::mode(0o777));
            _ = remove_dir_all(&path);
            beside.assert_victim_is_unchanged("race");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(!fs::read(beside.at("home/leaked")).is_ok_and(|leaked| leaked == b"secret"));
}

const WRITER: &str = "BRINE_TEST_WRITER";

/// Rewrites a file until it is killed; only as a child of the next test.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let texts = ["old".repeat(40_000), "new".repeat(50_000)];
    println!("started");
    for text in texts.iter().cycle() {
        write(&path, text).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_file_with_its_owner_and_mode() {
    let Some(beside) = Beside::new() else { return };
    let path = beside.file("home/file", &"old".repeat(40_000), 0o4751);
    for round in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "user_files::tests::writer", "--nocapture"])
            .env(WRITER, &path)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("started") {
            line.clear();
            assert_ne!(io::BufRead::read_line(&mut out, &mut line).unwrap(), 0);
        }
        // Another moment each time.
        for _ in 0..round * 50 {
            _ = fs::metadata(&path);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text == "old".repeat(40_000) || text == "new".repeat(50_000), "{}", text.len());
        assert_eq!(attributes(&path), (NOBODY, NOBODY, 0o4751));
    }
}

#[test]
fn long_names_are_written() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["n".repeat(255), "é".repeat(127), "n".repeat(234)] {
        let path = directory.path().join(&name);
        write(&path, "a").unwrap();
        write(&path, "b").unwrap();
        crate::files::write_atomic(&path, b"c", 0o600).unwrap();
        crate::files::rewrite(&path, b"d", 0o600).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "d");
        replace_symlink("x", &path).unwrap();
        assert!(path.is_symlink());
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
    let name = temporary_name("é".repeat(127).as_ref(), ".0123456789abcdef.tmp");
    assert!(name.len() <= 255 && name.to_str().is_some());
}

#[test]
fn paths_are_trusted_that_only_root_can_exchange() {
    let Some(beside) = Beside::new() else { return };
    let (home, own, open, sticky) = (beside.at("home"), beside.at("root"), beside.at("open"), beside.at("sticky"));
    for (directory, mode) in [(&open, 0o777), (&sticky, 0o1777)] {
        fs::create_dir(directory).unwrap();
        fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
    }
    fs::write(sticky.join("own"), "x").unwrap();
    fs::create_dir(sticky.join("directory")).unwrap();
    fs::hard_link(own.join("victim"), sticky.join("twice")).unwrap();
    fs::write(own.join("single"), "x").unwrap();
    beside.file("sticky/other", "x", 0o644);
    beside.file("root/other", "x", 0o666);
    beside.link(own.join("single"), "home/link");
    symlink(&home, own.join("to-home")).unwrap();
    symlink("../root", own.join("to-root")).unwrap();
    symlink("loop", own.join("loop")).unwrap();
    fs::create_dir(home.join("of-root")).unwrap();
    for (path, expected) in [
        (own.join("single"), true),
        (own.join("other"), true),
        (own.join("new"), true),
        (own.join("new/below"), true),
        (own.join("to-root/single"), true),
        (own.join("to-home/../root/single"), false),
        (own.join("to-home/file"), false),
        (home.join("new"), false),
        (home.join("link"), false),
        (home.join("of-root/new"), false),
        (home.clone(), false),
        (open.join("new"), false),
        (sticky.clone(), false),
        (sticky.join("new"), false),
        (sticky.join("own"), true),
        (sticky.join("directory/new"), true),
        (sticky.join("other"), false),
        (sticky.join("twice"), false),
    ] {
        assert_eq!(is_trusted(&path).unwrap(), expected, "{}", path.display());
    }
    for (path, expected, exists) in [
        (sticky.join("claimed"), true, true),
        (sticky.join("other"), false, true),
        (home.join("new"), false, false),
        (open.join("new"), false, false),
        (own.join("new"), true, false),
    ] {
        assert_eq!((claim(&path).unwrap(), path.exists()), (expected, exists), "{}", path.display());
    }
    assert!(is_trusted(own.join("loop")).is_err() && is_trusted("relative").is_err());
}

#[test]
fn files_are_written_from_readers_in_the_place_of_regular_files_alone() {
    let Some(beside) = Beside::new() else { return };
    let file = beside.file("home/f", "old", 0o640);
    write_from(&file, &mut &b"new"[..], Attributes::default(), 0o600).unwrap();
    let status = fs::metadata(&file).unwrap();
    assert_eq!((status.uid(), status.mode() & 0o7777), (NOBODY, 0o640));
    write_from(beside.at("home/new"), &mut &b"new"[..], Attributes::default(), 0o600).unwrap();
    let status = fs::metadata(beside.at("home/new")).unwrap();
    assert_eq!((status.uid(), status.mode() & 0o7777), (0, 0o600));
    beside.link(beside.at("root/victim"), "home/link");
    for name in ["home/link", "home"] {
        assert!(write_from(beside.at(name), &mut &b"new"[..], Attributes::default(), 0o600).is_err(), "{name}");
    }
    beside.assert_victim_is_unchanged("write_from");
}
