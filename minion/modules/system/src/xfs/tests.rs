use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by xfsprogs 6.1 and util-linux 2.38.
#[test]
fn file_systems_are_created_described_and_changed() {
    let programs = Scripted::new(
        "
            $ mkfs.xfs -L lab -b size=4096 -i size=512,maxpct=25 -f /dev/loop0
            | meta-data=/dev/loop0             isize=512    agcount=4, agsize=25600 blks
            |          =                       crc=1        finobt=1, sparse=1, rmapbt=0
            | log      =internal log           bsize=4096   blocks=16384, version=2
            |          =                       sectsz=512   sunit=0 blks, lazy-count=1
            $ xfs_info /dev/none
            ! xfs_info: /dev/none: No such file or directory
            = 1
            $ xfs_admin -L new -c 1 -U generate /dev/loop0
            | writing all SBs
            $ xfs_admin -U nil /dev/none
            ! xfs_admin: /dev/none: No such file or directory
            = 1
            $ blkid -o export /dev/loop0
            | DEVNAME=/dev/loop0
            | LABEL=new
            | UUID=16fcd6ed-0f09-40dc-a7ff-6e1886816168
            | BLOCK_SIZE=512
            | TYPE=xfs
            $ xfs_estimate -v /etc
            | directory                               bsize   blocks    megabytes    logsize
            | /etc                                     4096     1190        4.6MB    4096000
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("xfs.mkfs", list!["/dev/loop0"], map! {"label" => "lab", "bso" => "size=4096", "ino" => "size=512,maxpct=25", "lso" => "x"}),
        ("xfs.mkfs", list!["/dev/loop0"], map! {"bso" => "size=4096,x"}),
        ("xfs.info", list!["/dev/none"], map! {}),
        ("xfs.modify", list!["/dev/loop0"], map! {"label" => "new", "lazy_counting" => true, "uuid" => true}),
        ("xfs.modify", list!["/dev/none"], map! {"uuid" => false}),
        ("xfs.modify", list!["/dev/loop0"], map! {}),
        ("xfs.estimate", list!["/etc"], map! {}),
        ("xfs.estimate", list!["/no/such"], map! {}),
        ("xfs.defragment", list!["/"], map! {}),
        ("xfs.defragment", list!["/dev/none"], map! {}),
    ]), @r#"
        xfs.mkfs: {"meta-data": {"section": "/dev/loop0", "isize": "512", "agcount": "4", "agsize": "25600 blks", "crc": "1", "finobt": "1", "sparse": "1", "rmapbt": "0"}, "log": {"section": "internal log", "bsize": "4096", "blocks": "16384", "version": "2", "sectsz": "512", "sunit": "0 blks", "lazy-count": "1"}}
        xfs.mkfs: ERROR: Wrong parameters "size=4096,x" for option "-b"
        xfs.info: ERROR: /dev/none: No such file or directory
        xfs.modify: {"/dev/loop0": {"label": "new", "uuid": "16fcd6ed-0f09-40dc-a7ff-6e1886816168", "block_size": "512"}}
        xfs.modify: ERROR: xfs_admin: /dev/none: No such file or directory
        xfs.modify: ERROR: Nothing specified for modification for "/dev/loop0" device
        xfs.estimate: {"/etc": {"block _size": "4096", "blocks": "1190", "megabytes": "4.6MB", "logsize": "4096000"}}
        xfs.estimate: ERROR: Path "/no/such" was not found.
        xfs.defragment: ERROR: Root is not a device.
        xfs.defragment: ERROR: Device "/dev/none" is not mounted
        "#);
}
