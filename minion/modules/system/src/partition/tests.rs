//! Transcripts of parted 3.5, util-linux 2.38 and e2fsprogs 1.47, with the disks of User-Mode Linux 6.1.

use brine_value::{list, map};

use crate::testing::{Scripted, answers, context_with};

#[test]
fn partitions_are_listed_and_checked() {
    let programs = Scripted::new(
        "
        $ parted -m -s /dev/ubda print
        | BYT;
        | /dev/ubda:67.1MB:ubd:512:512:gpt:User-Mode Linux UBD:pmbr_boot;
        | 1:1049kB:21.0MB:19.9MB:ext4:My Documents:hp-service;
        | 2:21.0MB:41.9MB:21.0MB::primary:swap;
        $ parted -m -s /dev/ubda unit chs print
        | CHS;
        | /dev/ubda:257,0,1:ubd:512:512:gpt:User-Mode Linux UBD:;
        | 257:255:2:261kB;
        | 1:4,4,0:80,79,1::My Documents:;
        $ parted -m -s /dev/ubdb print
        | BYT;
        | /dev/ubdb:67.1MB:ubd:512:512:unknown:User-Mode Linux UBD:;
        ! Error: /dev/ubdb: unrecognised disk label
        = 1
        $ parted -m /dev/ubda align-check optimal 1
        | 1 aligned
        $ parted -m /dev/ubda align-check minimal 7
        ! Error: Partition doesn't exist.
        = 1
        $ sfdisk --part-type /dev/ubda 1
        | E2A1E728-32E3-11D6-A682-7B03A0000000
        $ sfdisk -T
        | Id  Name
        |
        |  0  Empty
        | 82  Linux swap / Solaris
        | 83  Linux
        $ lsblk -n -io KNAME -d -e 1,7,11 -l
        | ubda
        | ubdb
        ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("partition.list", list!["/dev/ubda"], map! {}),
        ("partition.list", list!["/dev/ubda"], map! {"unit" => "chs"}),
        ("partition.list", list!["/dev/ubdb"], map! {}),
        ("partition.align_check", list!["/dev/ubda", "optimal", 1], map! {}),
        ("partition.align_check", list!["/dev/ubda", "minimal", "7"], map! {}),
        ("partition.get_id", list!["/dev/ubda", 1], map! {}),
        ("partition.system_types", list![], map! {}),
        ("partition.get_block_device", list![], map! {}),
        ("partition.exists", list!["/dev/ubda"], map! {}),
        ("partition.exists", list!["/dev/null"], map! {}),
        ("partition.exists", list![], map! {}),
    ]), @r#"
    partition.list: {"info": {"disk": "/dev/ubda", "size": "67.1MB", "interface": "ubd", "logical sector": "512", "physical sector": "512", "partition table": "gpt", "model": "User-Mode Linux UBD", "disk flags": "pmbr_boot"}, "partitions": {"1": {"number": "1", "start": "1049kB", "end": "21.0MB", "size": "19.9MB", "file system": "ext4", "name": "My Documents", "flags": "hp-service"}, "2": {"number": "2", "start": "21.0MB", "end": "41.9MB", "size": "21.0MB", "file system": "", "name": "primary", "flags": "swap"}}}
    partition.list: {"info": {"disk": "/dev/ubda", "size": "257,0,1", "interface": "ubd", "logical sector": "512", "physical sector": "512", "partition table": "gpt", "model": "User-Mode Linux UBD", "disk flags": ""}, "partitions": {"1": {"number": "1", "start": "4,4,0", "end": "80,79,1", "file system": "", "name": "My Documents", "flags": ""}}}
    partition.list: {"info": {"disk": "/dev/ubdb", "size": "67.1MB", "interface": "ubd", "logical sector": "512", "physical sector": "512", "partition table": "unknown", "model": "User-Mode Linux UBD", "disk flags": ""}, "partitions": {}}
    partition.align_check: ["1 aligned"]
    partition.align_check: ["Error: Partition doesn't exist."]
    partition.get_id: ["E2A1E728-32E3-11D6-A682-7B03A0000000"]
    partition.system_types: {"0": "Empty", "82": "Linux", "83": "Linux"}
    partition.get_block_device: ["ubda", "ubdb"]
    partition.exists: true
    partition.exists: false
    partition.exists: false
    "#);
    assert_eq!(context.job.retcode.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn partitions_are_changed() {
    let programs = Scripted::new(
        "
        $ partprobe --
        $ partprobe -- /dev/ubda /dev/ubdb
        $ parted -m -s /dev/ubda mklabel gpt
        $ parted -m -s -- /dev/ubda mkpart primary ext4 1MiB 20MiB
        $ parted -m -s -- /dev/ubda mkpart primary 20 40.5
        $ parted -m -s -- /dev/ubda mkpart logical '' ''
        = 1
        $ parted -m -s /dev/ubda name 1 ''\"'\"'My Documents'\"'\"''
        $ parted -m -s /dev/ubda set 1 hp-service on
        $ parted -m -s /dev/ubda set 1 palo on
        ! parted: invalid token: palo
        = 1
        $ parted -m -s /dev/ubda toggle 1 boot
        $ parted -m -s /dev/ubda disk_set pmbr_boot on
        $ parted -m -s /dev/ubda disk_toggle pmbr_boot
        $ parted -m -s /dev/ubda rescue 0 20
        $ parted -m -s -- /dev/ubda resize 1 1 10
        ! Error: The resize command has been removed in parted 3.0
        = 1
        $ parted -m -s /dev/ubda rm 9
        ! Error: Partition doesn't exist.
        = 1
        $ parted -m -s /dev/ubda check 1
        | Usage: parted [OPTION]... [DEVICE [COMMAND [PARAMETERS]...]...]
        $ parted -m -s /dev/ubda cp 1 2
        | Usage: parted [OPTION]... [DEVICE [COMMAND [PARAMETERS]...]...]
        $ sfdisk -T
        | Id  Name
        |
        | 83  Linux
        $ sfdisk --part-type /dev/ubda 1 83
        |
        | The partition table has been altered.
        | Syncing disks.
        $ mkfs.ext4 /dev/ubda1
        | Creating filesystem with 19456 1k blocks and 4872 inodes
        ! mke2fs 1.47.0 (5-Feb-2023)
        ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("partition.probe", list![], map! {}),
        ("partition.probe", list!["/dev/ubda", "/dev/ubdb"], map! {}),
        ("partition.mklabel", list!["/dev/ubda", "gpt"], map! {}),
        ("partition.mkpart", list!["/dev/ubda", "primary", "ext4", "1MiB", "20MiB"], map! {}),
        ("partition.mkpartfs", list!["/dev/ubda", "primary"], map! {"start" => 20, "end" => 40.5}),
        ("partition.mkpart", list!["/dev/ubda", "logical"], map! {}),
        ("partition.name", list!["/dev/ubda", 1, "My Documents"], map! {}),
        ("partition.set", list!["/dev/ubda", "1", "hp-service", "on"], map! {}),
        ("partition.set", list!["/dev/ubda", "1", "palo", "on"], map! {}),
        ("partition.toggle", list!["/dev/ubda", 1, "boot"], map! {}),
        ("partition.disk_set", list!["/dev/ubda", "pmbr_boot", "on"], map! {}),
        ("partition.disk_toggle", list!["/dev/ubda", "pmbr_boot"], map! {}),
        ("partition.rescue", list!["/dev/ubda", 0, 20], map! {}),
        ("partition.resize", list!["/dev/ubda", 1, 1, 10], map! {}),
        ("partition.rm", list!["/dev/ubda", 9], map! {}),
        ("partition.check", list!["/dev/ubda", 1], map! {}),
        ("partition.cp", list!["/dev/ubda", 1, 2], map! {}),
        ("partition.set_id", list!["/dev/ubda", 1, 83], map! {}),
        ("partition.mkfs", list!["/dev/ubda1", "ext4"], map! {}),
        ("partition.mkfs", list!["/dev/ubda1", "NTFS"], map! {}),
    ]), @r#"
    partition.probe: []
    partition.probe: []
    partition.mklabel: []
    partition.mkpart: []
    partition.mkpartfs: []
    partition.mkpart: []
    partition.name: []
    partition.set: []
    partition.set: ["parted: invalid token: palo"]
    partition.toggle: []
    partition.disk_set: []
    partition.disk_toggle: []
    partition.rescue: []
    partition.resize: ["Error: The resize command has been removed in parted 3.0"]
    partition.rm: ["Error: Partition doesn't exist."]
    partition.check: ["Usage: parted [OPTION]... [DEVICE [COMMAND [PARAMETERS]...]...]"]
    partition.cp: ["Usage: parted [OPTION]... [DEVICE [COMMAND [PARAMETERS]...]...]"]
    partition.set_id: ["The partition table has been altered.", "Syncing disks."]
    partition.mkfs: ["Creating filesystem with 19456 1k blocks and 4872 inodes", "mke2fs 1.47.0 (5-Feb-2023)"]
    partition.mkfs: "Error: mkfs.ntfs is unavailable."
    "#);
}

#[test]
fn invalid_arguments_reach_no_program() {
    let programs = Scripted::new("$ sfdisk -T\n| Id  Name\n| 83  Linux\n");
    let context = context_with(map! {}, programs.clone());
    for (function, arguments, error) in [
        ("list", list!["/dev/null"], "Invalid device passed to partition module."),
        ("list", list!["/dev/ubda\nprint"], "Invalid device passed to partition module."),
        ("list", list!["/dev/ubda", "parsec"], "Invalid unit passed to partition.part_list"),
        ("probe", list!["/dev/ubda", "--help"], "Invalid device passed to partition module."),
        ("align_check", list!["/dev/ubda", "max", 1], "Invalid part_type passed to partition.align_check"),
        ("align_check", list!["/dev/ubda", "minimal", "1 rm 1"], "Invalid partition passed to partition.align_check"),
        ("check", list!["/dev/ubda", "-1"], "Invalid minor number passed to partition.check"),
        ("cp", list!["/dev/ubda", 1, true], "Invalid minor number passed to partition.cp"),
        ("get_id", list!["/dev/ubda", ""], "Invalid minor number passed to partition.get_id"),
        ("set_id", list!["/dev/ubda", 1, "-A"], "Invalid system_id passed to partition.set_id"),
        ("mkfs", list!["/dev/ubda", "../sh"], "Invalid fs_type passed to partition.mkfs"),
        ("mklabel", list!["/dev/ubda", "gpt rm"], "Invalid label_type passed to partition.mklabel"),
        ("mklabel", list!["-v", "gpt"], "'-v' cannot be used: it starts with '-' or is empty"),
        ("mkpart", list!["/dev/ubda", "own"], "Invalid part_type passed to partition.mkpart"),
        ("mkpart", list!["/dev/ubda", "primary", "zfs"], "Invalid fs_type passed to partition.mkpart"),
        ("mkpart", list!["/dev/ubda", "primary", "ext4", "1 rm 1"], "Invalid partition boundary passed: \"1 rm 1\""),
        ("mkpart", list!["/dev/ubda", "primary", "ext4", 1, "-1"], "Invalid partition boundary passed: \"-1\""),
        ("name", list!["/dev/ubda", 1, "a' rm 1 '"], "Invalid characters passed to partition.name"),
        ("name", list!["/dev/ubda", 1, "a\nb"], "Invalid characters passed to partition.name"),
        ("rescue", list!["/dev/ubda", "MB", 1], "Invalid partition boundary passed: \"MB\""),
        ("resize", list!["/dev/ubda", 1, "1\n", 2], "Invalid partition boundary passed: \"1\n\""),
        ("rm", list!["/dev/ubda", "1\u{0}"], "Invalid minor number passed to partition.rm"),
        ("set", list!["/dev/ubda", 1, "boots", "on"], "Invalid flag passed to partition.set"),
        ("set", list!["/dev/ubda", 1, "boot", true], "Invalid state passed to partition.set"),
        ("toggle", list!["/dev/ubda", "x", "boot"], "Invalid partition number passed to partition.toggle"),
        ("disk_set", list!["/dev/ubda", "boot", "on"], "Invalid flag passed to partition.disk_set"),
        ("disk_toggle", list!["/dev/ubda", "boot"], "Invalid flag passed to partition.disk_toggle"),
    ] {
        let answer = answers(&context, &[(&format!("partition.{function}"), arguments, map! {})]);
        assert_eq!(answer, format!("partition.{function}: ERROR: {error}"));
    }
    assert_eq!(programs.ran(), "sfdisk -T");
}
