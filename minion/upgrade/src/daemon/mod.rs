//! The upgrade of this minion: [`start`] completes or rolls back what an earlier process has begun, [`Claim`] is an upgrade
//! that a job prepares, and [`Daemon::change`] executes the new program.

mod claim;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use brine_value::Value;
use nix::errno::Errno;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::files::{Program, RUNNING, is_same_file};
use crate::process::Identity;
use crate::state::{Phase, State, Store};
use crate::{UpgradeError, watch as watcher};

pub use claim::Claim;

/// The time for which a program is not executed because a process that is just being spawned holds it open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

static DAEMON: OnceLock<Daemon> = OnceLock::new();

/// Returns the upgrade of the minion that this process is; `None` in other processes, such as `salt-call`.
pub fn daemon() -> Option<&'static Daemon> {
    DAEMON.get()
}

/// The upgrade of a minion.
#[derive(Debug)]
pub struct Daemon {
    store: Store,
    /// The words with which the minion was started, its name first.
    words: Vec<OsString>,
    /// How long a new program may take to show that it works.
    limit: Duration,
    start: Instant,
    /// The program of which this process is a trial.
    trial: Option<Program>,
    /// Whether the trial is under way.
    on_trial: watch::Sender<bool>,
    /// The job that prepares a new program, or has prepared one.
    claimed: Mutex<Option<String>>,
    /// The job that has prepared a new program.
    staged: watch::Sender<Option<String>>,
    /// What this process executes when it has stopped.
    next: watch::Sender<Option<PathBuf>>,
    /// The outcome for the masters that get a start event of this process.
    outcome: Mutex<Option<Value>>,
}

/// Begins the upgrade of the minion that this process is, before it does anything else: tries a new program, or completes
/// or rolls back an upgrade that was interrupted. Errors are logged: they must not keep a minion from its start.
pub fn start(cachedir: &Path, limit: Duration, words: Vec<OsString>) -> &'static Daemon {
    let store = Store::below(cachedir);
    let trial = match begin(&store) {
        Ok(trial) => trial,
        Err(error) => {
            tracing::error!(%error, "completing an upgrade failed");
            None
        }
    };
    if trial.is_some() {
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            "this program is on trial: it has {limit:?} to connect to a master"
        );
        keep_name(&words);
    }
    let on_trial = watch::Sender::new(trial.is_some());
    DAEMON.get_or_init(|| Daemon {
        store,
        words,
        limit,
        start: Instant::now(),
        trial,
        on_trial,
        claimed: Mutex::new(None),
        staged: watch::Sender::new(None),
        next: watch::Sender::new(None),
        outcome: Mutex::new(None),
    })
}

/// Returns the program of which this process is a trial; otherwise settles what an earlier process has begun.
fn begin(store: &Store) -> Result<Option<Program>, UpgradeError> {
    let Some(state) = store.load()? else { return Ok(None) };
    let program = Program::at(state.program.clone());
    let is_trial = state.phase == Phase::Trial
        && state.trial.is_some()
        && state.trial == Identity::own()
        && !is_same_file(Path::new(RUNNING), program.path());
    if is_trial {
        return Ok(Some(program));
    }
    if !state.phase.is_final() || !state.is_settled {
        let settled = store.update(|state| {
            let Some(state) = state else { return Ok(()) };
            settle(state, program.new_path().exists());
            Ok(())
        });
        if let Err(error) = settled {
            // A full disk: the outcome is the same at the next start.
            tracing::error!(%error, "recording the outcome of an upgrade failed");
        }
        if program.check_trust().is_ok() {
            program.remove_new();
        }
    }
    Ok(None)
}

/// Decides an upgrade that was interrupted.
fn settle(state: &mut State, is_new_left: bool) {
    match state.phase {
        Phase::Fetching | Phase::Staged => state.roll_back("the minion ended before it tried the new program"),
        Phase::Trial => state.roll_back("the minion ended while it tried the new program"),
        Phase::Committing if is_new_left => {
            state.roll_back("the minion ended before the new program had its place");
        }
        Phase::Committing => state.phase = Phase::Done,
        Phase::Done | Phase::RolledBack => {}
    }
    state.is_settled = true;
}

/// Names this process as before: other processes recognise a minion by it.
fn keep_name(words: &[OsString]) {
    let name = words.first().and_then(|name| Path::new(name).file_name());
    if let Some(name) = name
        && let Err(error) = std::fs::OpenOptions::new()
            .write(true)
            .open("/proc/self/comm")
            .and_then(|mut file| std::io::Write::write_all(&mut file, name.as_encoded_bytes()))
    {
        tracing::debug!(%error, "naming this process failed");
    }
}

impl Daemon {
    /// Returns the state of the last upgrade.
    pub fn state(&self) -> Result<Option<State>, UpgradeError> {
        self.store.load()
    }

    /// Waits for a job that has prepared a new program, and returns its id.
    pub async fn staged(&self) -> String {
        let mut staged = self.staged.subscribe();
        loop {
            if let Some(jid) = staged.borrow_and_update().clone() {
                return jid;
            }
            if staged.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Gives up the prepared program. Returns the outcome. Blocks.
    pub fn abandon(&self, reason: &str) -> Option<Value> {
        let outcome = self.store.update(|state| {
            let Some(state) = state.as_mut().filter(|state| state.phase == Phase::Staged) else { return Ok(None) };
            state.roll_back(reason);
            (state.is_settled, state.is_reported) = (true, true);
            Program::at(state.program.clone()).remove_new();
            Ok(Some(state.report()))
        });
        self.staged.send_replace(None);
        *self.claimed.lock() = None;
        outcome.unwrap_or_else(|error| {
            tracing::error!(%error, "recording the end of an upgrade failed");
            None
        })
    }

    /// Makes the prepared program the one that [`Daemon::change`] executes. Blocks.
    ///
    /// # Errors
    /// None is prepared.
    pub fn change_to_new(&self) -> Result<(), UpgradeError> {
        let state = self.store.load()?.filter(|state| state.phase == Phase::Staged);
        let state = state.ok_or_else(|| UpgradeError::Refused("no new program is prepared".into()))?;
        self.next.send_replace(Some(Program::at(state.program).new_path()));
        Ok(())
    }

    /// Waits until this process must stop, and then execute a program by [`Daemon::change`].
    pub async fn change_is_due(&self) {
        // The sender lives as long as the process.
        _ = self.next.subscribe().wait_for(Option::is_some).await;
    }

    /// Whether this process is a trial that has not shown yet that it works.
    pub fn is_on_trial(&self) -> bool {
        *self.on_trial.borrow()
    }

    /// Waits until the trial has taken too long; without one, or after its success, for ever.
    pub async fn trial_is_late(&self) -> String {
        let mut on_trial = self.on_trial.subscribe();
        let left = self.limit.saturating_sub(self.start.elapsed());
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            // The sender lives as long as the process.
            () = async { _ = on_trial.wait_for(|on_trial| !on_trial).await } => std::future::pending().await,
        }
        format!("the new program did not connect to a master within {:?} (upgrade_health_timeout)", self.limit)
    }

    /// Gives the new program its place: it works. Blocks.
    ///
    /// # Errors
    /// The watcher has gone back already, or files cannot be changed. The caller then goes back, too.
    pub fn commit(&self) -> Result<(), UpgradeError> {
        let Some(program) = &self.trial else { return Ok(()) };
        let _lock = self.store.lock()?;
        let state = self.store.load()?.filter(|state| state.phase == Phase::Trial && state.trial == Identity::own());
        let Some(mut state) = state else {
            return Err(UpgradeError::Refused("the upgrade was rolled back meanwhile".into()));
        };
        state.phase = Phase::Committing;
        self.store.save(Some(&state))?;
        if let Err(error) = program.check_trust().and_then(|()| program.exchange()) {
            state.roll_back(error.to_string());
            self.store.save(Some(&state))?;
            return Err(error);
        }
        self.on_trial.send_replace(false);
        state.phase = Phase::Done;
        state.is_settled = true;
        if let Err(error) = self.store.save(Some(&state)) {
            // The next start finds that the exchange was complete.
            tracing::error!(%error, "recording a completed upgrade failed");
        }
        tracing::info!(from = state.from.version, to = state.to.version, "upgrade completed");
        Ok(())
    }

    /// Ends the trial without success: [`Daemon::change`] then executes the old program. Blocks.
    pub fn fail(&self, reason: &str) {
        let Some(program) = self.trial.as_ref().filter(|_| self.is_on_trial()) else { return };
        tracing::error!(reason, "the new program does not work: the minion goes back to the old one");
        self.roll_back(reason);
        self.next.send_replace(Some(program.path().to_owned()));
    }

    /// Ends the trial because somebody stops the minion: nobody starts it again. Blocks.
    pub fn stop(&self) {
        let Some(program) = self.trial.as_ref().filter(|_| self.is_on_trial() && !self.has_next()) else { return };
        let recorded = self.store.update(|state| {
            if let Some(state) = state.as_mut().filter(|state| !state.phase.is_final()) {
                state.roll_back("the minion was stopped while it tried the new program");
                state.is_settled = true;
            }
            Ok(())
        });
        if let Err(error) = recorded {
            tracing::error!(%error, "recording that an upgrade has ended failed");
        }
        program.remove_new();
        self.on_trial.send_replace(false);
    }

    fn roll_back(&self, reason: &str) {
        let recorded = self.store.update(|state| {
            if let Some(state) = state.as_mut().filter(|state| !state.phase.is_final()) {
                state.roll_back(reason);
            }
            Ok(())
        });
        if let Err(error) = recorded {
            tracing::error!(%error, "recording that an upgrade has failed failed");
        }
    }

    /// Whether [`Daemon::change`] executes a program.
    pub fn has_next(&self) -> bool {
        self.next.borrow().is_some()
    }

    /// Executes the new program, or after a failed trial the old one, in this process. Returns only if neither can be
    /// executed.
    pub fn change(&self) -> Option<UpgradeError> {
        let next = self.next.send_replace(None)?;
        let is_on_trial = self.is_on_trial();
        if !is_on_trial {
            match self.try_new(&next) {
                Ok(never) => match never {},
                Err(error) => {
                    tracing::error!(%error, "trying the new program failed: the minion starts again");
                    self.roll_back(&error.to_string());
                }
            }
        }
        let own = || Program::running().map_or(PathBuf::from(RUNNING), |program| program.path().to_owned());
        let old = if is_on_trial { next } else { own() };
        Some(match self.execute(&old) {
            Ok(never) => match never {},
            Err(error) => error,
        })
    }

    fn try_new(&self, program: &Path) -> Result<std::convert::Infallible, UpgradeError> {
        let old = self.store.update(|state| {
            let staged = state.as_mut().filter(|state| state.phase == Phase::Staged);
            let Some(state) = staged else { return Err(UpgradeError::Refused("nothing is prepared".into())) };
            state.phase = Phase::Trial;
            state.trial = Identity::own();
            Ok(state.program.clone())
        })?;
        watcher::start(&self.store, self.limit, &old, &self.words)?;
        self.execute(program)
    }

    fn execute(&self, program: &Path) -> Result<std::convert::Infallible, UpgradeError> {
        let Some((name, words)) = self.words.split_first() else {
            return Err(UpgradeError::Refused("the words of the command line are unknown".into()));
        };
        let start = Instant::now();
        loop {
            let error = Command::new(program).arg0(name).args(words).exec();
            if error.raw_os_error() != Some(Errno::ETXTBSY as i32) || start.elapsed() > BUSY_TIMEOUT {
                return Err(UpgradeError::at(format!("executing {}", program.display()))(error));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the outcome of the last upgrade for a start event, unless a master knows it since an earlier start. Blocks.
    pub fn outcome(&self) -> Option<Value> {
        let mut outcome = self.outcome.lock();
        if outcome.is_none() {
            let state = self.store.load().ok().flatten()?;
            *outcome = (state.phase.is_final() && !state.is_reported).then(|| state.report());
        }
        outcome.clone()
    }

    /// Records that a master knows the outcome. Blocks.
    pub fn reported(&self) {
        let recorded = self.store.update(|state| {
            if let Some(state) = state.as_mut().filter(|state| state.phase.is_final()) {
                state.is_reported = true;
            }
            Ok(())
        });
        if let Err(error) = recorded {
            tracing::warn!(%error, "recording that the outcome of an upgrade was reported failed: it is reported again");
        }
    }
}

#[cfg(test)]
mod tests;
