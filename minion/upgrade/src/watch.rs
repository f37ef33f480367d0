//! The watcher: the old program, in a process of its own, which outlives the minion. It ends when the new program has its
//! place. If that ends or hangs before, it starts the old program again, as systemd's service or as it was started.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brine_system::processes;

use crate::files::RUNNING;
use crate::process::{Identity, service};
use crate::state::{Phase, State, Store};
use crate::{NAME, UpgradeError};

/// The interval of checks.
const INTERVAL: Duration = Duration::from_millis(100);
/// The time for which a supervisor may start the program itself.
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that the old program has to begin, after the new one has gone back to it.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time that the watcher gives beyond the limit of the new program, which goes back by itself.
const MARGIN: Duration = Duration::from_secs(15);
/// The limit of calls of systemctl.
const SYSTEMCTL_TIMEOUT: Duration = Duration::from_secs(30);
/// The variable that marks a daemon in the background, which no supervisor has started.
const IN_BACKGROUND: &str = "BRINE_IN_BACKGROUND";

/// What the watcher must know: the words after `watching`.
struct Watch {
    store: Store,
    minion: Identity,
    limit: Duration,
    /// The systemd service of the minion.
    service: Option<String>,
    program: PathBuf,
    words: Vec<OsString>,
}

/// Starts the watcher of this process, whose trial is recorded already.
///
/// # Errors
/// It does not start.
pub(crate) fn start(store: &Store, limit: Duration, program: &Path, words: &[OsString]) -> Result<(), UpgradeError> {
    let mut command = Command::new(RUNNING);
    command.arg0(NAME).arg("watch").arg(store.directory()).arg(limit.as_millis().to_string());
    command.arg(service_of_own().unwrap_or_default()).arg(program).args(words).stdin(Stdio::null());
    let ended = processes::start(&mut command).and_then(|mut child| child.wait());
    let ended = ended.map_err(UpgradeError::at("starting the watcher of the upgrade"))?;
    if ended.success() {
        return Ok(());
    }
    Err(UpgradeError::Refused(format!("starting the watcher of the upgrade failed: {ended}")))
}

/// Starts the watcher in a process whose parent ends, so that the minion need not wait for it.
pub(crate) fn detach(args: &[OsString]) -> Result<(), UpgradeError> {
    let mut command = Command::new(RUNNING);
    command.arg0(NAME).arg("watching").args(args).process_group(0);
    command.spawn().map(|_| ()).map_err(UpgradeError::at("starting the watcher"))
}

/// Watches until the upgrade is complete.
pub(crate) fn run(args: &[OsString]) -> Result<(), UpgradeError> {
    _ = nix::unistd::setsid();
    let Some(watch) = Watch::parse(args)? else { return Ok(()) };
    if watch.until_restart()? { watch.restart() } else { Ok(()) }
}

impl Watch {
    /// Returns `None` if there is no trial any more.
    fn parse(args: &[OsString]) -> Result<Option<Self>, UpgradeError> {
        let invalid = || UpgradeError::Refused("the arguments of the watcher are invalid".into());
        let [directory, limit, service, program, words @ ..] = args else { return Err(invalid()) };
        let limit =
            limit.to_str().and_then(|limit| limit.parse().ok()).map(Duration::from_millis).ok_or_else(invalid)?;
        let service = service.to_str().filter(|name| !name.is_empty()).map(str::to_owned);
        let store = Store::at(Path::new(directory));
        // The process may have ended by now.
        let trial = store.load()?.and_then(|state| state.trial);
        let (program, words) = (program.into(), words.to_vec());
        Ok(trial.map(|minion| Watch { store, minion, limit, service, program, words }))
    }

    fn is_its(&self, state: &State) -> bool {
        state.trial.as_ref() == Some(&self.minion)
    }

    /// Waits for the end of the upgrade. Returns whether the old program must be started.
    fn until_restart(&self) -> Result<bool, UpgradeError> {
        let start = Instant::now();
        let mut rolled_back = None;
        loop {
            let is_alive = self.minion.is_alive();
            let Some(state) = self.store.load()?.filter(|state| self.is_its(state)) else { return Ok(false) };
            match state.phase {
                Phase::Done => return Ok(false),
                Phase::RolledBack if state.is_settled => return Ok(false),
                _ if !is_alive => {
                    let seconds = start.elapsed().as_secs();
                    self.roll_back(&format!("the new program ended {seconds} s after its start"));
                    return Ok(true);
                }
                Phase::RolledBack if rolled_back.get_or_insert_with(Instant::now).elapsed() > SETTLE_TIMEOUT => {
                    self.minion.kill();
                }
                Phase::RolledBack => {}
                _ if start.elapsed() > self.limit + MARGIN => {
                    let reason = format!("the new program did not tell within {:?} that it works", self.limit);
                    if self.roll_back(&reason) {
                        self.minion.kill();
                    }
                }
                _ => {}
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Records that the trial has failed, if it is one still. Returns whether it was.
    fn roll_back(&self, reason: &str) -> bool {
        let mut was_trial = false;
        let recorded = self.store.update(|state| {
            let trial = state.as_mut().filter(|state| self.is_its(state) && state.phase == Phase::Trial);
            was_trial = trial.map(|state| state.roll_back(reason)).is_some();
            Ok(())
        });
        if let Err(error) = recorded {
            // The old program decides the same when it starts.
            eprintln!("{NAME}: recording that the upgrade has failed failed: {error}");
        }
        was_trial
    }

    /// Whether a minion begins with the outcome within this time.
    fn settles_within(&self, time: Duration) -> Result<bool, UpgradeError> {
        let start = Instant::now();
        while start.elapsed() < time {
            if self.store.load()?.is_none_or(|state| !self.is_its(&state) || state.is_settled) {
                return Ok(true);
            }
            std::thread::sleep(INTERVAL);
        }
        Ok(false)
    }

    /// Starts the old program, unless a supervisor does.
    fn restart(&self) -> Result<(), UpgradeError> {
        // No supervisor has started a daemon that has gone to the background by itself.
        let grace = if std::env::var_os(IN_BACKGROUND).is_some() { Duration::ZERO } else { SUPERVISOR_TIMEOUT };
        if self.settles_within(grace)? {
            return Ok(());
        }
        if let Some(service) = self.service.as_deref() {
            for words in [&["reset-failed", service][..], &["restart", "--no-block", service]] {
                let mut command = Command::new("systemctl");
                let result = processes::output(command.args(words).stdin(Stdio::null()), SYSTEMCTL_TIMEOUT);
                result.map_err(UpgradeError::at(format!("systemctl {}", words.join(" "))))?;
            }
            return Ok(());
        }
        let Some((name, words)) = self.words.split_first() else { return Ok(()) };
        let mut command = Command::new(&self.program);
        command.arg0(name).args(words).stdin(Stdio::null());
        command.spawn().map(|_| ()).map_err(UpgradeError::at("starting the old program"))
    }
}

/// Returns the systemd service whose main process this one is.
fn service_of_own() -> Option<String> {
    let service = service()?;
    let mut command = Command::new("systemctl");
    command.args(["show", "--property=MainPID", "--value", &service]).stdin(Stdio::null());
    let output = processes::output(&mut command, SYSTEMCTL_TIMEOUT).ok()?;
    (String::from_utf8_lossy(&output.stdout).trim() == std::process::id().to_string()).then_some(service)
}
