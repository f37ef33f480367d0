use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by e2fsprogs 1.47.0.
#[test]
fn file_systems_are_created_and_described() {
    let programs = Scripted::new(
        "
            $ mke2fs -F -t ext4 -L lab -b 1024 -j /dev/loop0
            | Discarding device blocks: done
            | Creating filesystem with 16384 1k blocks and 4096 inodes
            | Filesystem UUID: e0345353-26f2-4c37-ae4e-6151aa4fa430
            | Superblock backups stored on blocks:
            | \t8193
            |
            | Allocating group tables: done
            | Writing inode tables: done
            | Creating journal (1024 blocks): done
            | Writing superblocks and filesystem accounting information: done
            ! mke2fs 1.47.0 (5-Feb-2023)
            $ tune2fs -c -1 -L 'my label' /dev/loop0
            | tune2fs 1.47.0 (5-Feb-2023)
            | Setting maximal mount count to -1
            $ dumpe2fs /dev/loop0
            | Filesystem volume name:   lab
            | Filesystem features:      has_journal ext_attr
            | Group descriptor size:    64
            | Inode size:\t          256
            | Check interval:           0 (<none>)
            |
            | Group 0: (Blocks 1-8192) csum 0x19ee [ITABLE_ZEROED]
            |   Primary superblock at 1, Group descriptors at 2-2
            |   7021 free blocks, 2037 free inodes, 2 directories, 2037 unused inodes
            |   Free blocks: 1172-8192
            |   Free inodes: 12-2048
            | Group 1: (Blocks 8193-16383) csum 0x9ceb [INODE_UNINIT, ITABLE_ZEROED]
            |   Free blocks: 9346-16383, 16385
            |   Free inodes: 2049-4096
            $ dumpe2fs /dev/loop0 -h
            | Filesystem volume name:   lab
            $ dumpe2fs /dev/none
            ! dumpe2fs: No such file or directory while trying to open /dev/none
            = 1
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("extfs.mkfs", list!["/dev/loop0", "ext4"], map! {"label" => "lab", "block_size" => 1024, "journal" => true, "colour" => 1}),
        ("extfs.mkfs", list!["/dev/loop0", "-x"], map! {}),
        ("extfs.tune", list!["/dev/loop0"], map! {"max" => -1, "label" => "my label", "full_return" => true}),
        ("extfs.dump", list!["/dev/loop0"], map! {}),
        ("extfs.attributes", list!["/dev/loop0", "h"], map! {}),
        ("extfs.attributes", list!["/dev/loop0", "h /x"], map! {}),
        ("extfs.blocks", list!["/dev/loop0", "h"], map! {}),
        ("extfs.blocks", list!["/dev/none"], map! {}),
    ]), @r#"
        extfs.mkfs: ["Creating filesystem with 16384 1k blocks and 4096 inodes", "Filesystem UUID: e0345353-26f2-4c37-ae4e-6151aa4fa430", "Superblock backups stored on blocks:", "\t8193"]
        extfs.mkfs: ERROR: '-x' cannot be used: it starts with '-' or is empty
        extfs.tune: {"pid": 1, "retcode": 0, "stdout": "tune2fs 1.47.0 (5-Feb-2023)\nSetting maximal mount count to -1", "stderr": "", "comment": ["tune2fs 1.47.0 (5-Feb-2023)", "Setting maximal mount count to -1"]}
        extfs.dump: {"attributes": {"Filesystem volume name": "lab", "Filesystem features": ["has_journal", "ext_attr"], "Group descriptor size": "64", "Inode size": "256", "Check interval": "0 (<none>)"}, "blocks": {"Group 0": {"group": "0", "range": "1-8192", "extra": ["Primary superblock at 1, Group descriptors at 2-2", "7021 free blocks, 2037 free inodes, 2 directories, 2037 unused inodes"], "free blocks": ["1172-8192"], "free inodes": ["12-2048"]}, "Group 1": {"group": "1", "range": "8193-16383", "extra": [], "free blocks": ["9346-16383", "16385"], "free inodes": ["2049-4096"]}}}
        extfs.attributes: {"Filesystem volume name": "lab"}
        extfs.attributes: ERROR: args is invalid: expected flags of dumpe2fs, got h /x
        extfs.blocks: {}
        extfs.blocks: ERROR: reading the file system failed: dumpe2fs: No such file or directory while trying to open /dev/none
        "#);
}
