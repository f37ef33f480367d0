//! An upgrade that a job prepares: one at a time.

use std::cmp::Ordering;

use super::{Daemon, settle};
use crate::UpgradeError;
use crate::check::compare;
use crate::files::{Program, sha256_of};
use crate::state::{Phase, Release, State};

impl Daemon {
    /// Begins an upgrade by a job. No other can begin until it is complete.
    ///
    /// # Errors
    /// Another one is under way, or the program cannot be exchanged safely.
    pub fn claim(&self, jid: &str) -> Result<Claim<'_>, UpgradeError> {
        if self.is_on_trial() {
            let jid = self.state()?.map(|state| state.jid).unwrap_or_default();
            return Err(UpgradeError::UnderWay(jid));
        }
        let mut claimed = self.claimed.lock();
        if let Some(jid) = &*claimed {
            return Err(UpgradeError::UnderWay(jid.clone()));
        }
        let program = Program::running()?;
        program.check_trust()?;
        let from = Release { version: env!("CARGO_PKG_VERSION").into(), sha256: sha256_of(program.path())? };
        let before = self.store.update(|state| {
            // The disk was full when this process began.
            if let Some(left) = state.as_mut().filter(|state| !state.phase.is_final()) {
                settle(left, program.new_path().exists());
            }
            let new = State {
                phase: Phase::Fetching,
                jid: jid.to_owned(),
                program: program.path().to_owned(),
                from: from.clone(),
                to: Release::default(),
                trial: None,
                reason: String::new(),
                is_settled: false,
                is_reported: false,
            };
            Ok(state.replace(new))
        })?;
        *claimed = Some(jid.to_owned());
        drop(claimed);
        Ok(Claim { daemon: self, program, from, before, is_staged: false })
    }
}

/// An upgrade that a job prepares. Unless it is staged, nothing of it is left when it is dropped.
#[derive(Debug)]
pub struct Claim<'a> {
    daemon: &'a Daemon,
    /// The program.
    pub program: Program,
    /// What runs.
    pub from: Release,
    before: Option<State>,
    is_staged: bool,
}

impl Claim<'_> {
    /// Checks the order of versions: an older one needs `may_downgrade`, the same one `may_repeat`.
    ///
    /// # Errors
    /// The order is not allowed.
    pub fn check_order(&self, version: &str, may_downgrade: bool, may_repeat: bool) -> Result<(), UpgradeError> {
        let own = &self.from.version;
        match compare(version, own) {
            Ordering::Less if !may_downgrade => Err(UpgradeError::Refused(format!(
                "the new program is version {version}, older than {own}, which runs: allow_downgrade=True permits it"
            ))),
            Ordering::Equal if !may_repeat => Err(UpgradeError::Refused(format!(
                "the new program is another build of version {version}, which runs: force=True permits it"
            ))),
            _ => Ok(()),
        }
    }

    /// Hands the new program over: the minion tries it when the master has the job's return.
    ///
    /// # Errors
    /// The state cannot be written.
    pub fn stage(mut self, to: Release) -> Result<(), UpgradeError> {
        let jid = self.daemon.store.update(|state| {
            let Some(state) = state.as_mut().filter(|state| state.phase == Phase::Fetching) else {
                return Err(UpgradeError::Refused("the upgrade was ended meanwhile".into()));
            };
            state.phase = Phase::Staged;
            state.to = to;
            Ok(state.jid.clone())
        })?;
        self.is_staged = true;
        self.daemon.staged.send_replace(Some(jid));
        Ok(())
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.is_staged {
            return;
        }
        self.program.remove_new();
        let before = self.before.take();
        let removed = self.daemon.store.update(|state| {
            *state = before;
            Ok(())
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "removing the state of an upgrade failed: the next start of the minion does it");
            // Without space the state cannot be replaced, but removed.
            _ = self.daemon.store.update(|state| {
                *state = None;
                Ok(())
            });
        }
        *self.daemon.claimed.lock() = None;
    }
}
