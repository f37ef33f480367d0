//! `lvm`: states of volumes of LVM.

#[cfg(test)]
mod tests;

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::{groups, logical, names, physical, resolved};

/// State functions of `lvm`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("lvm", [pv_present, pv_absent, vg_present, vg_absent, lv_present, lv_absent]);

/// Ensure that a device is a physical volume. Further arguments are those of `lvm.pvcreate`.
///
/// SLS Example:
///
///     /dev/vdb:
///       lvm.pv_present: []
#[function]
pub fn pv_present(
    context: &StateContext,
    /// Path of the device.
    name: String,
    /// Options of the execution function `lvm.pvcreate`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let is_present = || Ok(!physical(&context.call, &name, false)?.is_empty());
    let create = || call(context, "lvm.pvcreate", [name.as_str().into()], kwargs);
    changed(context, &name, "Physical Volume", Goal::Present, is_present, create)
}

/// Ensure that a device is not a physical volume.
///
/// SLS Example:
///
///     /dev/vdb:
///       lvm.pv_absent: []
#[function]
pub fn pv_absent(
    context: &StateContext,
    /// Path of the device.
    name: String,
) -> CallResult {
    let is_present = || Ok(!physical(&context.call, &name, false)?.is_empty());
    let remove = || call(context, "lvm.pvremove", [name.as_str().into()], map! {});
    changed(context, &name, "Physical Volume", Goal::Absent("does not exist"), is_present, remove)
}

/// Ensure that a volume group is present and has these physical volumes. Further arguments are those of `lvm.vgcreate`.
///
/// SLS Example:
///
///     data:
///       lvm.vg_present:
///         - devices: /dev/vdb,/dev/vdc
#[function]
pub fn vg_present(
    context: &StateContext,
    /// Name of the volume group.
    name: String,
    /// Physical volumes, as a list or with commas.
    #[default]
    devices: Value,
    /// Options of the execution function `lvm.vgcreate`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let is_present = || Ok(!groups(&context.call, &name)?.is_empty());
    if is_present()? {
        return Ok(extended(context, &name, &names(&devices)?)?.into());
    }
    let create = || call(context, "lvm.vgcreate", [name.as_str().into(), devices.clone()], kwargs);
    changed(context, &name, "Volume Group", Goal::Present, is_present, create)
}

/// Ensure that a volume group is absent.
///
/// SLS Example:
///
///     data:
///       lvm.vg_absent: []
#[function]
pub fn vg_absent(
    context: &StateContext,
    /// Name of the volume group.
    name: String,
) -> CallResult {
    let is_present = || Ok(!groups(&context.call, &name)?.is_empty());
    let remove = || call(context, "lvm.vgremove", [name.as_str().into()], map! {});
    changed(context, &name, "Volume Group", Goal::Absent("already absent"), is_present, remove)
}

/// The arguments of `lvm.lv_present`.
#[derive(Debug, brine_function::Args)]
pub struct Volume {
    /// The name of the volume.
    name: String,
    /// The volume group; of a thin volume, the group and the pool.
    #[default]
    vgname: String,
    /// The size in bytes, with a unit.
    size: Option<Value>,
    /// The size in extents; a percentage such as `100%FREE` is used for a new volume only.
    extents: Option<Value>,
    /// The name of a snapshot of this volume; the state then ensures the snapshot.
    snapshot: Option<String>,
    /// The physical volume for a new volume.
    pv: Option<String>,
    /// Whether it is a thin volume.
    #[default(false)]
    thinvolume: bool,
    /// Whether it is a pool of thin volumes.
    #[default(false)]
    thinpool: bool,
    /// Whether the volume may be reduced.
    #[default(false)]
    force: bool,
    /// Whether its file system is resized, too.
    #[default(false)]
    resizefs: bool,
    /// Further arguments of `lvm.lvcreate`.
    #[keywords]
    kwargs: Map,
}

/// Ensure that a logical volume is present and has this size.
///
/// SLS Example:
///
///     logs:
///       lvm.lv_present:
///         - vgname: data
///         - size: 10G
///         - resizefs: True
#[function]
pub fn lv_present(context: &StateContext, #[args] mut volume: Volume) -> CallResult {
    let state = volume.name.clone();
    let argument = |value: &Option<Value>| value.clone().filter(Value::is_truthy);
    (volume.size, volume.extents) = (argument(&volume.size), argument(&volume.extents));
    if volume.size.is_some() && volume.extents.is_some() {
        return Ok(StateReturn::failed(&state, "Only one of extents or size can be specified.").into());
    }
    let origin = volume
        .snapshot
        .take()
        .filter(|name| !name.is_empty())
        .map(|snapshot| std::mem::replace(&mut volume.name, snapshot));
    let group = if volume.thinvolume { volume.vgname.split('/').next().unwrap_or_default() } else { &volume.vgname };
    let path = format!("/dev/{group}/{}", volume.name);
    let sectors = volume.size.as_ref().map(megabytes).transpose()?;
    if let Some(about) = find(context, &path)? {
        let mut report = resized(context, &volume, &path, &about, sectors)?;
        report.name = state;
        return Ok(report.into());
    }
    if context.test {
        return Ok(
            StateReturn::predicted(&state, format!("Logical Volume {} is set to be created", volume.name)).into()
        );
    }
    let mut keyword = map! {
        "size" => volume.size, "extents" => volume.extents, "snapshot" => origin, "pv" => volume.pv,
        "thinvolume" => volume.thinvolume, "thinpool" => volume.thinpool, "force" => volume.force,
    };
    keyword.extend(volume.kwargs);
    let report = call(context, "lvm.lvcreate", [volume.name.as_str().into(), volume.vgname.into()], keyword)?;
    if find(context, &path)?.is_none() {
        let output = report.get("Output from lvcreate").unwrap_or(&report);
        let comment = format!("Failed to create Logical Volume {}. Error: {output}", volume.name);
        return Ok(StateReturn::failed(&state, comment).into());
    }
    let comment = format!("Created Logical Volume {}", volume.name);
    Ok(StateReturn::ok(&state, comment).with_changes(map! {"created" => report}).into())
}

/// Ensure that a logical volume is absent.
///
/// SLS Example:
///
///     logs:
///       lvm.lv_absent:
///         - vgname: data
#[function]
pub fn lv_absent(
    context: &StateContext,
    /// Name of the logical volume.
    name: String,
    /// Name of its volume group.
    #[default]
    vgname: String,
) -> CallResult {
    let path = format!("/dev/{vgname}/{name}");
    let is_present = || Ok(find(context, &path)?.is_some());
    let remove = || call(context, "lvm.lvremove", [name.as_str().into(), vgname.as_str().into()], map! {});
    changed(context, &name, "Logical Volume", Goal::Absent("already absent"), is_present, remove)
}

fn call<const N: usize>(context: &StateContext, function: &str, positional: [Value; N], keyword: Map) -> CallResult {
    context.call.call(function, Args { positional: positional.into(), keyword })
}

fn find(context: &StateContext, path: &str) -> Result<Option<Map>, CallError> {
    Ok(logical(&context.call, path)?.get(path).and_then(Value::as_map).cloned())
}

#[derive(Clone, Copy)]
enum Goal {
    Present,
    /// The field is the comment for an item that is already absent.
    Absent(&'static str),
}

/// Creates or removes an item, and verifies that it is present or absent afterwards.
fn changed(
    context: &StateContext,
    name: &str,
    kind: &str,
    goal: Goal,
    is_present: impl Fn() -> Result<bool, CallError>,
    change: impl FnOnce() -> CallResult,
) -> CallResult {
    let wants = matches!(goal, Goal::Present);
    let (participle, infinitive, already) = match goal {
        Goal::Present => ("created", "create", "already present"),
        Goal::Absent(already) => ("removed", "remove", already),
    };
    if is_present()? == wants {
        return Ok(StateReturn::ok(name, format!("{kind} {name} {already}")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(name, format!("{kind} {name} is set to be {participle}")).into());
    }
    let report = change()?;
    if is_present()? != wants {
        tracing::error!(jid = context.call.job.jid, name, %report, "changing volumes failed");
        return Ok(StateReturn::failed(name, format!("Failed to {infinitive} {kind} {name}")).into());
    }
    let verb = if wants { "Created" } else { "Removed" };
    Ok(StateReturn::ok(name, format!("{verb} {kind} {name}")).with_changes(map! {participle => report}).into())
}

/// Adds the physical volumes that a volume group lacks.
fn extended(context: &StateContext, name: &str, devices: &[String]) -> Result<StateReturn, CallError> {
    let mut report = StateReturn::ok(name, format!("Volume Group {name} already present"));
    let group_of = |device: &str| -> Result<Option<String>, CallError> {
        let real = resolved(Path::new(device));
        let all = physical(&context.call, &real.to_string_lossy(), true)?;
        let about = all.get(&Value::from(real));
        Ok(about.and_then(|about| about.get("Volume Group Name")).map(ToString::to_string))
    };
    for device in devices {
        let (sentence, fails) = match group_of(device)? {
            Some(group) if group == name => (format!("{device} is part of Volume Group"), false),
            Some(group) if group.is_empty() || group == "#orphans_lvm2" => {
                let added = Value::from(format!("added to {name}"));
                if context.test {
                    report.result = report.result.filter(|is_successful| !is_successful);
                    report.changes.insert(device.as_str().into(), added);
                    continue;
                }
                call(context, "lvm.vgextend", [name.into(), device.as_str().into()], map! {})?;
                if group_of(device)?.as_deref() == Some(name) {
                    report.changes.insert(device.as_str().into(), added);
                    continue;
                }
                (format!("{device} could not be added"), true)
            }
            Some(group) => (format!("{device} is part of {group}"), true),
            None => (format!("pv {device} is not present"), true),
        };
        report.comment = format!("{}\n{sentence}", report.comment);
        if fails {
            report.result = Some(false);
        }
    }
    Ok(report)
}

/// Sets the size of an existing volume.
fn resized(
    context: &StateContext,
    volume: &Volume,
    path: &str,
    about: &Map,
    size: Option<f64>,
) -> Result<StateReturn, CallError> {
    let name = volume.name.as_str();
    let number = |about: &Map, field: &str| {
        about.get(field).and_then(|value| value.to_string().parse::<f64>().ok()).unwrap_or_default()
    };
    // LVM reports the size in sectors of 512 bytes.
    let megabytes_of = |about: &Map| number(about, "Logical Volume Size") / 2048.0;
    let already = StateReturn::ok(name, format!("Logical Volume {name} already present"));
    let extents = volume.extents.as_ref().map(ToString::to_string);
    if let Some(extents) = extents.as_ref().filter(|extents| extents.contains('%')) {
        let comment = format!("Logical Volume {name} already present, {extents} won't be resized.");
        return Ok(StateReturn::ok(name, comment));
    }
    let old = (megabytes_of(about), number(about, "Current Logical Extents Associated"));
    let invalid =
        |extents: &String| CallError::Execution(format!("extents is invalid: expected a number, got {extents}"));
    let (flag, target_size, former) = match (size, &extents) {
        (Some(size), _) => ("size", size, old.0),
        (None, Some(extents)) => ("extents", extents.parse::<f64>().map_err(|_| invalid(extents))?, old.1),
        (None, None) => return Ok(already),
    };
    if target_size < former && !volume.force {
        return Ok(StateReturn::failed(name, "To reduce a Logical Volume option 'force' must be True."));
    }
    if (target_size - former).abs() < f64::EPSILON {
        return Ok(already);
    }
    if context.test {
        return Ok(StateReturn::predicted(name, format!("Logical Volume {name} is set to be resized")));
    }
    let amount = if flag == "size" { volume.size.clone() } else { volume.extents.clone() };
    let keyword = map! {"lvpath" => path, flag => amount, "resizefs" => volume.resizefs, "force" => volume.force};
    let report = call(context, "lvm.lvresize", [], keyword)?;
    let current = find(context, path)?.map(|about| megabytes_of(&about)).unwrap_or_default();
    if (current - old.0).abs() < f64::EPSILON {
        let output = report.get("Output from lvresize").unwrap_or(&report);
        return Ok(StateReturn::failed(name, format!("Failed to resize Logical Volume {name}.\nError: {output}")));
    }
    Ok(StateReturn::ok(name, format!("Resized Logical Volume {name}")).with_changes(map! {"resized" => report}))
}

/// Returns a size in mebibytes: a number of them, or one with a unit (`s`, `m`, `g`, `t` or `p`, with or without `b`).
fn megabytes(size: &Value) -> Result<f64, CallError> {
    let text = size.to_string().to_lowercase();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[number.len()..].strip_suffix('b').unwrap_or(&text[number.len()..]);
    let invalid = || CallError::Execution(format!("Size {text} is invalid."));
    let amount = number.parse::<u64>().map_err(|_| invalid())? as f64;
    let factor = match unit {
        "s" => 1.0 / 2048.0,
        "" | "m" => 1.0,
        "g" => 1024.0,
        "t" => 1024.0 * 1024.0,
        "p" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(CallError::Execution(format!("Unit {unit} is invalid."))),
    };
    Ok(amount * factor)
}
