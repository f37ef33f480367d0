use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

#[test]
fn output_of_df_is_parsed() {
    let programs = Scripted::new(
        r#"
            $ df -P
            | Filesystem     1024-blocks     Used Available Capacity Mounted on
            | /dev/vda         264212084 71021528  24264360      75% /
            | map auto_home            0        0         0       -  /home
            | //nas/my share         100       40        60      40% /mnt/with blank
            | cut 1 2
            $ df -P -hT
            | Filesystem     Type  Size  Used Avail Capacity Mounted on
            | /dev/vda       ext4  252G   68G   24G      75% /
            $ df -iP
            | Filesystem       Inodes  IUsed    IFree IUse% Mounted on
            | /dev/vda       16777216 715731 16061485    5% /
            $ blkid
            | /dev/sda1: LABEL="a b" UUID="1-2" TYPE="ext4"
            | /dev/sdb: TYPE="swap"
            $ blkid -t TYPE=xfs
            = 2
            "#,
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("disk.usage", list![], map! {}),
        ("disk.usage", list!["hT"], map! {}),
        ("disk.usage", list!["h; id"], map! {}),
        ("disk.inodeusage", list![], map! {}),
        ("disk.percent", list![], map! {}),
        ("disk.percent", list!["/home"], map! {}),
        ("disk.percent", list!["/nope"], map! {}),
        ("disk.blkid", list![], map! {}),
        ("disk.blkid", list![], map! {"token" => "TYPE=xfs"}),
        ("disk.blkid", list!["-g"], map! {}),
    ]), @r#"
        disk.usage: {"/": {"filesystem": "/dev/vda", "1K-blocks": "264212084", "used": "71021528", "available": "24264360", "capacity": "75%"}, "/home": {"filesystem": "map auto_home", "1K-blocks": "0", "used": "0", "available": "0", "capacity": "-"}, "/mnt/with blank": {"filesystem": "//nas/my share", "1K-blocks": "100", "used": "40", "available": "60", "capacity": "40%"}}
        disk.usage: {"/": {"filesystem": "/dev/vda ext4", "1K-blocks": "252G", "used": "68G", "available": "24G", "capacity": "75%"}}
        disk.usage: ERROR: Invalid flag passed to disk.usage
        disk.inodeusage: {"/": {"inodes": "16777216", "used": "715731", "free": "16061485", "use": "5%", "filesystem": "/dev/vda"}}
        disk.percent: {"/": "75%", "/home": "-", "/mnt/with blank": "40%"}
        disk.percent: "-"
        disk.percent: {}
        disk.blkid: {"/dev/sda1": {"LABEL": "a b", "UUID": "1-2", "TYPE": "ext4"}, "/dev/sdb": {"TYPE": "swap"}}
        disk.blkid: {}
        disk.blkid: ERROR: '-g' cannot be used: it starts with '-' or is empty
        "#);
}
