//! `mount.mounted`: the active mount, its options, and its entry in the table.

use std::path::{Path, PathBuf};

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError};
use brine_text::python_regex::Regex;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use super::differing::differing;
use crate::mount::active::{self, Mount, device_identifier, resolve_device};
use crate::mount::fstab::{self, Entry, Outcome, WriteOptions};
use crate::mount::make_directory;

/// The desired mount.
pub(super) struct Desired {
    pub name: String,
    pub device: String,
    pub fstype: String,
    pub mkmnt: bool,
    pub opts: Vec<String>,
    pub dump: Value,
    pub pass: Value,
    pub config: String,
    pub persist: bool,
    pub mount: bool,
    pub user: Option<String>,
    pub match_on: Vec<String>,
    /// Regular expressions of devices that count as the desired one.
    pub device_name_regex: Vec<String>,
    /// Additional options that the system does not show.
    pub invisible: Vec<String>,
    /// Additional options whose values the system does not show.
    pub invisible_keys: Vec<String>,
    /// Additional options by type of file system whose values the system does not show.
    pub ignore_fs_keys: Map,
    /// Additional options that the system shows under another name, with that name.
    pub translate: Map,
    /// Whether a bind mount takes over the active options of its source.
    pub bind_copy: bool,
}

/// The progress of a run of the state.
struct Run<'w> {
    context: &'w StateContext,
    desired: Desired,
    active: IndexMap<String, Mount>,
    /// The mount point, with symbolic links resolved; `key` is its form in the list of mounts, with blanks as `\040`.
    path: PathBuf,
    key: String,
    /// The device, with identifiers and symbolic links resolved.
    device: String,
    changes: Map,
    comment: String,
    /// Whether the mount is written to the mount cache at the end.
    remember: bool,
}

pub(super) fn state(context: &StateContext, mut desired: Desired) -> Result<StateReturn, CallError> {
    let name = desired.name.clone();
    for (value, word) in [(&desired.name, "name"), (&desired.device, "device"), (&desired.fstype, "fstype")] {
        if value.is_empty() {
            return Ok(StateReturn::failed(&name, format!("Must provide {word} to mount.mounted")));
        }
    }
    if desired.name != "/" {
        desired.name.truncate(desired.name.trim_end_matches('/').len());
    }
    let path = std::fs::canonicalize(&desired.name).unwrap_or_else(|_| PathBuf::from(&desired.name));
    let key = path.display().to_string().replace(' ', "\\040");
    let active = active::read(&context.call)?;
    let (changes, comment) = (Map::new(), String::new());
    let mut work =
        Run { context, desired, active, path, key, device: String::new(), changes, comment, remember: false };
    let outcome = work.apply()?;
    Ok(StateReturn { name, ..outcome })
}

impl Run<'_> {
    fn apply(&mut self) -> Result<StateReturn, CallError> {
        match self.real_device() {
            Ok(device) => self.device = device,
            Err(message) => return Ok(self.failed(message)),
        }
        let mut result = Some(true);
        if self.active.contains_key(&self.key) && self.desired.mount {
            if let Some(ended) = self.ensure_options()? {
                return Ok(ended);
            }
            match self.ensure_device()? {
                Ok(new_result) => result = new_result,
                Err(ended) => return Ok(ended),
            }
        }
        if !self.active.contains_key(&self.key) {
            match self.ensure_mounted()? {
                Ok(new_result) => result = new_result,
                Err(ended) => return Ok(ended),
            }
        }
        if self.desired.persist { self.ensure_entry(result) } else { Ok(self.report(result)) }
    }

    fn report(&mut self, result: Option<bool>) -> StateReturn {
        let (changes, comment) = (std::mem::take(&mut self.changes), std::mem::take(&mut self.comment));
        StateReturn { result, changes, ..StateReturn::ok("", comment) }
    }

    fn failed(&mut self, comment: impl Into<String>) -> StateReturn {
        self.comment = comment.into();
        self.report(Some(false))
    }

    fn call(&self, function: &str, args: Map) -> Result<Value, CallError> {
        self.context.call.call(function, Args::keyword(args))
    }

    /// Resolves the device. For a bind mount, options are taken over from the source, if requested.
    fn real_device(&mut self) -> Result<String, String> {
        let device = self.desired.device.clone();
        let upper = device.to_uppercase();
        if let Some(path) = device.strip_prefix('/') {
            if self.desired.opts.iter().any(|opt| opt == "bind") && self.active.contains_key(&self.key) {
                return Ok(self.bind_device());
            }
            let mapped = path.strip_prefix("dev/").and_then(|path| path.split_once('/')).map(|(group, volume)| {
                format!("/dev/mapper/{}-{}", group.replace('-', "--"), volume.replace('-', "--"))
            });
            if let Some(mapped) = mapped.filter(|mapped| Path::new(mapped).exists()) {
                return Ok(mapped);
            }
            return Ok(real_path(&device));
        }
        if upper.starts_with("UUID=") {
            let uuid = device.split_once('=').map(|(_, uuid)| uuid.trim_matches('"').to_lowercase());
            return Ok(resolve_device(&device).or(uuid).unwrap_or_default());
        }
        if upper.starts_with("LABEL=") {
            let label = device.split_once('=').map(|(_, label)| label).unwrap_or_default();
            return resolve_device(&device).ok_or_else(|| format!("Unable to find device with label {label}."));
        }
        match device.split_once('#') {
            Some((program, real)) if is_word(program) && !real.is_empty() => Ok(real.to_owned()),
            _ => Ok(device),
        }
    }

    /// Returns the device of the file system that contains the source of a bind mount.
    fn bind_device(&mut self) -> String {
        let own = self.active.get(&self.key).map(|mount| mount.device.clone()).unwrap_or_default();
        let on_device = own.starts_with('/');
        let ancestors = Path::new(&self.desired.device).ancestors().map(|path| path.display().to_string());
        let mut directories = ancestors.map(|path| path.replace(' ', "\\040"));
        let mount_point = if on_device {
            directories.find(|directory| self.active.contains_key(directory))
        } else {
            directories.next()
        };
        let below = mount_point.and_then(|directory| self.active.get(&directory)).cloned();
        if let Some(below) = &below {
            if self.desired.bind_copy {
                self.desired.opts.extend(below.opts.iter().chain(&below.superopts).cloned());
                self.desired.opts.sort();
                self.desired.opts.dedup();
            }
            if let Some(mount) = self.active.get_mut(&self.key) {
                mount.opts.push("bind".into());
            }
        }
        below.filter(|_| on_device).map_or(own, |below| below.device)
    }

    /// Remounts the file system if options differ, or were removed since the last run. Returns the result if the state
    /// ends here.
    fn ensure_options(&mut self) -> Result<Option<StateReturn>, CallError> {
        let Some(mount) = self.active.get(&self.key).filter(|_| !self.desired.opts.is_empty()) else { return Ok(None) };
        let mut differing = differing(&self.desired, mount);
        differing.sort();
        if !differing.is_empty()
            && let Some(ended) = self.remount(&differing.join(","), " ")?
        {
            return Ok(Some(ended));
        }
        let cache = self.call("mount.read_mount_cache", map! {"name" => self.path.display().to_string()})?;
        let Some(before) = cache.get("opts").map(crate::mount::options) else {
            self.remember = true;
            return Ok(None);
        };
        let gone: Vec<String> = before.into_iter().filter(|opt| !self.desired.opts.contains(opt)).collect();
        if gone.is_empty() { Ok(None) } else { self.remount(&gone.join(","), "") }
    }

    fn remount(&mut self, options: &str, gap: &str) -> Result<Option<StateReturn>, CallError> {
        if self.context.test {
            self.comment = format!("Remount would be forced because options ({options}){gap}changed");
            return Ok(Some(self.report(None)));
        }
        let fstype = self.desired.fstype.as_str();
        let path = self.path.display().to_string();
        let how = map! {
            "name" => &path,
            "device" => &self.desired.device,
            "mkmnt" => self.desired.mkmnt,
            "fstype" => fstype,
            "opts" => self.desired.opts.clone(),
        };
        let output = if ["nfs", "cvfs"].contains(&fstype) || fstype.starts_with("fuse") {
            let mut message = format!("Forced unmount and mount because options ({options}) changed");
            let mut unmounted = self.call("mount.umount", map! {"name" => &path})?;
            if unmounted != true.into() {
                message = format!(
                    "Forced a lazy unmount and mount because the previous unmount failed and because the options \
                     ({options}) changed"
                );
                unmounted = self.call("mount.umount", map! {"name" => &path, "lazy" => true})?;
            }
            self.changes.insert("umount".into(), message.into());
            if unmounted != true.into() {
                return Ok(Some(self.failed(format!("Unable to unmount {path}: {unmounted}."))));
            }
            self.call("mount.mount", how)?
        } else {
            let message = format!("Forced remount because options ({options}) changed");
            self.changes.insert("umount".into(), message.into());
            self.call("mount.remount", how)?
        };
        self.remember = true;
        Ok(if output == true.into() { None } else { Some(self.failed(output.to_string())) })
    }

    /// Unmounts the mount point if another device is mounted there. Returns the result so far, or as inner error the
    /// final result of the state.
    fn ensure_device(&mut self) -> Result<Result<Option<bool>, StateReturn>, CallError> {
        let Some(mount) = self.active.get(&self.key) else { return Ok(Ok(Some(true))) };
        let mut devices = vec![mount.device.clone(), real_path(&mount.device)];
        let uuid = device_identifier("uuid", &mount.device).map(|uuid| uuid.to_lowercase());
        for other in [mount.alt_device.clone(), uuid, device_identifier("label", &mount.device)].into_iter().flatten() {
            if !devices.contains(&other) {
                devices.push(other);
            }
        }
        if devices.contains(&self.device) {
            self.comment = "Target was already mounted".into();
            return Ok(Ok(Some(true)));
        }
        for pattern in &self.desired.device_name_regex {
            let pattern = Regex::new(pattern).map_err(CallError::execution)?;
            if let Some(device) = devices.iter().find(|device| pattern.is_match_at_start(device).unwrap_or(false)) {
                self.comment =
                    format!("An umount will not be forced because device matched device_name_regex: {device}");
                return Ok(Ok(Some(true)));
            }
        }
        let desired = &self.desired.device;
        if self.context.test {
            self.comment =
                format!("An umount would have been forced because devices do not match.  Watched: {desired}");
            return Ok(Ok(None));
        }
        let real = if self.device == *desired { String::new() } else { format!(" ({})", self.device) };
        let message = format!(
            "Forced unmount because devices don't match. Wanted: {desired}{real}, current: {}",
            devices.join(", ")
        );
        self.changes.insert("umount".into(), message.into());
        let user = self.desired.user.as_deref();
        self.call("mount.umount", map! {"name" => self.path.display().to_string(), "user" => user})?;
        self.active = active::read(&self.context.call)?;
        if self.active.contains_key(&self.key) {
            return Ok(Err(self.failed("Unable to unmount")));
        }
        self.remember = true;
        Ok(Ok(Some(true)))
    }

    /// Mounts the device, unless `mount` is false; with `mkmnt`, the mount point is created. Returns the same values as
    /// `ensure_device`.
    fn ensure_mounted(&mut self) -> Result<Result<Option<bool>, StateReturn>, CallError> {
        let (name, mkmnt, test) = (self.desired.name.clone(), self.desired.mkmnt, self.context.test);
        let exists = Path::new(&name).exists();
        if !self.desired.mount {
            self.comment = match (exists, test, mkmnt) {
                (true, true, _) => format!("{name} would not be mounted"),
                (true, false, _) => format!("{name} not mounted"),
                (false, true, true) => format!("{name} would be created, but not mounted"),
                (false, true, false) => format!("{name} does not exist and would neither be created nor mounted"),
                (false, false, true) => format!("{name} was created, not mounted"),
                (false, false, false) => format!("{name} not present and not mounted"),
            };
            if !exists && !test && mkmnt {
                make_directory(&name, self.desired.user.as_deref())?;
            }
            return Ok(Ok(if test && !exists { None } else { Some(true) }));
        }
        if test {
            self.comment = match (exists, mkmnt) {
                (true, _) => format!("{name} would be mounted"),
                (false, true) => format!("{name} would be created and mounted"),
                (false, false) => format!("{name} does not exist and would not be created"),
            };
            return Ok(Err(self.report(None)));
        }
        if !exists && !mkmnt {
            return Ok(Err(self.failed("Mount directory is not present")));
        }
        let how = map! {
            "name" => &name,
            "device" => &self.desired.device,
            "mkmnt" => mkmnt,
            "fstype" => &self.desired.fstype,
            "opts" => self.desired.opts.clone(),
            "user" => self.desired.user.as_deref(),
        };
        let output = self.call("mount.mount", how)?;
        self.active = active::read(&self.context.call)?;
        self.remember = true;
        if let Some(complaint) = output.as_str() {
            return Ok(Err(self.failed(complaint)));
        }
        if self.active.contains_key(&self.key) {
            self.comment = "Target was successfully mounted".into();
            self.changes.insert("mount".into(), true.into());
        }
        Ok(Ok(Some(true)))
    }

    /// Ensures that the table has the entry, and returns the result of the state.
    fn ensure_entry(&mut self, result: Option<bool>) -> Result<StateReturn, CallError> {
        let Desired { name, device, fstype, opts, dump, pass, .. } = &self.desired;
        let entry = Entry::new(name, device, fstype, &opts.clone().into(), dump, pass);
        let how = WriteOptions {
            match_on: self.desired.match_on.clone(),
            test: self.context.test,
            ..WriteOptions::default()
        };
        let outcome = fstab::set(&self.desired.config, &entry, &how)?;
        if self.context.test && outcome != Outcome::Present {
            let needs = match (outcome, self.desired.mount) {
                (Outcome::New, true) => {
                    format!("{name} is mounted, but needs to be written to the fstab in order to be made persistent.")
                }
                (Outcome::New, false) => {
                    format!("{name} needs to be written to the fstab in order to be made persistent.")
                }
                (_, true) => format!("{name} is mounted, but its fstab entry must be updated."),
                (_, false) => format!("The {name} fstab entry must be updated."),
            };
            self.comment = format!("{}. {needs}", self.comment);
            return Ok(self.report(None));
        }
        if self.remember && !self.context.test {
            let how = map! {
                "real_name" => self.path.display().to_string(),
                "device" => &self.desired.device,
                "mkmnt" => self.desired.mkmnt,
                "fstype" => &self.desired.fstype,
                "mount_opts" => self.desired.opts.clone(),
            };
            self.call("mount.write_mount_cache", how)?;
        }
        let (comment, change) = super::fstab_report(outcome);
        self.comment.push_str(comment);
        self.changes.extend(change.map(|change| ("persist".into(), change.into())));
        Ok(self.report(result))
    }
}

fn real_path(path: &str) -> String {
    std::fs::canonicalize(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
