//! The local time zone, the current time in it, and formats of times.
//!
//! `jiff::Zoned::now` opens the whole time zone database, some 1,500 names, to find one zone. This crate reads only the
//! file of the local zone, named by `TZ` or /etc/localtime, and rereads it when it changes.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod history;
mod strftime;
mod zone_file;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use parking_lot::Mutex;

use history::History;
pub use strftime::{strftime, strftime_in_zone};
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

/// The readings of the wall clock, and the point from which the monotonic clock counts.
static HISTORY: LazyLock<(Instant, Mutex<History>)> = LazyLock::new(|| (Instant::now(), Mutex::default()));

/// Returns the current time in the local time zone.
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(zone())
}

/// Returns the time from which `age` is subtracted to find what is older: the reading of the wall clock when `age` ago
/// by the monotonic clock, plus `age`. While the clock is not set, this is [`now`]. If it is set forward while the
/// process runs, what was stored before does not age at once. A process that removes old data calls this regularly, and
/// once at its start.
pub fn now_for_age(age: Duration) -> Zoned {
    let (start, history) = &*HISTORY;
    let (monotonic, wall) =
        (SignedDuration::try_from(start.elapsed()).unwrap_or(SignedDuration::MAX), Timestamp::now());
    let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
    let reading = {
        let mut history = history.lock();
        history.observe(monotonic, wall);
        history.reading(monotonic.saturating_sub(age))
    };
    reading.and_then(|reading| reading.checked_add(age).ok()).unwrap_or(wall).to_zoned(zone())
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
mod tests;
