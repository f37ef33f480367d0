//! `mount`: states of file systems and swap space.

mod differing;
mod mounted;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use crate::mount::active::{self, device_identifier, resolve_device};
use crate::mount::fstab::{self, Entry, Outcome, WriteOptions};
use crate::mount::options;

/// State functions of `mount`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("mount", [mounted, unmounted, swap, fstab_present, fstab_absent, mod_watch]);

/// The arguments of `mount.mounted`.
#[derive(Args)]
pub struct MountedArgs {
    /// Mount point.
    name: String,
    /// Device, such as `/dev/sdb1` or `UUID=...`.
    device: String,
    /// Type of the file system.
    fstype: String,
    /// Whether a missing mount point is created.
    #[default(false)]
    mkmnt: bool,
    #[args]
    entry: fstab::EntryArgs,
    /// Whether the file system is entered into the table.
    #[default(true)]
    persist: bool,
    /// Whether the file system is mounted now.
    #[default(true)]
    mount: bool,
    /// User that mounts the file system.
    user: Option<String>,
    /// Columns that identify an entry; `auto` is the device, or the mount point for types such as `tmpfs` or `nfs`.
    #[default(vec!["auto".into()])]
    match_on: Vec<String>,
    /// Regular expressions of device names that count as the same.
    #[default]
    device_name_regex: Vec<String>,
    /// Options that the system does not show for mounted file systems.
    #[default]
    extra_mount_invisible_options: Vec<String>,
    /// Keys of options that the system does not show for mounted file systems.
    #[default]
    extra_mount_invisible_keys: Vec<String>,
    /// Keys of options, by type of file system, whose changes need no remount.
    #[default]
    extra_mount_ignore_fs_keys: Map,
    /// Options that the system shows under another name.
    #[default]
    extra_mount_translate_options: Map,
    /// Options that do not cause a remount.
    #[default]
    hidden_opts: Value,
    /// Whether a bind mount takes over the options of its source.
    #[default(true)]
    bind_mount_copy_active_opts: bool,
    /// Further arguments, ignored.
    #[keywords(brine_function::unused)]
    _kwargs: Map,
}

/// Ensure that a device is mounted, now and, unless `persist` is false, at boot.
///
/// SLS Example:
///
///     /srv/data:
///       mount.mounted:
///         - device: /dev/vdb1
///         - fstype: ext4
///         - opts: defaults,noatime
///         - mkmnt: True
///         - pass_num: 2
///
///     /srv/share:
///       mount.mounted:
///         - device: nas.example.com:/share
///         - fstype: nfs
///         - opts:
///           - rw
///           - soft
///         - persist: True
#[function]
pub fn mounted(context: &StateContext, #[args] args: MountedArgs) -> CallResult {
    let mut invisible = args.extra_mount_invisible_options;
    invisible.extend(options(&args.hidden_opts));
    let desired = mounted::Desired {
        name: args.name,
        device: args.device,
        fstype: args.fstype,
        mkmnt: args.mkmnt,
        opts: options(&args.entry.opts),
        dump: args.entry.dump,
        pass: args.entry.pass_num,
        config: args.entry.config,
        persist: args.persist,
        mount: args.mount,
        user: args.user,
        match_on: args.match_on,
        device_name_regex: args.device_name_regex,
        invisible,
        invisible_keys: args.extra_mount_invisible_keys,
        ignore_fs_keys: args.extra_mount_ignore_fs_keys,
        translate: args.extra_mount_translate_options,
        bind_copy: args.bind_mount_copy_active_opts,
    };
    mounted::state(context, desired).map(Into::into)
}

/// Ensure that nothing is mounted at a mount point; with `persist` not at boot either.
///
/// SLS Example:
///
///     /mnt/old:
///       mount.unmounted:
///         - device: /dev/vdc1
///         - persist: True
#[function]
pub fn unmounted(
    context: &StateContext,
    /// Path of the mount point.
    name: String,
    /// Device, if several are mounted there or listed in the file.
    device: Option<String>,
    /// File of the file systems that are mounted at boot.
    #[default("/etc/fstab".into())]
    config: String,
    /// Whether the entry is removed from the file.
    #[default(false)]
    persist: bool,
    /// User that unmounts, for file systems in user space.
    user: Option<String>,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    if name.is_empty() {
        return Ok(StateReturn::failed(&name, "Must provide name to mount.unmounted").into());
    }
    let mut outcome = StateReturn::ok(&name, "Target was already unmounted");
    if active::read(&context.call)?.contains_key(&name.replace(' ', "\\040")) {
        if context.test {
            return Ok(StateReturn::predicted(&name, format!("Mount point {name} is mounted but should not be")).into());
        }
        let args = map! {"name" => &name, "device" => device.as_deref(), "user" => user};
        let output = context.call.call("mount.umount", Args::keyword(args))?;
        outcome = match output.as_str() {
            Some(complaint) => StateReturn::failed(&name, complaint),
            None => StateReturn::ok(&name, "Target was successfully unmounted").with_changes(map! {"umount" => true}),
        };
        context.call.call("mount.delete_mount_cache", Args::positional([name.as_str().into()]))?;
    }
    if persist {
        purge(context, outcome, &name, device.as_deref(), &config).map(Into::into)
    } else {
        Ok(outcome.into())
    }
}

/// Ensure that swap space is active, now and, unless `persist` is false, at boot.
///
/// SLS Example:
///
///     /swapfile:
///       mount.swap: []
#[function]
pub fn swap(
    context: &StateContext,
    /// Path of the device or file.
    name: String,
    /// Whether the swap space is also used at boot.
    #[default(true)]
    persist: bool,
    /// File of the file systems that are mounted at boot.
    #[default("/etc/fstab".into())]
    config: String,
) -> CallResult {
    let real = match std::fs::read_link(&name) {
        Ok(target) if target.is_absolute() => target.display().to_string(),
        Ok(target) => format!("/dev/{}", target.file_name().unwrap_or_default().to_string_lossy()),
        Err(_) => name.clone(),
    };
    let used = |context: &StateContext| -> Result<Map, CallError> {
        Ok(context.call.call("mount.swaps", Args::default())?.as_map().cloned().unwrap_or_default())
    };
    let is_used = used(context)?.contains_key(real.as_str());
    let mut outcome = if is_used {
        StateReturn::ok(&name, format!("Swap {name} already active"))
    } else if context.test {
        StateReturn::predicted(&name, format!("Swap {name} is set to be activated"))
    } else {
        context.call.call("mount.swapon", Args::positional([real.as_str().into()]))?;
        match used(context)?.get(real.as_str()).and_then(Value::as_map) {
            Some(stats) => StateReturn::ok(&name, format!("Swap {name} activated")).with_changes(stats.clone()),
            None => StateReturn::failed(&name, format!("Swap {name} failed to activate")),
        }
    };
    if !persist {
        return Ok(outcome.into());
    }
    let entries = fstab::read(&config)?;
    if context.test {
        if !entries.iter().any(|(place, entry)| *place == name || entry.device == name) {
            outcome.result = None;
            if is_used {
                outcome.comment = format!("Swap {name} is set to be added to the fstab and to be activated");
            }
        }
        return Ok(outcome.into());
    }
    if entries.iter().any(|(place, entry)| place == "none" && entry.device == name && entry.fstype != "swap") {
        return Ok(outcome.into());
    }
    let entry = Entry::new("none", &name, "swap", &"defaults".into(), &0.into(), &0.into());
    let (comment, change) = match fstab::set(&config, &entry, &WriteOptions::default())? {
        Outcome::Present => ("", None),
        other => fstab_report(other),
    };
    outcome.comment.push_str(comment);
    outcome.changes.extend(change.map(|change| ("persist".into(), change.into())));
    Ok(outcome.into())
}

/// The arguments of `mount.fstab_present`.
#[derive(Args)]
pub struct FstabPresentArgs {
    /// Device.
    name: String,
    /// Mount point.
    fs_file: String,
    /// Type of the file system.
    fs_vfstype: String,
    /// Mount options.
    #[default("defaults".into())]
    fs_mntops: Value,
    /// Field of the table for `dump`.
    #[default(0.into())]
    fs_freq: Value,
    /// Field of the table for `fsck`: the order of checks.
    #[default(0.into())]
    fs_passno: Value,
    /// Form of the device name in the entry: `device`, `label`, `uuid`, `partlabel` or `partuuid`.
    mount_by: Option<String>,
    /// Path of the table of file systems.
    #[default("/etc/fstab".into())]
    config: String,
    /// Whether a new entry is mounted.
    #[default(true)]
    mount: bool,
    /// Columns that identify an entry; `auto` is the device, or the mount point for types such as `tmpfs` or `nfs`.
    #[default(vec!["auto".into()])]
    match_on: Vec<String>,
    /// Whether an existing entry that differs is left unchanged.
    #[default(false)]
    not_change: bool,
    /// Without effect: an entry is not mounted by itself.
    #[default(true)]
    fs_mount: bool,
}

/// Ensure that an entry is in `/etc/fstab`; with `mount`, a new one is mounted.
///
/// SLS Example:
///
///     /dev/vdb1:
///       mount.fstab_present:
///         - fs_file: /srv/data
///         - fs_vfstype: ext4
///         - fs_mntops: defaults,noatime
///         - mount: False
#[function]
pub fn fstab_present(context: &StateContext, #[args] args: FstabPresentArgs) -> CallResult {
    let name = &args.name;
    let config = &args.config;
    _ = args.fs_mount;
    let index = without_slash(&args.fs_file);
    let Some(device) = device_name(name, args.mount_by.as_deref()) else {
        let by = args.mount_by.unwrap_or_default();
        return Ok(StateReturn::failed(name, format!("Device {name} cannot be converted to {by}")).into());
    };
    let entry = Entry::new(index, &device, &args.fs_vfstype, &args.fs_mntops, &args.fs_freq, &args.fs_passno);
    let outcome = fstab::set(
        config,
        &entry,
        &WriteOptions { match_on: args.match_on, not_change: args.not_change, test: context.test },
    )?;
    if context.test {
        let comment = match outcome {
            Outcome::Present => {
                return Ok(StateReturn::ok(name, format!("{index} entry is already in {config}.")).into());
            }
            Outcome::New if args.mount => {
                format!("{index} entry will be written in {config}.\nWill mount {name} on {index}")
            }
            Outcome::New => format!("{index} entry will be written in {config}."),
            Outcome::Changed => format!("{index} entry will be updated in {config}."),
        };
        return Ok(StateReturn::predicted(name, comment).into());
    }
    let changes = map! {"persist" => outcome.as_str()};
    let report = match outcome {
        Outcome::Present => StateReturn::ok(name, format!("{index} entry was already in {config}.")),
        Outcome::Changed => StateReturn::ok(name, format!("{index} entry updated in {config}.")).with_changes(changes),
        Outcome::New if !args.mount => {
            StateReturn::ok(name, format!("{index} entry added in {config}.")).with_changes(changes)
        }
        Outcome::New => {
            let output = context.call.call("mount.mount", Args::positional([index.into()]))?;
            let result = output.as_str().is_none();
            let mounted = match output.as_str() {
                None => format!("Mounted {name} on {index}"),
                Some(complaint) => {
                    let why = complaint.split_once(':').map_or(complaint, |(_, why)| why);
                    format!("Error while mounting {why}")
                }
            };
            let comment = format!("{index} entry added in {config}.\n{mounted}");
            StateReturn { result: Some(result), changes, ..StateReturn::ok(name, comment) }
        }
    };
    Ok(report.into())
}

/// Ensure that `/etc/fstab` has no entry of a mount point and device.
///
/// SLS Example:
///
///     /dev/vdb1:
///       mount.fstab_absent:
///         - fs_file: /srv/data
#[function]
pub fn fstab_absent(
    context: &StateContext,
    /// Device.
    name: String,
    /// Path of the mount point.
    fs_file: String,
    /// How the device is named in the file: `device`, `label`, `uuid`, `partlabel` or `partuuid`.
    mount_by: Option<String>,
    /// File of the file systems that are mounted at boot.
    #[default("/etc/fstab".into())]
    config: String,
) -> CallResult {
    let place = without_slash(&fs_file);
    let is_there = fstab::read(&config)?.iter().any(|(have, _)| have == place);
    let missing = format!("{place} entry is already missing in {config}.");
    let outcome = match (context.test, is_there) {
        (true, true) => StateReturn::predicted(&name, format!("{place} entry will be removed from {config}.")),
        (true, false) => StateReturn::predicted(&name, missing),
        (false, false) => StateReturn::ok(&name, missing),
        (false, true) => {
            fstab::remove(&config, place, device_name(&name, mount_by.as_deref()).as_deref())?;
            StateReturn::ok(&name, format!("{place} entry removed from {config}."))
                .with_changes(map! {"persist" => "removed"})
        }
    };
    Ok(outcome.into())
}

/// Remount the file system when a watched state has changes.
///
/// SLS Example:
///
///     /srv/data:
///       mount.mounted:
///         - device: /dev/vdb1
///         - fstype: ext4
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn mod_watch(
    context: &StateContext,
    /// Path of the mount point.
    name: String,
    /// Function of the watching state.
    #[default("mounted".into())]
    sfun: String,
    /// Device.
    #[default]
    device: String,
    /// Type of the file system.
    #[default]
    fstype: String,
    /// Options, as a list or with commas.
    #[default("defaults".into())]
    opts: Value,
    /// User that mounts.
    user: Option<String>,
    /// Further arguments of the watching state.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    if sfun != "mounted" {
        return Ok(StateReturn::ok(&name, format!("Watch not supported in {sfun} at this time")).into());
    }
    let args = map! {"name" => &name, "device" => device, "fstype" => fstype, "opts" => opts, "user" => user};
    let output = context.call.call("mount.remount", Args::keyword(args))?;
    Ok(match output.as_str() {
        None => StateReturn::ok(&name, format!("{name} remounted")),
        Some(complaint) => StateReturn::failed(&name, format!("{name} failed to remount: {complaint}")),
    }
    .into())
}

/// Returns the part of the comment about the entry, and the change to report.
fn fstab_report(outcome: Outcome) -> (&'static str, Option<&'static str>) {
    match outcome {
        Outcome::Present => (". Entry already exists in the fstab.", None),
        Outcome::New => (". Added new entry to the fstab.", Some("new")),
        Outcome::Changed => (". Updated the entry in the fstab.", Some("update")),
    }
}

fn without_slash(place: &str) -> &str {
    if place == "/" { place } else { place.trim_end_matches('/') }
}

/// Returns the name of a device in the desired form: its path (`device`), `UUID=..`, `LABEL=..` and so on; `None` if it
/// has no such name.
fn device_name(device: &str, mount_by: Option<&str>) -> Option<String> {
    let Some(kind) = mount_by.filter(|kind| !kind.is_empty()) else { return Some(device.to_owned()) };
    let prefix = format!("{}=", kind.to_uppercase());
    let is_path = device.starts_with('/');
    if (kind == "device" && is_path) || device.starts_with(&prefix) {
        return Some(device.to_owned());
    }
    let path = if is_path { device.to_owned() } else { resolve_device(device)? };
    if kind == "device" { Some(path) } else { device_identifier(kind, &path).map(|value| format!("{prefix}{value}")) }
}

/// Removes the entry of an unmounted file system from `/etc/fstab`.
fn purge(
    context: &StateContext,
    mut outcome: StateReturn,
    name: &str,
    device: Option<&str>,
    config: &str,
) -> Result<StateReturn, CallError> {
    let device = device.filter(|device| !device.is_empty());
    let entries = fstab::read(config)?;
    let Some((_, entry)) = entries.iter().find(|(place, _)| place == name) else {
        outcome.comment.push_str(". fstab entry not found");
        return Ok(outcome);
    };
    if let Some(device) = device.filter(|device| entry.device != *device) {
        outcome.comment = format!("{}. fstab entry for device {device} not found", outcome.comment);
        return Ok(outcome);
    }
    if context.test {
        let comment =
            format!("Mount point {name} is unmounted but needs to be purged from {config} to be made persistent");
        return Ok(StateReturn::predicted(name, comment));
    }
    fstab::remove(config, name, device)?;
    outcome.comment.push_str(". Removed target from fstab");
    outcome.changes.insert("persist".into(), "purged".into());
    Ok(outcome)
}
