//! The format of backups: a gzipped tar archive. Its first member is the [`Manifest`]; the others are directories and
//! regular files with their absolute paths below `files`, with mode, time and the names of their owners.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use brine_config::MasterConfig;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use nix::libc;
use nix::unistd::{Gid, Group, Uid, User};
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, Entries, EntryType, Header};

/// The format that this version writes and reads.
const FORMAT: u32 = 1;
/// The name of the manifest in the archive.
const MANIFEST: &str = "brine-backup.json";
/// The directory of the files in the archive.
pub(super) const FILES: &str = "files";
/// The longest manifest, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;

/// What a backup has.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    /// The version of Brine that wrote it.
    pub version: String,
    /// The time of its beginning, in UTC.
    pub time: String,
    /// The name of the host.
    pub host: String,
    /// The path of the store.
    pub store: PathBuf,
    /// The paths of the files and directories that are restored as a whole, besides the store.
    pub units: Vec<PathBuf>,
}

impl Manifest {
    /// Describes a backup that begins now.
    pub fn new(config: &MasterConfig, units: Vec<PathBuf>) -> Self {
        let mut absolute: Vec<PathBuf> = units.iter().filter_map(|path| std::path::absolute(path).ok()).collect();
        absolute.sort();
        absolute.dedup();
        let all = absolute.clone();
        // A unit in another one is part of it.
        absolute.retain(|unit| !all.iter().any(|other| other != unit && unit.starts_with(other)));
        let store = std::path::absolute(config.store_path()).unwrap_or_else(|_| config.store_path());
        Self {
            format: FORMAT,
            version: brine_config::VERSION.to_owned(),
            time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            host: nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            store,
            units: absolute,
        }
    }
}

/// An archive that is being written.
pub(super) struct Writer<W: Write> {
    tar: Builder<GzEncoder<W>>,
    files: u64,
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl<W: Write> Writer<W> {
    /// Begins with the manifest.
    pub fn begin(target: W, manifest: &Manifest) -> anyhow::Result<Self> {
        let mut tar = Builder::new(GzEncoder::new(target, Compression::fast()));
        let text = serde_json::to_vec_pretty(manifest)?;
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, MANIFEST, &*text).context("writing the backup failed")?;
        Ok(Self { tar, files: 0, users: HashMap::new(), groups: HashMap::new() })
    }

    /// Adds a file, or a directory with everything below it. Links below a directory are left out with a warning.
    pub fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        // The path of the configuration may be a link, as to a repository.
        let metadata = path.metadata().with_context(|| format!("reading {} failed", path.display()))?;
        if metadata.is_file() {
            return self.add_file(&path.canonicalize()?, path);
        }
        self.add_directory(path, &metadata)
    }

    fn add_directory(&mut self, path: &Path, metadata: &Metadata) -> anyhow::Result<()> {
        let failed = || format!("reading {} failed", path.display());
        let mut header = self.header(metadata, EntryType::Directory);
        header.set_size(0);
        self.tar.append_data(&mut header, inside(path), io::empty()).context("writing the backup failed")?;
        let mut entries =
            std::fs::read_dir(path).with_context(failed)?.collect::<io::Result<Vec<_>>>().with_context(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // A key that has just been moved is in its new directory, too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error).with_context(|| format!("reading {} failed", path.display())),
            };
            if metadata.is_dir() {
                self.add_directory(&path, &metadata)?;
            } else if metadata.is_file() {
                match self.add_file(&path, &path) {
                    Err(error)
                        if error
                            .downcast_ref::<io::Error>()
                            .is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {}
                    added => added?,
                }
            } else {
                tracing::warn!(path = %path.display(), "left out of the backup: neither a file nor a directory");
            }
        }
        Ok(())
    }

    /// Adds a file under a path that may be another one than its own.
    pub fn add_file(&mut self, path: &Path, archive_path: &Path) -> anyhow::Result<()> {
        let failed = || format!("reading {} failed", path.display());
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = File::options().read(true).custom_flags(flags).open(path).with_context(failed)?;
        let metadata = file.metadata().with_context(failed)?;
        if !metadata.is_file() {
            bail!("reading {} failed: it is no longer a regular file", path.display());
        }
        let mut header = self.header(&metadata, EntryType::Regular);
        header.set_size(metadata.len());
        // Neither more than the header says, nor less, if it changes meanwhile.
        let content = file.take(metadata.len()).chain(io::repeat(0)).take(metadata.len());
        self.tar.append_data(&mut header, inside(archive_path), content).context("writing the backup failed")?;
        self.files += 1;
        Ok(())
    }

    fn header(&mut self, metadata: &Metadata, kind: EntryType) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(metadata.mode() & 0o7777);
        header.set_mtime(metadata.mtime().try_into().unwrap_or(0));
        header.set_uid(metadata.uid().into());
        header.set_gid(metadata.gid().into());
        let user = self.users.entry(metadata.uid()).or_insert_with_key(|uid| {
            User::from_uid(Uid::from_raw(*uid)).ok().flatten().map_or_else(String::new, |user| user.name)
        });
        let group = self.groups.entry(metadata.gid()).or_insert_with_key(|gid| {
            Group::from_gid(Gid::from_raw(*gid)).ok().flatten().map_or_else(String::new, |group| group.name)
        });
        // Names that do not fit stand for their numbers.
        let _ = header.set_username(user);
        let _ = header.set_groupname(group);
        header
    }

    /// Completes the archive. Returns the number of files, and its destination.
    pub fn finish(self) -> anyhow::Result<(u64, W)> {
        let files = self.files;
        let finish = || -> io::Result<W> {
            let mut target = self.tar.into_inner()?.finish()?;
            target.flush()?;
            Ok(target)
        };
        Ok((files, finish().context("writing the backup failed")?))
    }
}

/// Returns the path in the archive of an absolute path.
fn inside(path: &Path) -> PathBuf {
    Path::new(FILES).join(path.strip_prefix("/").unwrap_or(path))
}

/// Opens an archive.
pub(super) fn open(source: impl Read + 'static) -> Archive<Box<dyn Read>> {
    Archive::new(Box::new(MultiGzDecoder::new(source)))
}

/// Reads the manifest, the first entry of an archive.
pub(super) fn manifest(entries: &mut Entries<'_, Box<dyn Read>>) -> anyhow::Result<Manifest> {
    const FOREIGN: &str = "the file is not a backup of `brine backup`";
    let Some(Ok(first)) = entries.next() else { bail!(FOREIGN) };
    if first.path().ok().as_deref() != Some(Path::new(MANIFEST)) {
        bail!(FOREIGN);
    }
    let mut text = Vec::new();
    first.take(MAX_MANIFEST).read_to_end(&mut text).context(FOREIGN)?;
    let manifest: Manifest = serde_json::from_slice(&text).context(FOREIGN)?;
    if manifest.format > FORMAT {
        bail!(
            "the backup has format {}, of Brine {}: this version reads formats up to {FORMAT}; install that version first",
            manifest.format,
            manifest.version
        );
    }
    Ok(manifest)
}
