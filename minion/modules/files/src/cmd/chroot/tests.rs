use brine_value::map;

use super::*;
use crate::testing::{Scripted, context_with};

#[test]
fn the_command_is_one_argument_of_the_shell() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    assert_eq!(words(root, "echo 'a b'; id", None, None).unwrap(), ["chroot", root, "/bin/sh", "-c", "echo 'a b'; id"]);
    std::fs::create_dir(directory.path().join("bin")).unwrap();
    std::fs::write(directory.path().join("bin/bash"), "").unwrap();
    let as_user = words(root, "id", Some("ada"), Some("staff")).unwrap();
    assert_eq!(as_user, ["chroot", "--userspec=ada:staff", root, "/bin/bash", "-c", "id"]);
    assert!(words("-x", "id", None, None).is_err());
}

#[test]
fn only_what_was_mounted_is_unmounted() {
    let programs = Scripted::new(
        "
            $ mount -t devtmpfs devtmpfs /r/dev
            $ mount -t proc proc /r/proc
            ! mount: /r/proc: proc already mounted on /r/proc.
            = 32
            $ mount -t sysfs sysfs /r/sys
            $ mount --bind /srv/x /r/srv/x
            $ umount /r/srv/x
            $ umount /r/sys
            ! umount: /r/sys: target is busy.
            = 32
            $ umount /r/dev
            ",
    );
    let context = context_with(map! {}, programs.clone());
    Mounted::all(&context, Path::new("/r"), &["/srv/x".to_owned()]).unwrap().unmount(&context);
    let ran = programs.ran();
    let unmounted: Vec<&str> = ran.lines().filter(|line| line.starts_with("umount")).collect();
    assert_eq!(unmounted, ["umount /r/srv/x", "umount /r/sys", "umount /r/dev"]);
}

#[test]
fn processes_of_the_host_root_are_not_terminated() {
    assert!(processes_in(Path::new("/")).is_empty());
    let arguments = brine_function::Args::positional(["/no/such".into(), "id".into()]);
    let answer = crate::testing::context(&[]).call("cmd.run_chroot", arguments).unwrap();
    assert_eq!(answer.get("retcode"), Some(&125.into()));
    assert!(answer.get("stderr").unwrap().to_string().contains("'/no/such'"), "{answer}");
}
