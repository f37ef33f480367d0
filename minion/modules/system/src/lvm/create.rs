//! `lvm`: creation of volumes.

use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, function};
use brine_host::programs::argument;
use brine_value::{Map, Value};

use super::{confirmation, groups, logical, lvm, message_of, names, physical};

/// The options of `pvcreate` that take a value.
const PHYSICAL: &[&str] = &[
    "metadatasize",
    "dataalignment",
    "dataalignmentoffset",
    "pvmetadatacopies",
    "metadatacopies",
    "metadataignore",
    "restorefile",
    "labelsector",
    "setphysicalvolumesize",
];
/// The options of `vgcreate`.
const GROUP: &[&str] = &[
    "addtag",
    "alloc",
    "autobackup",
    "clustered",
    "maxlogicalvolumes",
    "maxphysicalvolumes",
    "metadatatype",
    "vgmetadatacopies",
    "metadatacopies",
    "physicalextentsize",
    "zero",
];
/// The options of `lvcreate` that take a value.
const LOGICAL: &[&str] = &[
    "activate",
    "chunksize",
    "contiguous",
    "discards",
    "stripes",
    "stripesize",
    "minor",
    "persistent",
    "mirrors",
    "monitor",
    "permission",
    "poolmetadatasize",
    "readahead",
    "regionsize",
    "type",
    "virtualsize",
    "zero",
];
/// The options of `lvcreate` that take no value.
const LOGICAL_FLAGS: &[&str] = &["nosync", "noudevsync", "ignoremonitoring", "thin"];

/// Create physical volumes on devices. The result is True, or a message.
///
/// override
///     Whether devices that are physical volumes are skipped.
///
/// Further arguments are options of `pvcreate`, such as `metadatasize` or `dataalignment`.
///
/// CLI Example:
///
///     salt mymachine lvm.pvcreate /dev/sdb1,/dev/sdb2
///     salt mymachine lvm.pvcreate /dev/sdb1 dataalignmentoffset=7s
#[function]
pub fn pvcreate(
    context: &Context,
    devices: Value,
    #[default(true)] r#override: bool,
    #[default(true)] force: bool,
    #[keywords] kwargs: Map,
) -> CallResult {
    let devices = names(&devices)?;
    if devices.is_empty() {
        return Ok("Error: at least one device is required".into());
    }
    let mut fresh = Vec::new();
    for device in &devices {
        if !Path::new(device).exists() {
            return Ok(format!("{device} does not exist").into());
        }
        if physical(context, device, false)?.is_empty() {
            fresh.push(device.as_str());
        } else if !r#override {
            return Ok(format!("Device \"{device}\" is already an LVM physical volume.").into());
        }
    }
    if fresh.is_empty() {
        return Ok(true.into());
    }
    let options = options(&kwargs, PHYSICAL, &["norestorefile"])?;
    let words = ["pvcreate", confirmation(force)].into_iter().chain(fresh);
    let output = lvm(context, &words.chain(options.iter().map(String::as_str)).collect::<Vec<_>>())?;
    if output.retcode != 0 {
        return Ok(output.stderr.into());
    }
    for device in &devices {
        if physical(context, device, false)?.is_empty() {
            return Ok(format!("Device \"{device}\" was not affected.").into());
        }
    }
    Ok(true.into())
}

/// Create a volume group on physical volumes.
///
/// Further arguments are options of `vgcreate`, such as `physicalextentsize`.
///
/// CLI Example:
///
///     salt mymachine lvm.vgcreate my_vg /dev/sdb1,/dev/sdb2
#[function]
pub fn vgcreate(
    context: &Context,
    vgname: String,
    devices: Value,
    #[default(false)] force: bool,
    #[keywords] kwargs: Map,
) -> CallResult {
    let devices = names(&devices)?;
    if vgname.is_empty() || devices.is_empty() {
        return Ok("Error: vgname and device(s) are both required".into());
    }
    let (name, options) = (argument(&vgname)?, options(&kwargs, GROUP, &[])?);
    let devices = devices.iter().map(String::as_str);
    let words = ["vgcreate", &name].into_iter().chain(devices).chain([confirmation(force)]);
    let output = lvm(context, &words.chain(options.iter().map(String::as_str)).collect::<Vec<_>>())?;
    let mut report = groups(context, &vgname)?;
    let message = message_of(&output, format!("Volume group \"{vgname}\" successfully created"));
    report.insert("Output from vgcreate".into(), message.into());
    Ok(report.into())
}

/// The arguments of `lvm.lvcreate`.
#[derive(Debug, Args)]
pub struct NewVolume {
    /// The name of the volume.
    pub lvname: String,
    /// The volume group; of a thin volume, the group and the pool.
    pub vgname: String,
    /// The size in bytes, with a unit.
    pub size: Option<Value>,
    /// The size in extents, or a percentage such as `100%FREE`.
    pub extents: Option<Value>,
    /// The volume that this one is a snapshot of.
    pub snapshot: Option<String>,
    /// The physical volume to create it on.
    pub pv: Option<String>,
    /// Whether it is a thin volume.
    #[default(false)]
    pub thinvolume: bool,
    /// Whether it is a pool of thin volumes.
    #[default(false)]
    pub thinpool: bool,
    /// Whether questions are answered with yes.
    #[default(false)]
    pub force: bool,
    /// Options of `lvcreate`, such as `stripes` or `mirrors`.
    #[keywords]
    pub kwargs: Map,
}

/// Create a logical volume.
///
/// CLI Example:
///
///     salt '*' lvm.lvcreate new_volume_name vg_name size=10G
///     salt '*' lvm.lvcreate new_volume_name vg_name extents=100 pv=/dev/sdb
///     salt '*' lvm.lvcreate new_snapshot    vg_name snapshot=volume_name size=3G
#[function]
pub fn lvcreate(context: &Context, #[args] new: NewVolume) -> CallResult {
    let given = |value: &Option<Value>| value.as_ref().filter(|value| value.is_truthy()).map(ToString::to_string);
    let (size, extents) = (given(&new.size), given(&new.extents));
    if size.is_some() && extents.is_some() {
        return Ok("Error: Please specify only one of size or extents".into());
    }
    if new.thinvolume && new.thinpool {
        return Ok("Error: Please set only one of thinvolume or thinpool to True".into());
    }
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let (lvname, vgname) = (argument(&new.lvname)?, argument(&new.vgname)?);
    let mut words: Vec<String> = vec!["lvcreate".into()];
    words.extend(match (new.thinvolume, new.thinpool) {
        (true, _) => vec!["--thin".into(), "-n".into(), lvname.clone()],
        (_, true) => vec!["--thinpool".into(), lvname.clone()],
        _ => vec!["-n".into(), lvname.clone()],
    });
    match named(&new.snapshot) {
        Some(origin) => words.extend(["-s".into(), format!("{vgname}/{origin}")]),
        None => words.push(vgname.clone()),
    }
    match (size, extents) {
        (Some(size), _) => words.extend([if new.thinvolume { "-V" } else { "-L" }.into(), argument(&size)?]),
        (_, Some(_)) if new.thinvolume => return Ok("Error: Thin volume size cannot be specified as extents".into()),
        (_, Some(extents)) => words.extend(["-l".into(), argument(&extents)?]),
        (None, None) => return Ok("Error: Either size or extents must be specified".into()),
    }
    if let Some(device) = named(&new.pv) {
        words.push(argument(&device)?);
    }
    words.extend(options(&new.kwargs, LOGICAL, LOGICAL_FLAGS)?);
    words.push(confirmation(new.force).into());
    let output = lvm(context, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut report = logical(context, &format!("/dev/{vgname}/{lvname}"))?;
    let message = message_of(&output, format!("Logical volume \"{lvname}\" created."));
    report.insert("Output from lvcreate".into(), message.into());
    Ok(report.into())
}

/// Returns the arguments that are options of a program as command line words: options with a value, and flags. Other
/// arguments are ignored.
fn options(kwargs: &Map, valued: &[&str], flags: &[&str]) -> Result<Vec<String>, CallError> {
    let mut words = Vec::new();
    for (key, value) in kwargs {
        let name = key.as_str().unwrap_or_default();
        if flags.contains(&name) && value.is_truthy() {
            words.push(format!("--{name}"));
        } else if valued.contains(&name) && !value.is_nil() {
            words.extend([format!("--{name}"), argument(&value.to_string())?]);
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
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
}
