use super::*;
use crate::testing::{Scripted, applied, context_with};

#[test]
fn only_changed_attributes_are_reported() {
    let dump = |ro: u8, ra: u32| {
        let flags = "--getro --getsz --getss --getpbsz --getiomin --getioopt --getalignoff --getmaxsect --getsize --getsize64 --getra --getfra";
        let lines = [ro.into(), 1, 1, 1, 1, 1, 1, 1, 1, 1, ra, 7].map(|number: u32| format!("| {number}\n")).concat();
        format!("$ blockdev {flags} /dev/d\n{lines}")
    };
    for (options, flags, after, comment, changes) in [
        (
            map! {"read-ahead" => 1024},
            "--setra 1024",
            dump(1, 1024),
            "Block device /dev/d successfully modified ",
            map! {"read-ahead" => "Changed from 256 to 1024"},
        ),
        (
            map! {"read-ahead" => 256},
            "--setra 256",
            dump(1, 256),
            "Block device /dev/d already in correct state",
            map! {},
        ),
        (
            map! {"read-write" => true},
            "--setrw",
            dump(0, 256),
            "Block device /dev/d successfully modified ",
            map! {"read-write" => "Changed from False to True"},
        ),
        (map! {"read-only" => true}, "--setro", dump(1, 256), "Block device /dev/d already in correct state", map! {}),
    ] {
        let transcript = format!("{}{after}$ blockdev {flags} /dev/d\n", dump(1, 256));
        let context = brine_testing::state_context(false, context_with(map! {}, Scripted::new(&transcript)));
        let report = tuned_device(&context, "/dev/d", options).unwrap();
        assert_eq!((report.result, &*report.comment, report.changes), (Some(true), comment, changes));
    }
    let report = applied("blockdev.tuned", map! {"name" => "/etc/hostname"}, false, "");
    assert_eq!(report.comment, "Changes to /etc/hostname cannot be applied. Not a block device.");
}

#[test]
fn file_systems_are_created_where_they_are_missing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    for (name, test, transcript, result, comment, last) in [
        ("/none", false, "", Some(false), "/none does not exist", ""),
        (
            &path,
            false,
            "$ blkid -o value -s TYPE PATH\n| ext4",
            Some(true),
            "PATH already formatted with ext4",
            "blkid -o value -s TYPE PATH",
        ),
        (
            &path,
            false,
            "$ blkid -o value -s TYPE PATH\n= 2",
            Some(false),
            "Invalid fs_type: ext4",
            "blkid -o value -s TYPE PATH",
        ),
        (
            &path,
            true,
            "$ blkid -o value -s TYPE PATH\n= 2\n$ mkfs.ext4",
            None,
            "Changes to PATH will be applied ",
            "blkid -o value -s TYPE PATH",
        ),
        (
            &path,
            false,
            "$ blkid -o value -s TYPE PATH\n| xfs\n$ blkid -o value -s TYPE PATH\n| ext4\n$ mkfs.ext4\n$ mkfs -t ext4 -i 512 PATH\n$ sync",
            Some(true),
            "PATH has been formatted with ext4",
            "blkid -o value -s TYPE PATH",
        ),
        (
            &path,
            false,
            "$ blkid -o value -s TYPE PATH\n= 2\n$ mkfs.ext4\n$ mkfs -t ext4 -i 512 PATH\n= 1\n$ sync",
            Some(false),
            "Failed to format PATH",
            "blkid -o value -s TYPE PATH",
        ),
    ] {
        let keyword = map! {"name" => name, "inode_size" => 512};
        let report = applied("blockdev.formatted", keyword, test, &transcript.replace("PATH", &path));
        assert_eq!((report.result, report.comment), (result, comment.replace("PATH", &path)));
        assert_eq!(report.ran.lines().last().unwrap_or_default(), last.replace("PATH", &path));
        let changed = report.changes.get("old").map(ToString::to_string);
        assert_eq!(changed, (comment.contains("has been")).then(|| "xfs".to_owned()));
    }
}
