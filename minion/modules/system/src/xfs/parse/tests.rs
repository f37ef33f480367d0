use brine_value::{list, map};

use super::*;

// The expected mapping is the result of Salt 3008.5 for the output of xfsprogs 6.1.
#[test]
fn the_geometry_has_the_sections_of_salt() {
    let output = "meta-data=/tmp/x.img             isize=512    agcount=4, agsize=25600 blks
         =                       sectsz=512   attr=2, projid32bit=1
data     =                       bsize=4096   blocks=102400, imaxpct=25
         =                       sunit=0      swidth=0 blks
naming   =version 2              bsize=4096   ascii-ci=0, ftype=1
log      =internal log           bsize=4096   blocks=16384, version=2
realtime =none                   extsz=4096   blocks=0, rtextents=0
";
    let expected = map! {
        "meta-data" => map! {
            "section" => "/tmp/x.img", "isize" => "512", "agcount" => "4", "agsize" => "25600 blks",
            "sectsz" => "512", "attr" => "2", "projid32bit" => "1",
        },
        "data" => map! {
            "section" => "data", "bsize" => "4096", "blocks" => "102400", "imaxpct" => "25", "sunit" => "0",
            "swidth" => "0 blks",
        },
        "naming" => map! {"section" => "version 2", "bsize" => "4096", "ascii-ci" => "0", "ftype" => "1"},
        "log" => map! {"section" => "internal log", "bsize" => "4096", "blocks" => "16384", "version" => "2"},
        "realtime" => map! {"section" => "none", "extsz" => "4096", "blocks" => "0", "rtextents" => "0"},
    };
    assert_eq!(geometry(output), expected);
}

#[test]
fn devices_have_their_mounts() {
    let export = "DEVNAME=/dev/a\nUUID=1\nTYPE=xfs\n\nDEVNAME=/dev/b\nLABEL=x\nTYPE=ext4\n";
    let mounts = mounts("/dev/a /mnt xfs rw,noatime 0 0\n/dev/b /b ext4 rw 0 0\n");
    let about =
        map! {"uuid" => "1", "label" => Value::Nil, "mount_point" => "/mnt", "options" => list!["rw", "noatime"]};
    assert_eq!(devices(export, &mounts), map! {"/dev/a" => about});
}
