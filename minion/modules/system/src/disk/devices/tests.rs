use brine_value::{list, map};

use crate::testing::{Scripted, answers, context_with};

#[test]
fn devices_are_described_and_changed() {
    let programs = Scripted::new(
        "
            $ blockdev --getro --getsz --getss --getpbsz --getiomin --getioopt --getalignoff --getmaxsect --getsize --getsize64 --getra --getfra /dev/loop0
            | 0
            | 131072
            | 512
            | 512
            | 512
            | 0
            | 0
            | 2560
            | 131072
            | 67108864
            | 5120
            | 5120
            $ blockdev --getro --getsz --getss --getpbsz --getiomin --getioopt --getalignoff --getmaxsect --getsize --getsize64 --getra --getfra /dev/none
            ! blockdev: cannot open /dev/none: No such file or directory
            = 1
            $ blockdev --setra 5120 --setrw /dev/loop0
            $ blockdev --setra x /dev/loop0
            ! blockdev: failed to parse command argument: 'x'
            = 1
            $ wipefs -a /dev/loop0
            | /dev/loop0: 2 bytes were erased at offset 0x00000438 (ext4): 53 ef
            $ wipefs -a /dev/none
            ! wipefs: error: /dev/none: probing initialization failed: No such file or directory
            = 1
            $ resize2fs /dev/loop0
            $ resize2fs /dev/none
            ! The file /dev/none does not exist and no size was specified.
            = 1
            $ mkfs -t ext4 /dev/loop0
            ! mke2fs 1.47.0 (5-Feb-2023)
            $ mkfs -t ext4 -i 512 -E lazy_itable_init=1 -F /dev/loop0
            $ mkfs -t xfs -i size=512 -f /dev/loop0
            $ mkfs -t vfat -F 32 /dev/none
            = 1
            $ sync
            $ lsblk -o fstype /dev/loop0
            | FSTYPE
            | ext4
            $ lsblk -o fstype /dev/loop1
            | FSTYPE
            |
            $ df -T /dev/loop1
            | Filesystem     Type     1K-blocks  Used Available Use% Mounted on
            | /dev/loop1     xfs       12334460     0  12334460   0% /mnt
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("disk.dump", list!["/dev/loop0"], map! {}),
        ("disk.dump", list!["/dev/loop0", list!["getro", "getra"]], map! {}),
        ("disk.dump", list!["/dev/loop0", list!["getx"]], map! {}),
        ("disk.dump", list!["/dev/none"], map! {}),
        ("disk.tune", list!["/dev/loop0"], map! {"read-ahead" => 5120, "read-write" => true}),
        ("disk.tune", list!["/dev/loop0"], map! {"read-ahead" => "x"}),
        ("disk.tune", list!["/dev/loop0"], map! {"read-only" => 1, "colour" => "red"}),
        ("disk.wipe", list!["/dev/loop0"], map! {}),
        ("disk.wipe", list!["/dev/none"], map! {}),
        ("disk.wipe", list!["-f"], map! {}),
        ("disk.resize2fs", list!["/dev/loop0"], map! {}),
        ("disk.resize2fs", list!["/dev/none"], map! {}),
        ("disk.format", list!["/dev/loop0"], map! {}),
        ("disk.format", list!["/dev/loop0"], map! {"inode_size" => 512, "lazy_itable_init" => 1, "fat" => 32, "force" => true}),
        ("disk.format", list!["/dev/loop0", "xfs"], map! {"inode_size" => 512, "lazy_itable_init" => 1, "force" => true}),
        ("disk.format", list!["/dev/none", "vfat"], map! {"fat" => 32, "force" => true}),
        ("disk.fstype", list!["/dev/loop0"], map! {}),
        ("disk.fstype", list!["/dev/loop1"], map! {}),
    ]), @r#"
        disk.dump: {"getro": "0", "getsz": "131072", "getss": "512", "getpbsz": "512", "getiomin": "512", "getioopt": "0", "getalignoff": "0", "getmaxsect": "2560", "getsize": "131072", "getsize64": "67108864", "getra": "5120", "getfra": "5120"}
        disk.dump: {"getro": "0", "getra": "5120"}
        disk.dump: ERROR: 'getx' is none of getro, getsz, getss, getpbsz, getiomin, getioopt, getalignoff, getmaxsect, getsize, getsize64, getra, getfra
        disk.dump: false
        disk.tune: {"getra": "5120", "getro": "0"}
        disk.tune: ERROR: blockdev: failed to parse command argument: 'x'
        disk.tune: ERROR: Invalid keyword arguments: read-only=1, colour=red
        disk.wipe: true
        disk.wipe: false
        disk.wipe: ERROR: '-f' cannot be used: it starts with '-' or is empty
        disk.resize2fs: true
        disk.resize2fs: null
        disk.format: true
        disk.format: true
        disk.format: true
        disk.format: false
        disk.fstype: "ext4"
        disk.fstype: "xfs"
        "#);
}
