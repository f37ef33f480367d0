//! `watchdog`: files that are created, changed, deleted or moved in directories.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use brine_value::{Map, Value, map};
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags as Flags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

use super::inotify::read_events;
use super::settings::Settings;
use super::{Beacon, Kind, Options, PollContext, entry};

/// The names of `mask` with the changes that they select.
const MASKS: &[(&str, &str)] =
    &[("create", "created"), ("modify", "modified"), ("delete", "deleted"), ("move", "moved")];

struct Directories {
    /// The directories, each with the selected changes.
    wanted: Vec<(PathBuf, Vec<&'static str>)>,
    /// The inotify instance, opened by the first poll and reopened after an error.
    notify: Option<Inotify>,
    /// The indexes of the watched directories in `wanted`.
    watches: HashMap<WatchDescriptor, usize>,
}

pub(super) const KIND: Kind = Kind {
    name: "watchdog",
    doc: "Files that are created, changed, deleted or moved in directories, without their subdirectories.",
    tag: "`watchdog`",
    options: Options::Named(&[entry(
        "directories",
        "Required. A mapping of directories to options, or nothing: `mask` (a list of `create`, `modify`, `delete` \
         and `move`; by default all).",
    )]),
    fields: &[
        entry("path", "The file or directory; of a moved one its former path."),
        entry("change", "`created`, `modified`, `deleted` or `moved`. Changes in a directory also modify it."),
    ],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    Ok(Box::new(directories(settings)?))
}

fn directories(settings: &Settings) -> Result<Directories, String> {
    let directories = settings.map("directories")?.iter().map(|(path, options)| {
        let path = path.to_string();
        let options = match options {
            Value::Nil => None,
            Value::Map(options) => options.get("mask"),
            other => return Err(format!("{path}: expected a mapping of options, got {other}")),
        };
        let Some(mask) = options else { return Ok((path.into(), MASKS.iter().map(|(_, change)| *change).collect())) };
        let names = mask.as_list().ok_or_else(|| format!("{path}: option 'mask': expected a list, got {mask}"))?;
        let change = |name: &Value| {
            let entry = MASKS.iter().find(|(word, _)| name.as_str() == Some(word));
            let unknown = || format!("{path}: mask '{name}' is none of create, modify, delete, move");
            entry.map(|(_, change)| *change).ok_or_else(unknown)
        };
        let changes = names.iter().map(change).collect::<Result<_, _>>()?;
        Ok((path.into(), changes))
    });
    Ok(Directories { wanted: directories.collect::<Result<_, _>>()?, notify: None, watches: HashMap::new() })
}

impl Directories {
    fn events(&mut self) -> Result<Vec<Map>, String> {
        let failed = |error: Errno| format!("watching directories failed: {error}");
        if self.notify.is_none() {
            self.watches.clear();
            self.notify = Some(Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).map_err(failed)?);
        }
        let events = read_events(self.notify.as_ref()).map_err(failed)?;
        // Both halves of a move within a directory have the same cookie.
        let halves = |of: Flags| -> HashSet<(WatchDescriptor, u32)> {
            events.iter().filter(|event| event.mask.contains(of)).map(|event| (event.wd, event.cookie)).collect()
        };
        let (from, to) = (halves(Flags::IN_MOVED_FROM), halves(Flags::IN_MOVED_TO));
        let mut report = Vec::new();
        for event in &events {
            if event.mask.contains(Flags::IN_Q_OVERFLOW) {
                tracing::warn!(
                    beacon = "watchdog",
                    "the kernel's event queue overflowed; some changes are not reported"
                );
            }
            let Some(&number) = self.watches.get(&event.wd) else { continue };
            if event.mask.contains(Flags::IN_IGNORED) {
                // The directory was removed; a new one is watched again.
                self.watches.remove(&event.wd);
            }
            let key = (event.wd, event.cookie);
            if event.mask.contains(Flags::IN_MOVED_TO) && from.contains(&key) {
                // Reported with the first half.
                continue;
            }
            let is_moved = event.mask.contains(Flags::IN_MOVED_FROM) && to.contains(&key);
            let (directory, changes) = &self.wanted[number];
            let events = changed(directory, event, is_moved).into_iter();
            report.extend(events.filter(|(_, change)| changes.contains(change)).map(|(path, change)| {
                map! {"tag" => "watchdog", "path" => path.to_string_lossy().into_owned(), "change" => change}
            }));
        }
        self.watch_all();
        Ok(report)
    }

    /// Adds watches for directories that have none.
    fn watch_all(&mut self) {
        let flags = Flags::IN_CREATE
            | Flags::IN_MODIFY
            | Flags::IN_CLOSE_WRITE
            | Flags::IN_DELETE
            | Flags::IN_MOVED_FROM
            | Flags::IN_MOVED_TO
            | Flags::IN_DELETE_SELF;
        let Some(notify) = &self.notify else { return };
        for (number, (path, _)) in self.wanted.iter().enumerate() {
            if self.watches.values().any(|watched| *watched == number) {
                continue;
            }
            match notify.add_watch(path, flags) {
                Ok(watch) => _ = self.watches.insert(watch, number),
                Err(Errno::ENOENT) => {}
                Err(error) => {
                    let path = path.display();
                    tracing::warn!(beacon = "watchdog", %path, %error, "watching a directory failed");
                }
            }
        }
    }
}

/// Returns the changes of an event, as the Python package of this name reports them.
fn changed(directory: &Path, event: &InotifyEvent, is_moved: bool) -> Vec<(PathBuf, &'static str)> {
    let path = event.name.as_ref().map_or_else(|| directory.to_owned(), |name| directory.join(name));
    let mask = event.mask;
    let own = if mask.contains(Flags::IN_MOVED_FROM) && is_moved {
        "moved"
    } else if mask.intersects(Flags::IN_CREATE | Flags::IN_MOVED_TO) {
        "created"
    } else if mask.intersects(Flags::IN_DELETE | Flags::IN_MOVED_FROM) {
        "deleted"
    } else if mask.contains(Flags::IN_CLOSE_WRITE) {
        return vec![(directory.to_owned(), "modified")];
    } else if mask.contains(Flags::IN_MODIFY) {
        return vec![(path, "modified")];
    } else if mask.contains(Flags::IN_DELETE_SELF) {
        return vec![(directory.to_owned(), "deleted")];
    } else {
        return Vec::new();
    };
    vec![(path, own), (directory.to_owned(), "modified")]
}

impl Beacon for Directories {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        self.events().inspect_err(|_| self.notify = None)
    }
}

#[cfg(test)]
mod tests;
