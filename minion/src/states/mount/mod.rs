//! `mount`: file systems and swap space as states.

mod mounted;

use brine_function::{Args, CallError, functions};
use brine_value::{Map, Value, map};

use super::{StateContext, StateReturn};
use crate::modules::mount::active::{self, by, named};
use crate::modules::mount::fstab::{self, Done, Entry, How};
use crate::modules::mount::options;

functions! {
    module "mount", context StateContext;

    /// A device that is mounted there, now and, unless `persist` is false, when the host starts.
    fn mounted(
        context,
        name: String,
        device: String,
        fstype: String,
        mkmnt: bool = false,
        opts: Value = "defaults".into(),
        dump: Value = 0.into(),
        pass_num: Value = 0.into(),
        config: String = "/etc/fstab".into(),
        persist: bool = true,
        mount: bool = true,
        user: Option<String> = None,
        match_on: Vec<String> = vec!["auto".into()],
        device_name_regex: Vec<String> = Vec::new(),
        extra_mount_invisible_options: Vec<String> = Vec::new(),
        extra_mount_invisible_keys: Vec<String> = Vec::new(),
        extra_mount_ignore_fs_keys: Map = Map::new(),
        extra_mount_translate_options: Map = Map::new(),
        hidden_opts: Value = Value::Nil,
        bind_mount_copy_active_opts: bool = true,
        **_kwargs
    ) {
        let mut invisible = extra_mount_invisible_options;
        invisible.extend(options(&hidden_opts));
        let wanted = mounted::Wanted {
            name,
            device,
            fstype,
            mkmnt,
            opts: options(&opts),
            dump,
            pass: pass_num,
            config,
            persist,
            mount,
            user,
            match_on,
            device_name_regex,
            invisible,
            invisible_keys: extra_mount_invisible_keys,
            ignore_fs_keys: extra_mount_ignore_fs_keys,
            translate: extra_mount_translate_options,
            bind_copy: bind_mount_copy_active_opts,
        };
        mounted::state(context, wanted).map(Into::into)
    }

    /// Nothing mounted there; with `persist` not when the host starts either.
    fn unmounted(
        context,
        name: String,
        device: Option<String> = None,
        config: String = "/etc/fstab".into(),
        persist: bool = false,
        user: Option<String> = None,
        **_kwargs
    ) {
        if name.is_empty() {
            return Ok(StateReturn::failed(&name, "Must provide name to mount.unmounted").into());
        }
        let mut done = StateReturn::ok(&name, "Target was already unmounted");
        if active::read(&context.call)?.contains_key(&name.replace(' ', "\\040")) {
            if context.test {
                return Ok(StateReturn::would(&name, format!("Mount point {name} is mounted but should not be")).into());
            }
            let args = map! {"name" => &name, "device" => device.as_deref(), "user" => user};
            let said = context.call.call("mount.umount", Args::keyword(args))?;
            done = match said.as_str() {
                Some(complaint) => StateReturn::failed(&name, complaint),
                None => StateReturn::ok(&name, "Target was successfully unmounted").with_changes(map! {"umount" => true}),
            };
            context.call.call("mount.delete_mount_cache", Args::positional([name.as_str().into()]))?;
        }
        if persist {
            purged(context, done, &name, device.as_deref(), &config).map(Into::into)
        } else {
            Ok(done.into())
        }
    }

    /// Swap space that is in use, now and, unless `persist` is false, when the host starts.
    fn swap(context, name: String, persist: bool = true, config: String = "/etc/fstab".into()) {
        let real = match std::fs::read_link(&name) {
            Ok(target) if target.is_absolute() => target.display().to_string(),
            Ok(target) => format!("/dev/{}", target.file_name().unwrap_or_default().to_string_lossy()),
            Err(_) => name.clone(),
        };
        let used = |context: &StateContext| -> Result<Map, CallError> {
            Ok(context.call.call("mount.swaps", Args::default())?.as_map().cloned().unwrap_or_default())
        };
        let is_used = used(context)?.contains_key(real.as_str());
        let mut done = if is_used {
            StateReturn::ok(&name, format!("Swap {name} already active"))
        } else if context.test {
            StateReturn::would(&name, format!("Swap {name} is set to be activated"))
        } else {
            context.call.call("mount.swapon", Args::positional([real.as_str().into()]))?;
            match used(context)?.get(real.as_str()).and_then(Value::as_map) {
                Some(stats) => StateReturn::ok(&name, format!("Swap {name} activated")).with_changes(stats.clone()),
                None => StateReturn::failed(&name, format!("Swap {name} failed to activate")),
            }
        };
        if !persist {
            return Ok(done.into());
        }
        let entries = fstab::read(&config)?;
        if context.test {
            if !entries.iter().any(|(place, entry)| *place == name || entry.device == name) {
                done.result = None;
                if is_used {
                    done.comment = format!("Swap {name} is set to be added to the fstab and to be activated");
                }
            }
            return Ok(done.into());
        }
        if entries.iter().any(|(place, entry)| place == "none" && entry.device == name && entry.fstype != "swap") {
            return Ok(done.into());
        }
        let entry = Entry::new("none", &name, "swap", &"defaults".into(), &0.into(), &0.into());
        let (comment, change) = match fstab::set(&config, &entry, &How::default())? {
            Done::Present => ("", None),
            other => in_fstab(other),
        };
        done.comment.push_str(comment);
        done.changes.extend(change.map(|change| ("persist".into(), change.into())));
        Ok(done.into())
    }

    /// An entry in `/etc/fstab`; with `mount`, what is new is mounted.
    fn fstab_present(
        context,
        name: String,
        fs_file: String,
        fs_vfstype: String,
        fs_mntops: Value = "defaults".into(),
        fs_freq: Value = 0.into(),
        fs_passno: Value = 0.into(),
        mount_by: Option<String> = None,
        config: String = "/etc/fstab".into(),
        mount: bool = true,
        match_on: Vec<String> = vec!["auto".into()],
        not_change: bool = false,
        fs_mount: bool = true,
    ) {
        _ = fs_mount;
        let place = without_slash(&fs_file);
        let Some(device) = called(&name, mount_by.as_deref()) else {
            let by = mount_by.unwrap_or_default();
            return Ok(StateReturn::failed(&name, format!("Device {name} cannot be converted to {by}")).into());
        };
        let entry = Entry::new(place, &device, &fs_vfstype, &fs_mntops, &fs_freq, &fs_passno);
        let done = fstab::set(&config, &entry, &How { match_on, not_change, test: context.test })?;
        if context.test {
            let comment = match done {
                Done::Present => return Ok(StateReturn::ok(&name, format!("{place} entry is already in {config}.")).into()),
                Done::New if mount => {
                    format!("{place} entry will be written in {config}.\nWill mount {name} on {place}")
                }
                Done::New => format!("{place} entry will be written in {config}."),
                Done::Changed => format!("{place} entry will be updated in {config}."),
            };
            return Ok(StateReturn::would(&name, comment).into());
        }
        let changes = map! {"persist" => done.as_str()};
        let told = match done {
            Done::Present => StateReturn::ok(&name, format!("{place} entry was already in {config}.")),
            Done::Changed => StateReturn::ok(&name, format!("{place} entry updated in {config}.")).with_changes(changes),
            Done::New if !mount => {
                StateReturn::ok(&name, format!("{place} entry added in {config}.")).with_changes(changes)
            }
            Done::New => {
                let said = context.call.call("mount.mount", Args::positional([place.into()]))?;
                let result = said.as_str().is_none();
                let mounted = match said.as_str() {
                    None => format!("Mounted {name} on {place}"),
                    Some(complaint) => {
                        let why = complaint.split_once(':').map_or(complaint, |(_, why)| why);
                        format!("Error while mounting {why}")
                    }
                };
                let comment = format!("{place} entry added in {config}.\n{mounted}");
                StateReturn { result: Some(result), changes, ..StateReturn::ok(&name, comment) }
            }
        };
        Ok(told.into())
    }

    /// No entry in `/etc/fstab` that mounts this device there.
    fn fstab_absent(
        context,
        name: String,
        fs_file: String,
        mount_by: Option<String> = None,
        config: String = "/etc/fstab".into(),
    ) {
        let place = without_slash(&fs_file);
        let is_there = fstab::read(&config)?.iter().any(|(have, _)| have == place);
        let missing = format!("{place} entry is already missing in {config}.");
        let done = match (context.test, is_there) {
            (true, true) => StateReturn::would(&name, format!("{place} entry will be removed from {config}.")),
            (true, false) => StateReturn::would(&name, missing),
            (false, false) => StateReturn::ok(&name, missing),
            (false, true) => {
                fstab::remove(&config, place, called(&name, mount_by.as_deref()).as_deref())?;
                StateReturn::ok(&name, format!("{place} entry removed from {config}."))
                    .with_changes(map! {"persist" => "removed"})
            }
        };
        Ok(done.into())
    }

    /// What is done when something watched has changed: it is mounted again.
    fn mod_watch(
        context,
        name: String,
        sfun: String = "mounted".into(),
        device: String = String::new(),
        fstype: String = String::new(),
        opts: Value = "defaults".into(),
        user: Option<String> = None,
        **_kwargs
    ) {
        if sfun != "mounted" {
            return Ok(StateReturn::ok(&name, format!("Watch not supported in {sfun} at this time")).into());
        }
        let args = map! {"name" => &name, "device" => device, "fstype" => fstype, "opts" => opts, "user" => user};
        let said = context.call.call("mount.remount", Args::keyword(args))?;
        Ok(match said.as_str() {
            None => StateReturn::ok(&name, format!("{name} remounted")),
            Some(complaint) => StateReturn::failed(&name, format!("{name} failed to remount: {complaint}")),
        }
        .into())
    }
}

/// What is said of an entry behind what was said before, and the change.
fn in_fstab(done: Done) -> (&'static str, Option<&'static str>) {
    match done {
        Done::Present => (". Entry already exists in the fstab.", None),
        Done::New => (". Added new entry to the fstab.", Some("new")),
        Done::Changed => (". Updated the entry in the fstab.", Some("update")),
    }
}

fn without_slash(place: &str) -> &str {
    if place == "/" { place } else { place.trim_end_matches('/') }
}

/// A device by the name that is wanted: its path (`device`), or `UUID=..`, `LABEL=..` and the like. Nothing if it has
/// none of that kind.
fn called(device: &str, mount_by: Option<&str>) -> Option<String> {
    let Some(kind) = mount_by.filter(|kind| !kind.is_empty()) else { return Some(device.to_owned()) };
    let prefix = format!("{}=", kind.to_uppercase());
    let is_path = device.starts_with('/');
    if (kind == "device" && is_path) || device.starts_with(&prefix) {
        return Some(device.to_owned());
    }
    let path = if is_path { device.to_owned() } else { named(device)? };
    if kind == "device" { Some(path) } else { by(kind, &path).map(|value| format!("{prefix}{value}")) }
}

/// Takes the entry of what is unmounted out of `/etc/fstab`.
fn purged(
    context: &StateContext,
    mut done: StateReturn,
    name: &str,
    device: Option<&str>,
    config: &str,
) -> Result<StateReturn, CallError> {
    let device = device.filter(|device| !device.is_empty());
    let entries = fstab::read(config)?;
    let Some((_, entry)) = entries.iter().find(|(place, _)| place == name) else {
        done.comment.push_str(". fstab entry not found");
        return Ok(done);
    };
    if let Some(device) = device.filter(|device| entry.device != *device) {
        done.comment = format!("{}. fstab entry for device {device} not found", done.comment);
        return Ok(done);
    }
    if context.test {
        let comment =
            format!("Mount point {name} is unmounted but needs to be purged from {config} to be made persistent");
        return Ok(StateReturn::would(name, comment));
    }
    fstab::remove(config, name, device)?;
    done.comment.push_str(". Removed target from fstab");
    done.changes.insert("persist".into(), "purged".into());
    Ok(done)
}
