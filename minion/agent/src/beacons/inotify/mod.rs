//! `inotify`: changes of files and directories.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use brine_text::glob::fnmatch;
use brine_text::python_regex::Regex;
use brine_value::{Map, Value, map};
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags as Flags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

use super::settings::{Settings, flag};
use super::{Beacon, Kind, Options, PollContext, entry};

/// The flags of inotify by their names in the configuration.
const MASKS: &[(&str, Flags)] = &[
    ("access", Flags::IN_ACCESS),
    ("attrib", Flags::IN_ATTRIB),
    ("close_nowrite", Flags::IN_CLOSE_NOWRITE),
    ("close_write", Flags::IN_CLOSE_WRITE),
    ("create", Flags::IN_CREATE),
    ("delete", Flags::IN_DELETE),
    ("delete_self", Flags::IN_DELETE_SELF),
    ("modify", Flags::IN_MODIFY),
    ("moved_from", Flags::IN_MOVED_FROM),
    ("moved_to", Flags::IN_MOVED_TO),
    ("move_self", Flags::IN_MOVE_SELF),
    ("open", Flags::IN_OPEN),
    ("ignored", Flags::IN_IGNORED),
    ("unmount", Flags::IN_UNMOUNT),
    ("dont_follow", Flags::IN_DONT_FOLLOW),
    ("excl_unlink", Flags::from_bits_retain(0x0400_0000)),
    ("oneshot", Flags::IN_ONESHOT),
    ("onlydir", Flags::IN_ONLYDIR),
];
/// The maximum number of events of one poll.
const MAX_EVENTS: usize = 10_000;

struct Files {
    coalesce: bool,
    files: Vec<File>,
    /// The inotify instance, opened by the first poll and reopened after an error.
    notify: Option<Inotify>,
    watches: HashMap<WatchDescriptor, Watched>,
    /// The entries of new directories that this poll and the one before have reported without an event of the kernel.
    found: [HashSet<PathBuf>; 2],
}

/// A configured file or directory.
struct File {
    path: PathBuf,
    mask: Flags,
    recurse: bool,
    auto_add: bool,
    excluded: Vec<Excluded>,
}

enum Excluded {
    Prefix(String),
    Glob(String),
    Regex(Regex),
}

/// The path of an inotify watch.
struct Watched {
    path: PathBuf,
    /// The index of its entry in [`Files::files`].
    file: usize,
}

pub(super) const KIND: Kind = Kind {
    name: "inotify",
    doc: "Changes of files and directories, reported by the kernel.",
    tag: "the configured path",
    options: Options::Named(&[
        entry(
            "files",
            "Required. A mapping of absolute paths to options, or nothing: `mask` (a list of `create`, `delete`, \
             `modify`, `attrib`, `close_write`, ...; by default the first three), `recurse` (False: also watch \
             subdirectories), `auto_add` (False: also watch new subdirectories), `exclude` (a list of path prefixes \
             and globs, or `{<regex>: {regex: True}}`).",
        ),
        entry("coalesce", "Whether equal changes of one poll are reported once (False)."),
    ]),
    fields: &[
        entry("path", "The changed file or directory."),
        entry("change", "The change, such as `IN_MODIFY` or `IN_CREATE|IN_ISDIR`."),
    ],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let files = settings.map("files")?.iter().map(|(path, options)| file(&path.to_string(), options));
    let files = files.collect::<Result<_, String>>()?;
    let coalesce = settings.flag("coalesce", false)?;
    Ok(Box::new(Files {
        coalesce,
        files,
        notify: None,
        watches: HashMap::new(),
        found: [HashSet::new(), HashSet::new()],
    }))
}

fn file(path: &str, options: &Value) -> Result<File, String> {
    let none = Map::new();
    let options = match options {
        Value::Map(options) => options,
        Value::Nil => &none,
        other => return Err(format!("{path}: expected a mapping of options, got {other}")),
    };
    let in_file = |error: String| format!("{path}: {error}");
    let set = |name: &str| options.get(name).map_or(Ok(false), |value| flag(name, value)).map_err(in_file);
    let mut mask = Flags::empty();
    match options.get("mask") {
        None => mask = Flags::IN_CREATE | Flags::IN_DELETE | Flags::IN_MODIFY,
        Some(names) => {
            let words = names.as_list().map_or_else(|| vec![names.clone()], <[Value]>::to_vec);
            for word in words {
                let entry = MASKS.iter().find(|(name, _)| word.as_str() == Some(name));
                let names = || MASKS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                mask |= entry.ok_or_else(|| format!("{path}: mask '{word}' is none of {}", names()))?.1;
            }
        }
    }
    let excluded = options.get("exclude").and_then(Value::as_list).unwrap_or_default();
    let excluded = excluded.iter().map(|entry| excluded_by(entry).map_err(in_file)).collect::<Result<_, _>>()?;
    if !path.starts_with('/') {
        return Err(format!("{path}: expected an absolute path"));
    }
    // Normalizes repeated and trailing slashes.
    let path = Path::new(path).components().collect();
    Ok(File { path, mask, recurse: set("recurse")?, auto_add: set("auto_add")?, excluded })
}

/// Parses an entry of `exclude`: a path, a glob, or a mapping of one of these to options.
fn excluded_by(entry: &Value) -> Result<Excluded, String> {
    let (text, is_regex) = match entry {
        Value::Map(map) => {
            let (text, options) = map.first().ok_or("an entry of 'exclude' is empty")?;
            (text.to_string(), options.get("regex").is_some_and(Value::is_truthy))
        }
        other => (other.to_string(), false),
    };
    if is_regex {
        return Regex::new(&text).map(Excluded::Regex).map_err(|error| format!("exclude '{text}': {error}"));
    }
    Ok(if text.contains('*') { Excluded::Glob(text) } else { Excluded::Prefix(text) })
}

impl File {
    fn excludes(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.excluded.iter().any(|excluded| match excluded {
            Excluded::Prefix(prefix) => path.starts_with(prefix.as_str()),
            Excluded::Glob(glob) => fnmatch(glob, &path),
            Excluded::Regex(regex) => regex.is_match(path.as_ref()).unwrap_or(false),
        })
    }

    /// Returns the flags of the watch. With `auto_add` they include creations and moves, to detect new subdirectories.
    fn flags(&self) -> Flags {
        if self.auto_add { self.mask | Flags::IN_CREATE | Flags::IN_MOVED_TO } else { self.mask }
    }
}

impl Files {
    fn events(&mut self) -> Result<Vec<Map>, String> {
        let failed = |error: Errno| format!("watching files failed: {error}");
        if self.notify.is_none() {
            self.watches.clear();
            self.notify = Some(Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).map_err(failed)?);
        }
        let mut report = Vec::new();
        let mut once = HashSet::new();
        for event in read_events(self.notify.as_ref()).map_err(failed)? {
            if event.mask.contains(Flags::IN_Q_OVERFLOW) {
                tracing::warn!(
                    beacon = "inotify",
                    "the kernel's event queue overflowed; some changes are not reported"
                );
                continue;
            }
            if self.coalesce && !once.insert((event.wd, event.mask, event.cookie, event.name.clone())) {
                continue;
            }
            self.event(&event, &mut report);
        }
        self.found.swap(0, 1);
        self.found[0].clear();
        self.watch_all();
        Ok(report)
    }

    fn event(&mut self, event: &InotifyEvent, report: &mut Vec<Map>) {
        let Some(watched) = self.watches.get(&event.wd) else { return };
        let (directory, number) = (watched.path.clone(), watched.file);
        let path = event.name.as_ref().map_or_else(|| directory.clone(), |name| directory.join(name));
        let Some(file) = self.files.get(number) else { return };
        let kind = event.mask & !Flags::IN_ISDIR;
        let tells = file.mask.intersects(kind) || kind.intersects(Flags::IN_IGNORED | Flags::IN_UNMOUNT);
        let (excluded, adds) = (file.excludes(&path), file.auto_add && file.recurse);
        if kind.contains(Flags::IN_IGNORED) {
            // The file was removed; a new one is watched again.
            self.watches.remove(&event.wd);
        }
        if excluded {
            return;
        }
        let Some((name, _)) = MASKS.iter().find(|(_, flag)| kind.contains(*flag)) else { return };
        let is_directory = event.mask.contains(Flags::IN_ISDIR);
        let is_known = self.found.iter_mut().any(|paths| paths.remove(&path)) && kind.contains(Flags::IN_CREATE);
        if tells && !is_known {
            report.push(change(&directory, &path, name, is_directory));
        }
        if is_directory && adds && kind.contains(Flags::IN_CREATE) {
            self.add(&path, number, report);
        } else if is_directory && adds && kind.contains(Flags::IN_MOVED_TO) {
            self.watch(&path, number, true);
        }
    }

    /// Watches a new directory and reports the creation of what it already holds: the kernel reports only what is
    /// created after a directory is watched.
    fn add(&mut self, directory: &Path, number: usize, report: &mut Vec<Map>) {
        self.watch(directory, number, false);
        let mut entries: Vec<_> = std::fs::read_dir(directory).into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (path, Some(file)) = (entry.path(), self.files.get(number)) else { return };
            if file.excludes(&path) {
                continue;
            }
            if report.len() >= MAX_EVENTS {
                let path = directory.display();
                tracing::warn!(beacon = "inotify", %path, "too many new files at once: some are not reported");
                return;
            }
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if file.mask.contains(Flags::IN_CREATE) && !self.found[1].contains(&path) {
                report.push(change(directory, &path, "create", is_directory));
            }
            self.found[0].insert(path.clone());
            if is_directory {
                self.add(&path, number, report);
            }
        }
    }

    /// Adds watches for configured paths that have none.
    fn watch_all(&mut self) {
        for number in 0..self.files.len() {
            let (path, recurse) = (self.files[number].path.clone(), self.files[number].recurse);
            let is_watched = |watched: &Watched| watched.file == number && watched.path == path;
            if !self.watches.values().any(is_watched) && path.exists() {
                self.watch(&path, number, recurse);
            }
        }
    }

    /// Watches a path, and with `recurse` its subdirectories. Symbolic links to directories are not followed.
    fn watch(&mut self, path: &Path, number: usize, recurse: bool) {
        let (Some(notify), Some(file)) = (&self.notify, self.files.get(number)) else { return };
        match notify.add_watch(path, file.flags()) {
            Ok(watch) => _ = self.watches.insert(watch, Watched { path: path.to_owned(), file: number }),
            // It was removed in the meantime.
            Err(Errno::ENOENT) => return,
            Err(error) => {
                let path = path.display();
                tracing::warn!(beacon = "inotify", %path, %error, "watching a path failed");
                return;
            }
        }
        if !recurse {
            return;
        }
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let directories: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        for directory in directories {
            if !self.files[number].excludes(&directory) {
                self.watch(&directory, number, true);
            }
        }
    }
}

/// Returns the fields of an event.
fn change(directory: &Path, path: &Path, name: &str, is_directory: bool) -> Map {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let suffix = if is_directory { "|IN_ISDIR" } else { "" };
    let change = format!("IN_{}{suffix}", name.to_uppercase());
    map! {"tag" => text(directory), "path" => text(path), "change" => change}
}

impl Beacon for Files {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        self.events().inspect_err(|_| self.notify = None)
    }
}

/// Reads the queued events of an instance, a bounded number.
pub(super) fn read_events(notify: Option<&Inotify>) -> nix::Result<Vec<InotifyEvent>> {
    let mut all = Vec::new();
    let Some(notify) = notify else { return Ok(all) };
    while all.len() < MAX_EVENTS {
        match notify.read_events() {
            Ok(events) => all.extend(events),
            Err(Errno::EAGAIN) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
