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
/// Further arguments are options of `pvcreate`, such as `metadatasize` or `dataalignment`.
///
/// CLI Example:
///
///     salt mymachine lvm.pvcreate /dev/sdb1,/dev/sdb2
///     salt mymachine lvm.pvcreate /dev/sdb1 dataalignmentoffset=7s
#[function]
pub fn pvcreate(
    context: &Context,
    /// Paths of devices, with commas.
    devices: Value,
    /// Whether devices that are physical volumes are skipped.
    #[default(true)]
    r#override: bool,
    /// Whether the program asks nothing.
    #[default(true)]
    force: bool,
    /// Options of `pvcreate`: `metadatasize`, `dataalignment`, `dataalignmentoffset`, `pvmetadatacopies`,
    /// `metadatacopies`, `metadataignore`, `restorefile`, `labelsector`, `setphysicalvolumesize`.
    #[keywords]
    kwargs: Map,
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
    /// Name of the volume group.
    vgname: String,
    /// Paths of devices, with commas.
    devices: Value,
    /// Whether the program asks nothing.
    #[default(false)]
    force: bool,
    /// Options of `vgcreate`: `addtag`, `alloc`, `autobackup`, `clustered`, `maxlogicalvolumes`, `maxphysicalvolumes`,
    /// `metadatatype`, `vgmetadatacopies`, `metadatacopies`, `physicalextentsize`, `zero`.
    #[keywords]
    kwargs: Map,
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
    let non_empty = |value: &Option<Value>| value.as_ref().filter(|value| value.is_truthy()).map(ToString::to_string);
    let (size, extents) = (non_empty(&new.size), non_empty(&new.extents));
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
mod tests;
