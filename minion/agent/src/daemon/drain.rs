//! The stop of a minion with running jobs: they go on, and a master gets their returns. One of them may be what upgrades
//! the minion, and a package manager that is killed leaves a host to be repaired by hand.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Connected, Shutdown};

/// The time for which returns may wait for the master once all jobs have ended.
const RETURNS_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of checks.
const INTERVAL: Duration = Duration::from_millis(50);
/// The time after which a program that waits for services counts as one that waits for this minion.
const WAITING: Duration = Duration::from_secs(3);

/// Waits until jobs that have begun have ended, and their returns have arrived. Ends early after `job_stop_timeout`, at a
/// second signal, and when a job waits for the stop of the minion itself.
pub(super) async fn finish_jobs(all: &[Arc<Connected>], first: &Arc<Connected>, shutdown: &Shutdown) {
    let limit = first.minion.config.job_stop_timeout.seconds();
    if limit.is_zero() || running(first) == 0 {
        return;
    }
    tracing::warn!(
        jobs = running(first),
        ?limit,
        "the minion waits for running jobs (job_stop_timeout); a second signal ends them"
    );
    first.pool.refuse();
    tokio::select! {
        () = jobs_have_ended(first) => {}
        () = tokio::time::sleep(limit) => return tracing::warn!(jobs = running(first), "running jobs are ended: job_stop_timeout is over"),
        () = a_job_waits(first) => return tracing::info!("a job waits for the stop of the minion: it is not waited for"),
        () = shutdown.at_once.cancelled() => return,
    }
    let returned = async {
        while all.iter().any(|connected| connected.returns.len() > 0) {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::select! {
        () = returned => {}
        // They are on the disk.
        () = tokio::time::sleep(RETURNS_TIMEOUT) => {}
        () = shutdown.at_once.cancelled() => {}
    }
}

/// Returns the number of jobs that have begun. Those that wait for others are fetched again after the restart.
fn running(first: &Connected) -> usize {
    first.minion.jobs.lock().values().filter(|job| !job.is_held.load(Ordering::Relaxed)).count()
}

async fn jobs_have_ended(first: &Connected) {
    while running(first) > 0 {
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Waits for a job whose program waits for systemd, as `systemctl restart brine-minion` does: neither would end.
async fn a_job_waits(first: &Connected) {
    let mut since: Option<Instant> = None;
    loop {
        tokio::time::sleep(WAITING / 3).await;
        let waits = first.pool.executors().disk.run(|_| has_service_client(Path::new("/proc"))).await;
        since = if waits.unwrap_or(false) { since.or_else(|| Some(Instant::now())) } else { None };
        if since.is_some_and(|since| since.elapsed() >= WAITING) {
            return;
        }
    }
}

/// Whether `systemctl` runs among the processes of this unit. Blocks.
fn has_service_client(proc: &Path) -> bool {
    let Ok(own) = std::fs::read(proc.join("self/cgroup")) else { return false };
    let processes = std::fs::read_dir(proc).into_iter().flatten().flatten();
    processes.map(|process| process.path()).any(|process| {
        std::fs::read(process.join("comm")).is_ok_and(|name| name == b"systemctl\n")
            && std::fs::read(process.join("cgroup")).is_ok_and(|group| group == own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_systemd_count_if_they_are_of_this_unit() {
        let proc = tempfile::tempdir().unwrap();
        let add = |pid: &str, name: &str, group: &str| {
            std::fs::create_dir(proc.path().join(pid)).unwrap();
            std::fs::write(proc.path().join(pid).join("comm"), format!("{name}\n")).unwrap();
            std::fs::write(proc.path().join(pid).join("cgroup"), group).unwrap();
        };
        add("self", "brine", "0::/system.slice/brine-minion.service");
        add("2", "systemctl", "0::/user.slice");
        add("3", "apt-get", "0::/system.slice/brine-minion.service");
        assert!(!has_service_client(proc.path()));
        add("4", "systemctl", "0::/system.slice/brine-minion.service");
        assert!(has_service_client(proc.path()));
    }
}
