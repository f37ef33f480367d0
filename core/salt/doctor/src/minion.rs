//! What only a minion has: returns that wait, and jobs whose ids tell the master's time.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime};

use brine_ids::Jid;
use brine_system::user_files;

use crate::daemon::Daemon;
use crate::finding::{Finding, Role};
use crate::installation::Installation;
use crate::keys::shown_age;
use crate::kinds;
use crate::processes;

/// The age from which a return waits for too long.
const OLD: Duration = Duration::from_secs(120);
/// The maximum number of returns that are counted.
const MAX_COUNTED: usize = 100_000;
/// The difference of clocks that is reported, in seconds: more than a job may be late that was missed and sent again.
const DIFFERENCE: i64 = 120;
/// The part of an hour by which time zones differ, in seconds: ids are in the master's local time.
const ZONE: i64 = 900;

/// Examines the returns that wait for the master, and the last job.
pub fn examine(installation: &Installation) -> Vec<Finding> {
    let mut findings: Vec<Finding> = returns(&installation.cachedir.join("returns")).into_iter().collect();
    findings.extend(clock(&installation.cachedir.join("seen_jobs")));
    findings
}

fn returns(directory: &Path) -> Option<Finding> {
    let files = std::fs::read_dir(directory).ok()?.flatten().take(MAX_COUNTED);
    let ages = files.filter_map(|entry| entry.metadata().ok()?.modified().ok()?.elapsed().ok());
    let (count, oldest) = ages.fold((0u64, Duration::ZERO), |(count, oldest), age| (count + 1, oldest.max(age)));
    (oldest > OLD).then(|| {
        Finding::new(&kinds::RETURNS_WAITING, Role::Minion, format!("{count} returns of jobs wait for the master"))
            .at(directory.display())
            .because(format!("the master has not accepted them; the oldest waits for {}", shown_age(oldest)))
    })
}

/// Compares the time of the last job's id, which is the master's, with the time at which it was received.
fn clock(path: &Path) -> Option<Finding> {
    let mut file = user_files::open(path).ok()?;
    let status = file.metadata().ok()?;
    file.seek(SeekFrom::Start(status.len().saturating_sub(64))).ok()?;
    let mut text = String::new();
    file.take(64).read_to_string(&mut text).ok()?;
    let last = text.lines().next_back()?.trim_start_matches('+');
    let published = last.get(..20)?.parse::<Jid>().ok()?.time()?;
    let received = status.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let received = jiff::Timestamp::from_second(i64::try_from(received.as_secs()).ok()?).ok()?;
    let received = received.to_zoned(brine_clock::zone()).datetime();
    let ahead = received.duration_since(published).as_secs();
    let difference = beyond_zones(ahead)?;
    Some(
        Finding::new(
            &kinds::CLOCK_DIFFERS,
            Role::Minion,
            format!("the clock of this host and that of its master differ by about {} s", difference.abs()),
        )
        .at(path.display())
        .because(format!("the last job was published at {published} and received at {received}"))
        .mended_by("timedatectl set-ntp true; timedatectl   # here and on the master"),
    )
}

/// Returns the difference that no difference of time zones explains.
fn beyond_zones(seconds: i64) -> Option<i64> {
    let rest = seconds.rem_euclid(ZONE);
    let rest = if rest > ZONE / 2 { rest - ZONE } else { rest };
    let is_zone = seconds.abs() <= 15 * 3600 && rest.abs() <= DIFFERENCE;
    (seconds.abs() > DIFFERENCE && !is_zone).then_some(if seconds.abs() <= 15 * 3600 && seconds.abs() > ZONE {
        rest
    } else {
        seconds
    })
}

/// Finds a daemon without a connection to the publish port of a master, although the masters answer.
pub fn connection(daemon: &Daemon, installation: &Installation, ports: &[u16]) -> Option<Finding> {
    let process = daemon.process.as_ref()?;
    if processes::is_connected(process.pid, ports)? {
        return None;
    }
    Some(
        Finding::new(
            &kinds::MINION_NOT_CONNECTED,
            Role::Minion,
            "the minion is not connected, although its master answers",
        )
        .at(format!("process {}", process.pid))
        .because("it has no connection to the publish port: it has just been started, or waits before it tries again")
        .mended_by(daemon.restart_command(installation)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones_are_no_difference_of_clocks() {
        for (seconds, expected) in [
            (0, None),
            (-60, None),
            (100, None),
            (300, Some(300)),
            (-300, Some(-300)),
            (3600, None),
            (-19_800 + 30, None),
            (3600 + 400, Some(400)),
            (86_400, Some(86_400)),
        ] {
            assert_eq!(beyond_zones(seconds), expected, "{seconds}");
        }
    }
}
