//! The local time zone and the current time in it.
//!
//! `jiff::Zoned::now` opens the whole time zone database, some 1,500 names, to find one zone. This crate reads only the
//! file of the local zone, named by `TZ` or /etc/localtime, and rereads it when it changes.

mod zone_file;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use parking_lot::Mutex;

use zone_file::ZoneFile;

/// The zone of a host whose `TZ` is not set.
const LOCALTIME: &str = "/etc/localtime";

/// The directories of time zone files, in search order, after the directory in `TZDIR`.
const ZONE_DIRECTORIES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];

/// The interval between two checks of the zone's file for changes.
const INTERVAL: Duration = Duration::from_secs(2);

static LOCAL: LazyLock<Mutex<LocalZone>> = LazyLock::new(|| {
    let own = std::env::var_os("TZDIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let directories: Vec<_> = own.into_iter().chain(ZONE_DIRECTORIES.map(PathBuf::from)).collect();
    let setting = std::env::var_os("TZ");
    Mutex::new(LocalZone::new(setting.as_deref(), Path::new(LOCALTIME), &directories))
});

/// Returns the current time in the local time zone.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(zone())
}

/// Returns the local time zone: that of `TZ`, or else of /etc/localtime; UTC if neither can be read.
///
/// A change of the file is noticed within two seconds. `TZ` is read once, at the first call of the process.
pub fn zone() -> TimeZone {
    LOCAL.lock().at(Instant::now())
}

/// The source of the local time zone.
#[derive(Debug)]
enum LocalZone {
    /// A zone that cannot change while the process runs.
    Fixed(TimeZone),
    /// A file that may be replaced at any time, and the time of its last check.
    File(ZoneFile, Instant),
}

impl LocalZone {
    /// Selects the source as libc does.
    fn new(setting: Option<&OsStr>, localtime: &Path, directories: &[PathBuf]) -> Self {
        let of_file = |path: PathBuf| LocalZone::File(ZoneFile::read(path), Instant::now());
        let Some(setting) = setting else { return of_file(localtime.to_owned()) };
        let Some(text) = setting.to_str() else { return LocalZone::Fixed(TimeZone::UTC) };
        let name = text.strip_prefix(':').unwrap_or(text);
        if name.is_empty() {
            return LocalZone::Fixed(TimeZone::UTC);
        }
        if name.starts_with('/') {
            return of_file(name.into());
        }
        let in_directories = directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file());
        match in_directories {
            Some(path) if !name.split('/').any(|part| part == "..") => of_file(path),
            // A POSIX rule such as `CET-1CEST,M3.5.0,M10.5.0/3`.
            _ => LocalZone::Fixed(TimeZone::posix(name).unwrap_or(TimeZone::UTC)),
        }
    }

    /// Returns the zone, after checking its file if the interval has passed.
    fn at(&mut self, now: Instant) -> TimeZone {
        match self {
            LocalZone::Fixed(zone) => zone.clone(),
            LocalZone::File(file, checked) => {
                if now.saturating_duration_since(*checked) >= INTERVAL {
                    *checked = now;
                    file.refresh();
                }
                file.zone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns a zone file (version 1) of one fixed offset.
    fn tzif(offset: i32, name: &str) -> Vec<u8> {
        let mut data = b"TZif".to_vec();
        data.extend([0; 16]);
        for count in [0, 0, 0, 0, 1, name.len() + 1] {
            data.extend(u32::try_from(count).unwrap().to_be_bytes());
        }
        data.extend(offset.to_be_bytes());
        data.extend([0, 0]);
        data.extend(name.as_bytes());
        data.push(0);
        data
    }

    /// Returns the offset in seconds and the abbreviation of the zone.
    fn shown(zone: &TimeZone) -> String {
        Timestamp::UNIX_EPOCH.to_zoned(zone.clone()).strftime("%z %Z").to_string()
    }

    #[test]
    fn the_zone_is_that_of_tz_or_of_localtime() {
        let directory = tempfile::tempdir().unwrap();
        let (localtime, zones) = (directory.path().join("localtime"), directory.path().join("zoneinfo"));
        fs::create_dir_all(zones.join("Some")).unwrap();
        fs::write(zones.join("Some/Where"), tzif(3600, "ONE")).unwrap();
        fs::write(zones.join("broken"), "no zone").unwrap();
        fs::write(&localtime, tzif(7200, "TWO")).unwrap();
        let absolute = format!(":{}", localtime.display());
        let cases = [
            (None, "+0200 TWO"),
            (Some(""), "+0000 UTC"),
            (Some(":"), "+0000 UTC"),
            (Some("Some/Where"), "+0100 ONE"),
            (Some(":Some/Where"), "+0100 ONE"),
            (Some(absolute.as_str()), "+0200 TWO"),
            (Some("XYZ-3"), "+0300 XYZ"),
            (Some("CET-1CEST,M3.5.0,M10.5.0/3"), "+0100 CET"),
            (Some("../localtime"), "+0000 UTC"),
            (Some("No/Where"), "+0000 UTC"),
            (Some("broken"), "+0000 UTC"),
            (Some("Some"), "+0000 UTC"),
        ];
        for (setting, expected) in cases {
            let directories = [directory.path().join("none"), zones.clone()];
            let mut zone = LocalZone::new(setting.map(OsStr::new), &localtime, &directories);
            assert_eq!(shown(&zone.at(Instant::now())), expected, "{setting:?}");
        }
    }

    #[test]
    fn a_replaced_file_is_read_again_after_the_interval() {
        let directory = tempfile::tempdir().unwrap();
        let (localtime, target) = (directory.path().join("localtime"), directory.path().join("zoneinfo/A"));
        fs::create_dir(directory.path().join("zoneinfo")).unwrap();
        let replace = |offset, name| {
            fs::write(target.with_extension("new"), tzif(offset, name)).unwrap();
            fs::rename(target.with_extension("new"), &target).unwrap();
        };
        replace(3600, "ONE");
        std::os::unix::fs::symlink(&target, &localtime).unwrap();
        let start = Instant::now();
        let mut zone = LocalZone::new(None, &localtime, &[]);
        assert_eq!(zone.at(start).iana_name(), Some("A"));
        replace(7200, "TWO");
        assert_eq!(shown(&zone.at(start + INTERVAL / 2)), "+0100 ONE");
        assert_eq!(shown(&zone.at(start + INTERVAL * 2)), "+0200 TWO");
        // While the file is missing or damaged, the last zone is kept.
        fs::write(target.with_extension("new"), "no zone").unwrap();
        fs::rename(target.with_extension("new"), &target).unwrap();
        assert_eq!(shown(&zone.at(start + INTERVAL * 4)), "+0200 TWO");
        fs::remove_file(&target).unwrap();
        assert_eq!(shown(&zone.at(start + INTERVAL * 6)), "+0200 TWO");
        replace(3600, "ONE");
        assert_eq!(shown(&zone.at(start + INTERVAL * 8)), "+0100 ONE");
    }

    #[test]
    fn the_local_time_is_that_of_jiff() {
        #[allow(clippy::disallowed_methods, reason = "it is the reference")]
        let (expected, now) = (Zoned::now(), now());
        assert_eq!(now.offset(), expected.offset());
        assert!(now.duration_since(&expected).as_secs() < 60);
    }
}
