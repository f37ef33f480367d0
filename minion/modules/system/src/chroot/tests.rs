use std::os::unix::fs::PermissionsExt;

use brine_value::{list, map};

use super::*;
use crate::testing::{answers, context};

#[test]
fn environments_are_created() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("a b/root");
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (path, below) = (root.display().to_string(), file.join("root").display().to_string());
    let answers = answers(
        &context(&[]),
        &[
            ("chroot.exist", list![path.as_str()], map! {}),
            ("chroot.create", list![path.as_str()], map! {}),
            ("chroot.exist", list![path.as_str()], map! {}),
            ("chroot.create", list![path.as_str()], map! {}),
            ("chroot.create", list![below.as_str()], map! {}),
            ("chroot.create", list!["/a\0b"], map! {}),
        ],
    );
    let results: Vec<&str> = answers.lines().map(|line| line.split_once(": ").unwrap().1).collect();
    assert_eq!(results, ["false", "true", "true", "true", "false", "false"]);
    let mode = |name: &str| root.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("proc") & 0o222, mode("sys") & 0o222, mode("dev") & 0o700), (0, 0, 0o700));
    // A part of the directories is completed.
    std::fs::remove_dir(root.join("sys")).unwrap();
    assert!(!is_environment(&root));
    create_environment(&root).unwrap();
    assert!(is_environment(&root));
}

#[test]
fn mounts_tell_a_chroot() {
    let directory = tempfile::tempdir().unwrap();
    assert!(!has_other_mounts(directory.path()));
    for (own, expected) in [("22 1 8:1 / / rw", false), ("22 1 8:1 /chroot / rw", true)] {
        for (process, mounts) in [("1", "22 1 8:1 / / rw"), ("self", own)] {
            std::fs::create_dir_all(directory.path().join(process)).unwrap();
            std::fs::write(directory.path().join(process).join("mountinfo"), mounts).unwrap();
        }
        assert_eq!(has_other_mounts(directory.path()), expected, "{own}");
    }
}
