//! Links at the paths of states, and slashes at their ends.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use brine_value::{Map, Value, map};

use super::run;

/// The kind, the mode and the owner of a path.
fn status(path: &Path) -> String {
    let Ok(status) = path.symlink_metadata() else { return "absent".to_owned() };
    let kind = if status.is_symlink() { "link" } else { "file" };
    let kind = if status.is_dir() { "directory" } else { kind };
    let mode = if status.is_symlink() { String::new() } else { format!(" {:o}", status.mode() & 0o7777) };
    format!("{kind}{mode} {}:{}", status.uid(), status.gid())
}

fn write(path: &Path, text: &str, (uid, gid): (u32, u32), mode: u32) {
    std::fs::write(path, text).unwrap();
    std::os::unix::fs::chown(path, Some(uid), Some(gid)).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

/// Replaces `F` by the directory.
pub(super) fn in_directory(arguments: &Map, directory: &Path) -> Map {
    let text = |value: &Value| match value.as_str() {
        Some(text) => text.replace("F/", &format!("{}/", directory.display())).into(),
        None => value.clone(),
    };
    arguments.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Salt's outcomes, as root.
#[test]
fn copies_follow_the_source_replace_the_destination_and_belong_to_the_minion() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    for (arguments, path, is) in [
        (map! {"name" => "F/o", "source" => "F/s"}, "o", "file 640 0:0"),
        (map! {"name" => "F/o", "source" => "F/s", "preserve" => true}, "o", "file 640 0:0"),
        (map! {"name" => "F/o", "source" => "F/s", "group" => "daemon"}, "o", "file 640 0:1"),
        (map! {"name" => "F/o", "source" => "F/to-s", "user" => "daemon", "mode" => "0600"}, "o", "file 600 1:1"),
        (map! {"name" => "F/o", "source" => "F/to-s", "user" => "daemon", "mode" => "0600"}, "s", "file 640 3:4"),
        (map! {"name" => "F/to-v", "source" => "F/s", "force" => true}, "to-v", "file 640 0:0"),
        (map! {"name" => "F/to-v", "source" => "F/s", "force" => true}, "v", "file 600 5:5"),
        (map! {"name" => "F/to-d", "source" => "F/s", "force" => true}, "to-d", "file 640 0:0"),
        (map! {"name" => "F/to-v", "source" => "F/d", "force" => true}, "to-v/sub/a", "file 604 0:0"),
        (map! {"name" => "F/o", "source" => "F/d"}, "o", "directory 750 0:0"),
        (map! {"name" => "F/o", "source" => "F/d"}, "o/sub/l", "link 0:0"),
        (map! {"name" => "F/o", "source" => "F/d", "user" => "daemon"}, "o", "directory 750 1:1"),
        (map! {"name" => "F/o", "source" => "F/d", "user" => "daemon"}, "o/sub", "directory 750 1:1"),
        (map! {"name" => "F/o", "source" => "F/d", "user" => "daemon"}, "o/sub/a", "file 604 1:1"),
        (map! {"name" => "F/o", "source" => "F/d", "preserve" => true}, "o", "directory 750 0:0"),
        (map! {"name" => "F/o", "source" => "F/d", "preserve" => true}, "o/sub/a", "file 604 3:4"),
        (map! {"name" => "F/n/o", "source" => "F/s", "makedirs" => true}, "n", "directory 750 0:0"),
        (map! {"name" => "F/n/o", "source" => "F/s", "makedirs" => true, "preserve" => true}, "n", "directory 750 3:4"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(&at("s"), "s", (3, 4), 0o640);
        write(&at("v"), "v", (5, 5), 0o600);
        for below in ["d", "d/sub"] {
            std::fs::create_dir(at(below)).unwrap();
            std::os::unix::fs::chown(at(below), Some(3), Some(4)).unwrap();
            std::fs::set_permissions(at(below), std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
        }
        write(&at("d/sub/a"), "a", (3, 4), 0o604);
        for (target, link) in [("s", "to-s"), ("v", "to-v"), ("d", "to-d"), ("a", "d/sub/l")] {
            symlink(target, at(link)).unwrap();
        }
        let outcome = run("file.copy", in_directory(&arguments, directory.path()), false);
        assert_eq!((outcome.0, status(&at(path))), (Some(true), is.to_owned()), "{arguments:?} {path}: {}", outcome.1);
    }
}

#[test]
fn a_link_that_is_not_followed_never_changes_its_target() {
    for (arguments, file, changes) in [
        (map! {"contents" => "x", "mode" => "0644"}, "file 644", map! {"mode" => "0644"}),
        (map! {"contents" => "x"}, "link", map! {}),
        (map! {"contents" => "y", "show_changes" => false}, "file 600", map! {"diff" => "<show_changes=False>"}),
        (map! {"replace" => false, "mode" => "0604"}, "link", map! {}),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("t"), "x\n").unwrap();
        std::fs::set_permissions(at("t"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        symlink("t", at("l")).unwrap();
        let mut all = map! {"name" => at("l").display().to_string(), "follow_symlinks" => false};
        all.extend(arguments.clone());
        let planned = run("file.managed", all.clone(), true);
        assert_eq!((planned.0, &planned.2), (changes.is_empty().then_some(true), &changes), "{arguments:?}");
        let outcome = run("file.managed", all.clone(), false);
        assert_eq!((outcome.0, outcome.2), (Some(true), changes), "{arguments:?}: {}", outcome.1);
        let is = status(&at("l"));
        assert!(is.starts_with(file), "{arguments:?}: {is}");
        assert_eq!(std::fs::read_to_string(at("t")).unwrap(), "x\n", "{arguments:?}");
        assert_eq!(at("t").metadata().unwrap().mode() & 0o777, 0o600, "{arguments:?}");
        assert_eq!(run("file.managed", all, false).2, Map::new(), "{arguments:?} again");
    }
}

#[test]
fn a_slash_at_the_end_never_makes_a_file() {
    for (function, arguments, comment) in [
        ("file.managed", map! {"contents" => "x"}, "Parent directory not present"),
        ("file.serialize", map! {"dataset" => map! {"a" => 1}, "serializer" => "json"}, "Parent directory not present"),
        ("file.touch", map! {}, "Directory not present to touch file F/x/"),
        ("file.symlink", map! {"target" => "F/s"}, "Directory F/x for symlink is not present"),
        ("file.hardlink", map! {"target" => "F/s"}, "Directory F/x for hard link is not present"),
        ("file.copy", map! {"source" => "F/s"}, "The target directory F/x is not present"),
        ("file.rename", map! {"source" => "F/s"}, "The target directory F/x is not present"),
        ("file.append", map! {"text" => "a"}, "F/x/: file not found"),
        ("file.prepend", map! {"text" => "a"}, "F/x/: file not found"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("s"), "s").unwrap();
        let mut all = map! {"name" => "F/x/"};
        all.extend(arguments);
        let outcome = run(function, in_directory(&all, directory.path()), false);
        let expected = comment.replace("F/", &format!("{}/", directory.path().display()));
        assert_eq!((outcome.0, outcome.1, outcome.2), (Some(false), expected, Map::new()), "{function}");
        assert_eq!(status(&directory.path().join("x")), "absent", "{function}");
    }
}
