use brine_value::map;

use super::*;

fn differ(fstype: &str, options: &[&str], active: &[&str]) -> String {
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let desired = Desired {
        name: "/x".into(),
        device: "/dev/x".into(),
        fstype: fstype.into(),
        mkmnt: false,
        opts: list(options),
        dump: 0.into(),
        pass: 0.into(),
        config: String::new(),
        persist: false,
        mount: true,
        user: None,
        match_on: Vec::new(),
        device_name_regex: Vec::new(),
        invisible: list(&["hidden"]),
        invisible_keys: list(&["secret"]),
        ignore_fs_keys: map! {"zfs" => "quota"},
        translate: map! {"ro" => "read-only"},
        bind_copy: true,
    };
    differing(&desired, &Mount { superopts: list(active), ..Mount::default() }).join(" ")
}

#[test]
fn options_differ_if_the_system_would_show_them() {
    for (fstype, options, active, expected) in [
        ("ext4", &["defaults", "noatime", "hidden", "secret=5", "nofail"][..], &["noatime"][..], ""),
        ("ext4", &["noatime", "nodev"], &["nodev"], "noatime"),
        ("ext4", &["ro", "uid=root"], &["rw", "uid=0"], "read-only"),
        ("nfs", &["tcp", "retry=5", "vers=4"], &["proto=tcp", "vers=3"], "vers=4"),
        ("tmpfs", &["size=1g", "mode=0755"], &["size=1048576k", "mode=755"], ""),
        ("tmpfs", &["size=2m"], &["size=1024k"], "size=2048k"),
        ("cifs", &["user=fred"], &["username=fred"], ""),
        ("ramfs", &["size=5m"], &["rw"], ""),
        ("zfs", &["quota=5", "size=1k"], &["rw"], "size=1k"),
    ] {
        assert_eq!(differ(fstype, options, active), expected, "{fstype} {options:?}");
    }
}
