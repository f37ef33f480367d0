use brine_value::{list, map};

use crate::testing::{Scripted, answers, context_with};

#[test]
fn volumes_are_created() {
    let context = context_with(
        map! {},
        Scripted::new(
            "
                $ pvdisplay -c /dev/null
                = 5
                $ pvdisplay -c /dev/null
                = 5
                $ pvdisplay -c /dev/null
                |   /dev/null:vg0:131072:-1:8:8:-1:4096:15:13:2:nr6leo
                $ pvcreate --yes /dev/null
                !   Cannot use /dev/null: device is too small (pv_min_size)
                = 5
                $ pvcreate -qq /dev/null --metadatasize 1000 --norestorefile
                $ vgcreate vg0 /dev/a /dev/b -qq --physicalextentsize 8M
                $ vgdisplay -c vg0
                |   vg0:r/w:772:-1:0:0:0:-1:0:1:1:61440:4096:15:0:15:YZgzPF
                $ vgcreate vg1 /dev/a --yes
                !   A volume group called vg1 already exists.
                = 5
                $ vgdisplay -c vg1
                = 5
                $ lvcreate -n lv0 vg0 -L 8M --stripes 2 --nosync -qq
                $ lvdisplay -c /dev/vg0/lv0
                |   /dev/vg0/lv0:vg0:3:0:-1:0:16384:2:-1:0:-1:-1:-1
                $ lvcreate --thin -n t vg0/pool -V 1G -qq
                !   Pool vg0/pool not found
                = 5
                $ lvdisplay -c /dev/vg0/pool/t
                = 5
                $ lvcreate --thinpool p vg0 -l 100%FREE /dev/b --yes
                $ lvdisplay -c /dev/vg0/p
                = 5
                $ lvcreate -n s -s vg0/lv0 -l 5 -qq
                $ lvdisplay -c /dev/vg0/s
                = 5
                ",
        ),
    );
    insta::assert_snapshot!(answers(&context, &[
        ("lvm.pvcreate", list!["/dev/no-such"], map! {}),
        ("lvm.pvcreate", list![""], map! {}),
        ("lvm.pvcreate", list!["/dev/null"], map! {}),
        ("lvm.pvcreate", list!["/dev/null"], map! {"force" => false, "metadatasize" => 1000, "norestorefile" => true, "colour" => 1}),
        ("lvm.pvcreate", list!["/dev/null"], map! {}),
        ("lvm.pvcreate", list!["/dev/null"], map! {"override" => false}),
        ("lvm.vgcreate", list!["vg0", list!["/dev/a", "/dev/b"]], map! {"physicalextentsize" => "8M"}),
        ("lvm.vgcreate", list!["vg1", "/dev/a"], map! {"force" => true}),
        ("lvm.vgcreate", list!["vg1", "-x"], map! {}),
        ("lvm.lvcreate", list!["lv0", "vg0"], map! {"size" => "8M", "stripes" => 2, "nosync" => true}),
        ("lvm.lvcreate", list!["t", "vg0/pool"], map! {"size" => "1G", "thinvolume" => true}),
        ("lvm.lvcreate", list!["p", "vg0"], map! {"extents" => "100%FREE", "thinpool" => true, "pv" => "/dev/b", "force" => true}),
        ("lvm.lvcreate", list!["s", "vg0"], map! {"extents" => 5, "snapshot" => "lv0"}),
        ("lvm.lvcreate", list!["s", "vg0"], map! {}),
        ("lvm.lvcreate", list!["s", "vg0"], map! {"extents" => 5, "size" => 5}),
        ("lvm.lvcreate", list!["s", "vg0"], map! {"extents" => 5, "thinvolume" => true}),
    ]), @r#"
        lvm.pvcreate: "/dev/no-such does not exist"
        lvm.pvcreate: "Error: at least one device is required"
        lvm.pvcreate: "  Cannot use /dev/null: device is too small (pv_min_size)"
        lvm.pvcreate: true
        lvm.pvcreate: true
        lvm.pvcreate: "Device \"/dev/null\" is already an LVM physical volume."
        lvm.vgcreate: {"vg0": {"Volume Group Name": "vg0", "Volume Group Access": "r/w", "Volume Group Status": "772", "Internal Volume Group Number": "-1", "Maximum Logical Volumes": "0", "Current Logical Volumes": "0", "Open Logical Volumes": "0", "Maximum Logical Volume Size": "-1", "Maximum Physical Volumes": "0", "Current Physical Volumes": "1", "Actual Physical Volumes": "1", "Volume Group Size (kB)": "61440", "Physical Extent Size (kB)": "4096", "Total Physical Extents": "15", "Allocated Physical Extents": "0", "Free Physical Extents": "15", "UUID": "YZgzPF"}, "Output from vgcreate": "Volume group \"vg0\" successfully created"}
        lvm.vgcreate: {"Output from vgcreate": "A volume group called vg1 already exists."}
        lvm.vgcreate: ERROR: '-x' cannot be used: it starts with '-' or is empty
        lvm.lvcreate: {"/dev/vg0/lv0": {"Logical Volume Name": "/dev/vg0/lv0", "Volume Group Name": "vg0", "Logical Volume Access": "3", "Logical Volume Status": "0", "Internal Logical Volume Number": "-1", "Open Logical Volumes": "0", "Logical Volume Size": "16384", "Current Logical Extents Associated": "2", "Allocated Logical Extents": "-1", "Allocation Policy": "0", "Read Ahead Sectors": "-1", "Major Device Number": "-1", "Minor Device Number": "-1"}, "Output from lvcreate": "Logical volume \"lv0\" created."}
        lvm.lvcreate: {"Output from lvcreate": "Pool vg0/pool not found"}
        lvm.lvcreate: {"Output from lvcreate": "Logical volume \"p\" created."}
        lvm.lvcreate: {"Output from lvcreate": "Logical volume \"s\" created."}
        lvm.lvcreate: "Error: Either size or extents must be specified"
        lvm.lvcreate: "Error: Please specify only one of size or extents"
        lvm.lvcreate: "Error: Thin volume size cannot be specified as extents"
        "#);
}
