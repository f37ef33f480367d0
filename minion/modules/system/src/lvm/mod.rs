//! `lvm`: physical volumes, volume groups and logical volumes of LVM.

mod create;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Output;
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `lvm`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "lvm",
    [
        version,
        fullversion,
        pvdisplay,
        vgdisplay,
        lvdisplay,
        create::pvcreate,
        pvremove,
        pvresize,
        create::vgcreate,
        vgextend,
        vgremove,
        create::lvcreate,
        lvremove,
        lvresize,
        lvextend
    ]
);

/// The fields of a line of `pvdisplay -c` after the device.
const PHYSICAL: &[&str] = &[
    "Volume Group Name",
    "Physical Volume Size (kB)",
    "Internal Physical Volume Number",
    "Physical Volume Status",
    "Physical Volume (not) Allocatable",
    "Current Logical Volumes Here",
    "Physical Extent Size (kB)",
    "Total Physical Extents",
    "Free Physical Extents",
    "Allocated Physical Extents",
];
/// The fields of a line of `vgdisplay -c`.
const GROUP: &[&str] = &[
    "Volume Group Name",
    "Volume Group Access",
    "Volume Group Status",
    "Internal Volume Group Number",
    "Maximum Logical Volumes",
    "Current Logical Volumes",
    "Open Logical Volumes",
    "Maximum Logical Volume Size",
    "Maximum Physical Volumes",
    "Current Physical Volumes",
    "Actual Physical Volumes",
    "Volume Group Size (kB)",
    "Physical Extent Size (kB)",
    "Total Physical Extents",
    "Allocated Physical Extents",
    "Free Physical Extents",
    "UUID",
];
/// The fields of a line of `lvdisplay -c`.
const LOGICAL: &[&str] = &[
    "Logical Volume Name",
    "Volume Group Name",
    "Logical Volume Access",
    "Logical Volume Status",
    "Internal Logical Volume Number",
    "Open Logical Volumes",
    "Logical Volume Size",
    "Current Logical Extents Associated",
    "Allocated Logical Extents",
    "Allocation Policy",
    "Read Ahead Sectors",
    "Major Device Number",
    "Minor Device Number",
];

/// Return the version of LVM.
///
/// CLI Example:
///
///     salt '*' lvm.version
#[function]
pub fn version(context: &Context) -> CallResult {
    let output = lvm(context, &["lvm", "version"])?;
    let version = output.stdout.lines().next().and_then(|line| line.split_once(": "));
    let unknown = || CallError::Execution(format!("the version of LVM is unknown: {}", output.stderr));
    Ok(version.ok_or_else(unknown)?.1.trim().into())
}

/// Return the versions and the build options of LVM.
///
/// CLI Example:
///
///     salt '*' lvm.fullversion
#[function]
pub fn fullversion(context: &Context) -> CallResult {
    let output = lvm(context, &["lvm", "version"])?;
    let lines = output.stdout.lines().filter_map(|line| line.split_once(':'));
    Ok(lines.map(|(name, value)| (name.trim().into(), value.trim().into())).collect::<Map>().into())
}

/// Return the physical volumes, or the one on this device.
///
/// CLI Example:
///
///     salt '*' lvm.pvdisplay
///     salt '*' lvm.pvdisplay /dev/md0
#[function]
pub fn pvdisplay(
    context: &Context,
    /// Path of the physical volume; all by default.
    #[default]
    pvname: String,
    /// Whether they are named by their devices without symbolic links.
    #[default(false)]
    real: bool,
    /// Without effect: a missing volume is not a failure.
    #[default(false)]
    quiet: bool,
) -> CallResult {
    _ = quiet;
    Ok(physical(context, &pvname, real)?.into())
}

/// Return the volume groups, or the one with this name. `quiet` is without effect: a missing group is not a
/// failure.
///
/// CLI Example:
///
///     salt '*' lvm.vgdisplay
///     salt '*' lvm.vgdisplay nova-volumes
#[function]
pub fn vgdisplay(
    context: &Context,
    /// Name of the volume group.
    #[default]
    vgname: String,
    /// Without effect: a missing volume is not a failure.
    #[default(false)]
    quiet: bool,
) -> CallResult {
    _ = quiet;
    Ok(groups(context, &vgname)?.into())
}

/// Return the logical volumes, or the one with this path. `quiet` is without effect: a missing volume is not a
/// failure.
///
/// CLI Example:
///
///     salt '*' lvm.lvdisplay
///     salt '*' lvm.lvdisplay /dev/vg_myserver/root
#[function]
pub fn lvdisplay(
    context: &Context,
    /// Name of the logical volume.
    #[default]
    lvname: String,
    /// Without effect: a missing volume is not a failure.
    #[default(false)]
    quiet: bool,
) -> CallResult {
    _ = quiet;
    Ok(logical(context, &lvname)?.into())
}

/// The arguments that name physical volumes.
#[derive(brine_function::Args)]
pub struct DeviceArgs {
    /// Devices, as a list or separated by commas.
    devices: Value,
    /// Whether devices that are not physical volumes are skipped.
    #[default(true)]
    r#override: bool,
    /// Whether the program does not ask.
    #[default(true)]
    force: bool,
}

impl DeviceArgs {
    /// Runs a program on the physical volumes, and returns them and its output. The inner error is the result of the
    /// function if there is nothing to do or a device is not a physical volume.
    fn run(&self, context: &Context, program: &str) -> Result<Result<(Vec<String>, Output), Value>, CallError> {
        let devices = match present(context, &self.devices, self.r#override)? {
            Ok(devices) => devices,
            Err(message) => return Ok(Err(message.into())),
        };
        if devices.is_empty() {
            return Ok(Err(true.into()));
        }
        let output = run_on(context, &[program, confirmation(self.force)], &devices)?;
        Ok(Ok((devices, output)))
    }
}

/// Remove the label of physical volumes. The result is True, or a message.
///
/// override
///     Whether devices that are not physical volumes are skipped.
///
/// CLI Example:
///
///     salt mymachine lvm.pvremove /dev/sdb1,/dev/sdb2
#[function]
pub fn pvremove(context: &Context, #[args] args: DeviceArgs) -> CallResult {
    let (devices, output) = match args.run(context, "pvremove")? {
        Ok(run) => run,
        Err(early) => return Ok(early),
    };
    if output.retcode != 0 {
        return Ok(output.stderr.into());
    }
    for device in &devices {
        if !physical(context, device, false)?.is_empty() {
            return Ok(format!("Device \"{device}\" was not affected.").into());
        }
    }
    Ok(true.into())
}

/// Resize physical volumes to the size of their devices. The result is True, or a message.
///
/// override
///     Whether devices that are not physical volumes are skipped.
///
/// CLI Example:
///
///     salt mymachine lvm.pvresize /dev/sdb1,/dev/sdb2
#[function]
pub fn pvresize(context: &Context, #[args] args: DeviceArgs) -> CallResult {
    let (_, output) = match args.run(context, "pvresize")? {
        Ok(run) => run,
        Err(early) => return Ok(early),
    };
    Ok(if output.retcode == 0 { true.into() } else { output.stderr.into() })
}

/// Add physical volumes to a volume group.
///
/// CLI Example:
///
///     salt mymachine lvm.vgextend my_vg /dev/sdb1,/dev/sdb2
#[function]
pub fn vgextend(
    context: &Context,
    /// Name of the volume group.
    vgname: String,
    /// Paths of devices, with commas.
    devices: Value,
    /// Whether the program asks nothing.
    #[default(false)]
    force: bool,
) -> CallResult {
    let devices = names(&devices)?;
    if vgname.is_empty() || devices.is_empty() {
        return Ok("Error: vgname and device(s) are both required".into());
    }
    let output = run_on(context, &["vgextend", &argument(&vgname)?, confirmation(force)], &devices)?;
    Ok(map! {"Output from vgextend" => message_of(&output, format!("Volume group \"{vgname}\" successfully extended"))}
        .into())
}

/// Remove a volume group.
///
/// CLI Example:
///
///     salt mymachine lvm.vgremove vgname
#[function]
pub fn vgremove(
    context: &Context,
    /// Name of the volume group.
    vgname: String,
    /// Whether the program asks nothing.
    #[default(true)]
    force: bool,
) -> CallResult {
    let output = lvm(context, &["vgremove", &argument(&vgname)?, confirmation(force)])?;
    Ok(message_of(&output, format!("Volume group \"{vgname}\" successfully removed")).into())
}

/// Remove a logical volume of a volume group.
///
/// CLI Example:
///
///     salt '*' lvm.lvremove lvname vgname force=True
#[function]
pub fn lvremove(
    context: &Context,
    /// Name of the logical volume.
    lvname: String,
    /// Name of the volume group.
    vgname: String,
    /// Whether the program asks nothing.
    #[default(true)]
    force: bool,
) -> CallResult {
    let output = lvm(context, &["lvremove", &argument(&format!("{vgname}/{lvname}"))?, confirmation(force)])?;
    Ok(message_of(&output, format!("Logical volume \"{lvname}\" successfully removed")).into())
}

/// The arguments for the size of a logical volume.
#[derive(brine_function::Args)]
pub struct SizeArgs {
    /// Size, in bytes with a unit.
    size: Option<Value>,
    /// Path of the volume.
    #[default]
    lvpath: String,
    /// Size in extents.
    extents: Option<Value>,
    /// Whether the program does not ask.
    #[default(false)]
    force: bool,
    /// Whether the file system is resized, too.
    #[default(false)]
    resizefs: bool,
}

impl SizeArgs {
    /// Runs a program that sets the size; `verb` is used in the message of success.
    fn run(self, context: &Context, [program, how]: [&str; 2], verb: &str) -> CallResult {
        let non_empty = |value: Option<Value>| value.filter(Value::is_truthy).map(|value| value.to_string());
        let (flag, amount) = match (non_empty(self.size), non_empty(self.extents)) {
            (Some(size), None) => ("-L", size),
            (None, Some(extents)) => ("-l", extents),
            (None, None) => return failure(context, "Error: Either size or extents must be specified"),
            (Some(_), Some(_)) => return failure(context, "Error: Please specify only one of size or extents"),
        };
        let mut words = vec![program, how];
        words.extend(self.resizefs.then_some("--resizefs"));
        // The amount is not checked for a leading minus, because a decrease starts with one.
        let lvpath = argument(&self.lvpath)?;
        words.extend([flag, &amount, &lvpath]);
        let output = lvm(context, &words)?;
        let message = message_of(&output, format!("Logical volume \"{lvpath}\" successfully {verb}."));
        Ok(map! {format!("Output from {program}") => message}.into())
    }
}

/// Set the size of a logical volume, in bytes with a unit (`size`) or in extents.
///
/// resizefs
///     Whether its file system is resized, too.
///
/// CLI Example:
///
///     salt '*' lvm.lvresize +12M /dev/mapper/vg1-test
///     salt '*' lvm.lvresize lvpath=/dev/mapper/vg1-test extents=+100%FREE
#[function]
pub fn lvresize(context: &Context, #[args] args: SizeArgs) -> CallResult {
    let how = if args.force { "--force" } else { "-qq" };
    args.run(context, ["lvresize", how], "resized")
}

/// Extend a logical volume, as `lvm.lvresize`.
///
/// CLI Example:
///
///     salt '*' lvm.lvextend +12M /dev/mapper/vg1-test
#[function]
pub fn lvextend(context: &Context, #[args] args: SizeArgs) -> CallResult {
    let how = confirmation(args.force);
    args.run(context, ["lvextend", how], "extended")
}

/// Logs an error and returns an empty mapping, as Salt does.
fn failure(context: &Context, message: &str) -> CallResult {
    tracing::error!(jid = context.job.jid, "{message}");
    Ok(Map::new().into())
}

/// Runs a program of LVM, without its warnings about inherited file descriptors.
fn lvm(context: &Context, words: &[&str]) -> Result<Output, CallError> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    run(context, &words, &[("LC_ALL", "C"), ("LVM_SUPPRESS_FD_WARNINGS", "1")])
}

fn run_on(context: &Context, words: &[&str], devices: &[String]) -> Result<Output, CallError> {
    let all: Vec<&str> = words.iter().copied().chain(devices.iter().map(String::as_str)).collect();
    lvm(context, &all)
}

/// Returns the flag that answers questions with yes, or else the one that suppresses messages.
fn confirmation(force: bool) -> &'static str {
    if force { "--yes" } else { "-qq" }
}

/// Returns the error output of a failed program, otherwise the message of success.
fn message_of(output: &Output, success: String) -> String {
    if output.retcode == 0 { success } else { output.stderr.trim().to_owned() }
}

/// Parses devices: a list, or a string separated by commas.
fn names(devices: &Value) -> Result<Vec<String>, CallError> {
    let names: Vec<String> = match devices {
        Value::Nil => Vec::new(),
        Value::List(list) => list.iter().map(ToString::to_string).collect(),
        text => text.to_string().split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    };
    names.iter().map(|name| argument(name)).collect()
}

/// Returns the devices that are physical volumes. Without `skips`, a device that is not one is an inner error with the
/// message.
fn present(context: &Context, devices: &Value, skips: bool) -> Result<Result<Vec<String>, String>, CallError> {
    let mut present_devices = Vec::new();
    for device in names(devices)? {
        if !physical(context, &device, false)?.is_empty() {
            present_devices.push(device);
        } else if !skips {
            return Ok(Err(format!("{device} is not a physical volume")));
        }
    }
    Ok(Ok(present_devices))
}

/// Runs a program with `-c`, and returns the fields of its lines, which are separated by colons. A failure counts as no
/// lines.
fn rows(context: &Context, program: &str, name: &str) -> Result<Vec<Vec<String>>, CallError> {
    let mut words = vec![program, "-c"];
    let name = if name.is_empty() { None } else { Some(argument(name)?) };
    words.extend(name.as_deref());
    let output = lvm(context, &words)?;
    if output.retcode != 0 {
        return Ok(Vec::new());
    }
    let lines = output.stdout.lines().filter(|line| !line.contains("is a new physical volume"));
    Ok(lines.map(|line| line.trim().split(':').map(str::to_owned).collect()).collect())
}

fn mapping(names: &[&str], row: &[String]) -> Map {
    names.iter().zip(row).map(|(name, value)| ((*name).into(), value.as_str().into())).collect()
}

/// Returns the physical volumes by device; with `real`, with symbolic links resolved.
fn physical(context: &Context, name: &str, real: bool) -> Result<Map, CallError> {
    let mut volumes = Map::new();
    for row in rows(context, "pvdisplay", name)? {
        let Some((device, rest)) = row.split_first() else { continue };
        let mut about = map! {"Physical Volume Device" => device};
        about.extend(mapping(PHYSICAL, rest));
        let mut key = PathBuf::from(device);
        if real {
            key = resolved(&key);
            about.insert("Real Physical Volume Device".into(), key.clone().into());
        }
        volumes.insert(key.into(), about.into());
    }
    Ok(volumes)
}

fn groups(context: &Context, name: &str) -> Result<Map, CallError> {
    let rows = rows(context, "vgdisplay", name)?;
    let named = |row: &Vec<String>| Some((row.first()?.as_str().into(), mapping(GROUP, row).into()));
    Ok(rows.iter().filter_map(named).collect())
}

fn logical(context: &Context, name: &str) -> Result<Map, CallError> {
    let rows = rows(context, "lvdisplay", name)?;
    let named = |row: &Vec<String>| Some((row.first()?.as_str().into(), mapping(LOGICAL, row).into()));
    Ok(rows.iter().filter_map(named).collect())
}

/// Resolves the symbolic links of a path; a missing path is returned unchanged.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
