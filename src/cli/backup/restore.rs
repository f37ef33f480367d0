//! `brine restore`: everything is unpacked beside its place first, then renamed; what stood there is kept.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use brine_bus::store::{Store, StoreError};
use brine_system::files::Attributes;
use brine_system::user_files;
use clap::{CommandFactory, Parser};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{Gid, Group, Uid, User, fchown, geteuid, syncfs};
use tar::{Entry, EntryType};

use super::archive::{self, FILES, Manifest};
use crate::cli::usage;
use crate::ui::{print_plain, print_plain_error};

pub const USAGE: &str = "brine restore [options] FILE";
const NAME: &str = "brine restore";

/// Restore a backup of a master: its keys, its store and its configuration
#[derive(Parser, Debug)]
#[command(
    after_help = "Stop the master first. Minions connect to the restored master with the keys that they have, if they reach it by the same name or address.\n\nExamples:\n  brine restore salt-master.tar.gz\n  brine restore --list salt-master.tar.gz             what it has\n  brine restore --root /mnt salt-master.tar.gz        below another directory\n  brine restore --force salt-master.tar.gz            keep what is there under other names"
)]
struct Arguments {
    /// The file that `brine backup` wrote, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Restore although files are there: they are renamed
    #[arg(short, long)]
    force: bool,
    /// Show what the backup has, and change nothing
    #[arg(short, long)]
    list: bool,
    /// Restore below this directory
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true)]
    root: PathBuf,
    /// The user and group of all files, in the place of those of the backup
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse(NAME, USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let mut archive = if arguments.file == Path::new("-") {
        archive::open(io::stdin())
    } else {
        let failed = || format!("reading {} failed", arguments.file.display());
        archive::open(File::open(&arguments.file).with_context(failed)?)
    };
    let mut entries = archive.entries()?;
    let manifest = archive::manifest(&mut entries)?;
    if arguments.list {
        print_plain(format_args!("{}, {}, Brine {}", manifest.host, manifest.time, manifest.version));
        for unit in manifest.units.iter().chain([&manifest.store]) {
            print_plain(unit.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let owners = Owners::new(arguments.owner.as_deref())?;
    let plan = Plan::new(&manifest, &arguments.root)?;
    plan.check(arguments.force)?;
    let unpacked = plan.unpack(entries, &owners).and_then(|files| {
        // The end has the checksum.
        io::copy(&mut archive.into_inner(), &mut io::sink()).context("reading the backup failed: it is incomplete")?;
        plan.put_in_place()?;
        Ok(files)
    });
    let restored = match unpacked {
        Ok(files) => files,
        Err(error) => {
            plan.clean_up();
            return Err(error);
        }
    };
    print_plain_error(format_args!(
        "{restored} files of {} ({}) are restored: start the master, for example by `systemctl start brine-master`",
        manifest.host, manifest.time
    ));
    Ok(ExitCode::SUCCESS)
}

/// Who owns the restored files.
struct Owners {
    fixed: Option<(Uid, Gid)>,
    is_root: bool,
}

impl Owners {
    fn new(name: Option<&str>) -> anyhow::Result<Self> {
        let is_root = geteuid().is_root();
        let fixed = match name {
            None => None,
            Some(name) => match User::from_name(name)? {
                Some(user) => Some((user.uid, user.gid)),
                None => bail!("the user '{name}' does not exist"),
            },
        };
        Ok(Self { fixed, is_root })
    }

    /// Returns the owner of an entry: its names if they exist here. Only root can give files to others.
    fn of(&self, entry: &Entry<'_, impl io::Read>) -> anyhow::Result<Option<(Uid, Gid)>> {
        if !self.is_root || self.fixed.is_some() {
            return Ok(self.fixed);
        }
        let header = entry.header();
        let (user, group) = (header.username().ok().flatten(), header.groupname().ok().flatten());
        let user = match user.filter(|name| !name.is_empty()) {
            Some(name) => match User::from_name(name)? {
                Some(user) => user.uid,
                None => bail!(
                    "the backup has files of the user '{name}', who does not exist here: create the user (the package brine-master creates salt), or name another by --owner"
                ),
            },
            None => Uid::from_raw(header.uid()?.try_into()?),
        };
        let group = match group.filter(|name| !name.is_empty()).map(Group::from_name).transpose()?.flatten() {
            Some(group) => group.gid,
            None => User::from_uid(user)?.map_or(Gid::from_raw(0), |user| user.gid),
        };
        Ok(Some((user, group)))
    }
}

/// A file or directory that is restored as a whole.
struct Unit {
    /// Its path in the backup.
    saved: PathBuf,
    /// Its place.
    place: PathBuf,
    /// Where it is unpacked.
    draft: PathBuf,
}

struct Plan {
    units: Vec<Unit>,
    store: PathBuf,
}

impl Plan {
    fn new(manifest: &Manifest, root: &Path) -> anyhow::Result<Self> {
        let root = std::path::absolute(root)?;
        let mut units = Vec::new();
        for saved in manifest.units.iter().chain([&manifest.store]) {
            let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
            let (true, true, Some(name)) = (saved.is_absolute(), saved.components().all(is_plain), saved.file_name())
            else {
                bail!("the backup is damaged: it names the path {}", saved.display());
            };
            let place = root.join(saved.strip_prefix("/").unwrap_or(saved));
            let mut draft = name.to_owned();
            draft.push(".restoring");
            units.push(Unit { saved: saved.clone(), draft: place.with_file_name(draft), place });
        }
        let store = root.join(manifest.store.strip_prefix("/").unwrap_or(&manifest.store));
        Ok(Self { units, store })
    }

    /// Refuses a host with a running master, or with other files.
    fn check(&self, force: bool) -> anyhow::Result<()> {
        if self.store.exists() {
            match Store::open(&self.store, 1 << 20) {
                Err(error @ StoreError::InUse(_)) => {
                    bail!("{error} Stop it first, for example by `systemctl stop brine-master`")
                }
                // A damaged one is a reason to restore.
                Err(_) => {}
                Ok((store, _)) => drop(store),
            }
        }
        let present = self.units.iter().filter(|unit| has_files(&unit.place));
        let present: Vec<String> = present.map(|unit| unit.place.display().to_string()).collect();
        if !force && !present.is_empty() {
            bail!("{} would be replaced: move them away, or let --force rename them", present.join(", "));
        }
        Ok(())
    }

    /// Unpacks all units beside their places. Returns the number of files.
    fn unpack<'a, R: io::Read + 'a>(
        &self,
        entries: impl Iterator<Item = io::Result<Entry<'a, R>>>,
        owners: &Owners,
    ) -> anyhow::Result<u64> {
        self.clean_up();
        let mut files = 0;
        let mut directories = Vec::new();
        for entry in entries {
            let mut entry = entry.context("reading the backup failed: it is damaged")?;
            let path = entry.path()?.into_owned();
            let target = self
                .target(&path)
                .with_context(|| format!("the backup is damaged: it has the file {}", path.display()))?;
            let failed = || format!("writing {} failed", target.display());
            let (mode, owner) = (entry.header().mode()? & 0o7777, owners.of(&entry)?);
            if let Some(parent) = target.parent() {
                // The master writes in the directories of what it owns.
                let (uid, gid) = owner.map(|(user, group)| (user.as_raw(), group.as_raw())).unzip();
                user_files::create_dir_all_with(parent, Attributes { uid, gid, mode: Some(0o755) })
                    .with_context(|| format!("creating {} failed", parent.display()))?;
            }
            match entry.header().entry_type() {
                EntryType::Directory => {
                    user_files::create_dir(&target, 0o700).with_context(failed)?;
                    directories.push((target, mode, owner));
                }
                EntryType::Regular => {
                    let mut file = user_files::create_new(&target, 0o600).with_context(failed)?;
                    let written = io::copy(&mut entry, &mut file).with_context(failed)?;
                    if written != entry.header().size()? {
                        bail!("reading the backup failed: {} is incomplete", path.display());
                    }
                    settle(&file, mode, owner).with_context(failed)?;
                    files += 1;
                }
                _ => bail!("the backup is damaged: {} is neither a file nor a directory", path.display()),
            }
        }
        // Last, since a directory may be read-only.
        for (path, mode, owner) in directories.iter().rev() {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let directory =
                open(path, flags, Mode::empty()).with_context(|| format!("opening {} failed", path.display()))?;
            settle(&directory, *mode, *owner).with_context(|| format!("changing {} failed", path.display()))?;
        }
        Ok(files)
    }

    /// Returns where a member of the archive is unpacked.
    fn target(&self, path: &Path) -> Option<PathBuf> {
        let saved = Path::new("/").join(path.strip_prefix(FILES).ok()?);
        if !saved.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_))) {
            return None;
        }
        self.units.iter().find_map(|unit| {
            let below = saved.strip_prefix(&unit.saved).ok()?;
            Some(if below.as_os_str().is_empty() { unit.draft.clone() } else { unit.draft.join(below) })
        })
    }

    fn put_in_place(&self) -> anyhow::Result<()> {
        let stamp = jiff::Timestamp::now().strftime("%Y%m%d%H%M%S").to_string();
        for unit in self.units.iter().filter(|unit| unit.draft.symlink_metadata().is_ok()) {
            let failed = || format!("replacing {} failed", unit.place.display());
            if has_files(&unit.place) {
                let mut name = unit.place.file_name().unwrap_or_default().to_owned();
                name.push(format!(".before-restore-{stamp}"));
                let aside = unit.place.with_file_name(name);
                user_files::rename(&unit.place, &aside).with_context(failed)?;
                print_plain_error(format_args!("{} is now {}", unit.place.display(), aside.display()));
            } else if unit.place.is_dir() {
                user_files::remove_dir_all(&unit.place).with_context(failed)?;
            }
            // Everything is on the disk before it has its name.
            syncfs(File::open(&unit.draft).with_context(failed)?.as_fd()).with_context(failed)?;
            user_files::rename(&unit.draft, &unit.place).with_context(failed)?;
        }
        Ok(())
    }

    /// Removes what an unfinished restore has unpacked.
    fn clean_up(&self) {
        for unit in &self.units {
            let removed = match unit.draft.symlink_metadata() {
                Ok(status) if status.is_dir() => user_files::remove_dir_all(&unit.draft),
                Ok(_) => user_files::remove_file(&unit.draft),
                Err(_) => continue,
            };
            if let Err(error) = removed {
                tracing::warn!(path = %unit.draft.display(), %error, "removing an unfinished restore failed");
            }
        }
    }
}

/// Whether a path is a file, or a directory with a file anywhere below. Packages create empty directories.
fn has_files(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Err(_) => false,
        Ok(status) if status.is_dir() => {
            fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(|entry| has_files(&entry.path())))
        }
        Ok(_) => true,
    }
}

/// Sets mode and owner of what was written, before others can reach it.
fn settle(file: &impl AsFd, mode: u32, owner: Option<(Uid, Gid)>) -> nix::Result<()> {
    if let Some((user, group)) = owner {
        fchown(file, Some(user), Some(group))?;
    }
    fchmod(file, Mode::from_bits_truncate(mode))
}
