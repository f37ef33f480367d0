//! Failover between several masters: the change to the next master, and its causes.

use std::sync::Arc;
use std::time::Duration;

use brine_config::Number;
use brine_runtime::backoff::Backoff;
use brine_value::{Value, map};
use rand::seq::SliceRandom;

use super::{Connected, MinionError};
use crate::channel::Channel;
use crate::masters::{Address, Masters, Next};

/// The interval between attempts to return to the first master, unless `master_failback_interval` sets another.
const FAILBACK_INTERVAL: Duration = Duration::from_secs(30);

/// Returns the masters of a minion.
pub(super) fn masters(connected: &Connected) -> Result<Masters, MinionError> {
    let config = &connected.minion.config;
    Masters::read(config, connected.id.as_str(), |all| all.shuffle(&mut rand::rng())).ok_or(MinionError::NoMaster)
}

impl Connected {
    /// Begins the session with one of the masters: the current one, or else the next that accepts the minion. Returns
    /// only with a session or, if there is only one master, with an error that waiting cannot resolve.
    pub(super) async fn join_any(&self, masters: &mut Masters) -> Result<(), MinionError> {
        if self.is_only {
            return self.join(true).await;
        }
        let mut backoff = self.backoff();
        // Whether the name of no master has resolved since the last pause.
        let mut is_unresolved = true;
        loop {
            let Address { host, port } = masters.current();
            let (host, port) = (host.clone(), *port);
            match self.join(false).await {
                Ok(()) => {
                    masters.connected();
                    tracing::info!(host, port, "connected to one of several masters");
                    return Ok(());
                }
                Err(error) => {
                    let next = if masters.are_several() { "the next one" } else { "again" };
                    tracing::warn!(host, port, "the master does not serve this minion: {error}; trying {next}");
                    is_unresolved &= matches!(&error, MinionError::Channel(error) if error.is_unresolved());
                    if self.leave_master(masters).await == Next::Pause {
                        self.pause(&mut backoff, std::mem::replace(&mut is_unresolved, true)).await;
                    }
                }
            }
        }
    }

    /// Pauses before the next attempt: `retry_dns` seconds if that is set and the name of no master resolves, else the
    /// backoff.
    pub(super) async fn pause(&self, backoff: &mut Backoff, is_unresolved: bool) {
        let retry = self.minion.config.retry_dns;
        if is_unresolved && !retry.is_zero() {
            tokio::time::sleep(retry.seconds()).await;
        } else {
            backoff.wait().await;
        }
    }

    /// Leaves the current master if there are several, and returns the next step.
    pub(super) async fn leave_master(&self, masters: &mut Masters) -> Next {
        if !masters.are_several() {
            return Next::Pause;
        }
        let next = masters.failed();
        self.move_to(masters.current()).await;
        next
    }

    /// Changes to a master; there is no session until the minion joins it.
    pub(super) async fn move_to(&self, master: &Address) {
        self.channel.move_to(master).await;
        self.minion.grains.set_one("master", master.host.as_str());
    }

    /// Polls the master at `master_alive_interval`. Returns when the master does not reply; never returns without an
    /// interval.
    pub(super) async fn wait_for_silent_master(&self) -> MinionError {
        let interval = self.minion.config.master_alive_interval;
        if interval.is_zero() || self.is_only {
            return std::future::pending().await;
        }
        let every = interval.pause();
        loop {
            tokio::time::sleep(every).await;
            let asked = self.channel.request(map! {"cmd" => "_master_opts", "env_only" => true});
            match tokio::time::timeout(every, asked).await {
                Ok(Ok(Value::Nil)) | Err(_) => return MinionError::Silent(every),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return error.into(),
            }
        }
    }

    /// Polls at an interval whether the first master accepts the minion again (`master_failback`). Returns when it
    /// does.
    pub(super) async fn preferred_is_back(&self, masters: &Masters) {
        let config = &self.minion.config;
        let Some(first) = masters.preferred().filter(|_| config.master_failback) else {
            return std::future::pending().await;
        };
        let configured = [config.master_failback_interval, config.master_alive_interval];
        let every = configured.into_iter().find(|every| !every.is_zero()).map_or(FAILBACK_INTERVAL, Number::pause);
        loop {
            tokio::time::sleep(every).await;
            match self.probe(first).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(host = first.host, %error, "the first master is not back"),
            }
        }
    }

    /// Authenticates with a master beside the current session: a master that only accepts connections is not back.
    async fn probe(&self, master: &Address) -> Result<(), MinionError> {
        let (id, config) = (self.id.clone(), Arc::clone(&self.minion.config));
        let (master, executors) = (master.clone(), self.pool.executors());
        let crypto = executors.crypto.clone();
        let channel = executors.disk.run(move |_| Channel::to(id, config, &master, crypto)).await??;
        let grains = self.minion.grains.get();
        Ok(Arc::new(channel.with_autosign_grains(&grains)).authenticate().await?)
    }

    /// Begins a session once, with the first master that accepts the minion: for `salt-call`.
    ///
    /// # Errors
    /// The error of the last master.
    pub async fn join_once(&self) -> Result<(), MinionError> {
        let mut masters = masters(self)?;
        self.move_to(masters.current()).await;
        loop {
            match self.join(false).await {
                Ok(()) => return Ok(()),
                Err(error) if !masters.are_several() => return Err(error),
                Err(error) => {
                    if self.leave_master(&mut masters).await == Next::Pause {
                        return Err(error);
                    }
                    tracing::warn!("the master does not serve this minion: {error}; trying the next one");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_config::MinionConfig;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn retry_dns_is_the_pause_while_no_name_resolves() {
        for (retry_dns, is_unresolved, expected) in [(30, true, 30..31), (30, false, 0..2), (0, true, 0..2)] {
            let directory = tempfile::tempdir().unwrap();
            let config = MinionConfig {
                id: Some("web1".into()),
                pki_dir: directory.path().join("pki"),
                cachedir: directory.path().join("cache"),
                master: vec!["no-such-host.invalid".into(), "127.0.0.1".into()],
                retry_dns: Number::of(retry_dns),
                ..MinionConfig::default()
            };
            let connected = Connected::open(config).await.unwrap();
            tokio::time::pause();
            let began = Instant::now();
            connected.pause(&mut connected.backoff(), is_unresolved).await;
            let paused = began.elapsed().as_secs();
            tokio::time::resume();
            assert!(expected.contains(&paused), "{retry_dns} {is_unresolved}: {paused}");
        }
    }
}
