//! A time zone file, reread when it is replaced or changed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

/// The maximum size of a zone file; the largest of the tz database has under 4,000 bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The identity of a file's content: device, inode, size, and modification time.
type Version = (u64, u64, u64, i64, i64);

/// A time zone file and its last readable content.
#[derive(Debug)]
pub(crate) struct ZoneFile {
    path: PathBuf,
    version: Option<Version>,
    zone: TimeZone,
}

impl ZoneFile {
    /// Reads a zone file. The zone is UTC until the file is readable.
    pub fn read(path: PathBuf) -> Self {
        let mut file = ZoneFile { path, version: None, zone: TimeZone::UTC };
        file.refresh();
        file
    }

    /// Returns the zone of the last readable content.
    pub fn zone(&self) -> TimeZone {
        self.zone.clone()
    }

    /// Rereads the file if it has changed.
    pub fn refresh(&mut self) {
        // Reading a pipe would block.
        let version = fs::metadata(&self.path).ok().filter(fs::Metadata::is_file).map(|meta| version(&meta));
        if version == self.version {
            return;
        }
        self.version = version;
        if version.is_some()
            && let Ok(zone) = load(&self.path)
        {
            self.zone = zone;
        }
    }
}

fn version(meta: &fs::Metadata) -> Version {
    (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec())
}

fn load(path: &Path) -> io::Result<TimeZone> {
    let mut data = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut data)?;
    TimeZone::tzif(&name(path), &data).map_err(io::Error::other)
}

/// Returns the name of the zone: the path below the directory `zoneinfo`, after resolving a link, or `Local`.
fn name(path: &Path) -> String {
    let target = fs::read_link(path).unwrap_or_else(|_| path.to_owned());
    let target = target.to_string_lossy();
    target.rsplit_once("zoneinfo/").map_or_else(|| "Local".to_owned(), |(_, name)| name.to_owned())
}
