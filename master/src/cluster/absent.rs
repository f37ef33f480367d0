//! Stub for builds without cluster support: the option `cluster` is rejected.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use brine_bus::store::{BlockingStore, StoreError};
use brine_config::MasterConfig;
use brine_runtime::executors::{Blocking, Executor};
use brine_runtime::supervisor::Supervisor;

use super::{OPTION, OptionalGate, OptionalShared};
use crate::StartError;
use crate::admission::sessions::Sessions;
use crate::facts::Facts;
use crate::jobs::Jobs;
use crate::keys::KeyStore;
use crate::storage::Storage;

/// The settings of a cluster. Uninhabited in this build.
pub(crate) enum Settings {}

/// The connection to a cluster. Uninhabited in this build.
pub(crate) enum Link {}

/// Rejects the option `cluster` if it is set.
pub(crate) fn settings(config: &MasterConfig) -> Result<Option<Settings>, StartError> {
    if config.cluster.is_empty() {
        return Ok(None);
    }
    let reason = "this build has no clusters: build with --features messaging".to_owned();
    Err(StartError::Config { option: OPTION, reason })
}

/// Rejects the option `cluster` if it is set, and connects to nothing.
#[allow(clippy::unused_async, reason = "the signature of builds with clusters")]
pub(crate) async fn connect(config: &MasterConfig) -> Result<Option<Arc<Link>>, StartError> {
    settings(config).map(|_| None)
}

/// The membership in a cluster. Uninhabited in this build.
pub(crate) enum Membership {}

impl Membership {
    /// Opens the membership. Never called in this build.
    #[allow(clippy::unused_async, reason = "the signature of builds with clusters")]
    pub async fn open(
        link: Arc<Link>,
        _: (&Arc<Jobs>, &Arc<Sessions>, &Arc<KeyStore>),
        _: (&Arc<Facts>, &Blocking<Storage>),
        _: (&Bus, &BlockingStore, &Executor),
    ) -> Result<Self, StoreError> {
        match *link {}
    }

    /// Returns the gate of the reactor.
    pub fn gate(&self) -> OptionalGate {
        match *self {}
    }

    /// Returns the values that members share.
    pub fn shared(&self) -> OptionalShared {
        match *self {}
    }

    /// Starts the tasks of the membership.
    pub fn start(self, _: &mut Supervisor) {
        match self {}
    }
}

/// The members that are alive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members {
    pub alive: BTreeSet<String>,
    pub is_known: bool,
}

/// A value and its revision.
pub(crate) struct Stored {
    pub revision: u64,
    pub value: Vec<u8>,
}

/// The error of a shared value.
#[allow(dead_code, reason = "the errors of builds with clusters")]
#[derive(Debug, thiserror::Error)]
pub(crate) enum SharedError {
    #[error("{0}")]
    Unavailable(String),
    #[error("another master of the cluster has changed it")]
    Changed,
    #[error("it is too large for the cluster: expected at most {limit} bytes, got {size}")]
    TooLarge { size: usize, limit: usize },
}

/// A lock of the cluster. Never created in this build.
pub(crate) struct Lock;

impl Lock {
    #[allow(clippy::unused_self, reason = "the signature of builds with clusters")]
    pub fn is_held(&self) -> bool {
        false
    }
}

/// The values that members share. Uninhabited in this build.
pub(crate) enum Shared {}

#[allow(clippy::unused_async, reason = "the signatures of builds with clusters")]
impl Shared {
    pub fn member(&self) -> &str {
        match *self {}
    }

    pub fn leads(&self) -> bool {
        match *self {}
    }

    pub fn lease(&self) -> Duration {
        match *self {}
    }

    pub fn members(&self) -> tokio::sync::watch::Receiver<Members> {
        match *self {}
    }

    pub async fn get(&self, _: &str) -> Result<Option<Stored>, SharedError> {
        match *self {}
    }

    pub async fn put(&self, _: &str, _: &[u8], _: u64) -> Result<u64, SharedError> {
        match *self {}
    }

    pub async fn replace(&self, _: &str, _: &[u8]) -> Result<(), SharedError> {
        match *self {}
    }

    pub async fn remove(&self, _: u64) -> Result<bool, SharedError> {
        match *self {}
    }

    pub async fn put_large(&self, _: &str, _: &str, _: &[u8]) -> Result<(), SharedError> {
        match *self {}
    }

    pub async fn get_large(&self, _: &str, _: &str) -> Result<Option<Vec<u8>>, SharedError> {
        match *self {}
    }

    pub async fn remove_large(&self, _: &str) -> Result<(), SharedError> {
        match *self {}
    }

    pub async fn keys(&self, _: &str) -> Result<Vec<String>, SharedError> {
        match *self {}
    }

    pub async fn lock(&self, _: &str) -> Result<Lock, SharedError> {
        match *self {}
    }

    pub async fn unlock(&self, _: Lock) {
        match *self {}
    }

    pub fn largest_item(&self) -> usize {
        match *self {}
    }

    pub async fn queues(&self) -> Result<Vec<(String, usize)>, SharedError> {
        match *self {}
    }

    pub async fn queue_len(&self, _: &str) -> Result<usize, SharedError> {
        match *self {}
    }

    pub async fn queue_items(
        &self,
        _: &str,
        _: u64,
        _: usize,
        _: usize,
    ) -> Result<Vec<(u64, Option<Vec<u8>>)>, SharedError> {
        match *self {}
    }

    pub async fn queue_last(&self, _: &str) -> Result<u64, SharedError> {
        match *self {}
    }

    pub async fn queue_push(&self, _: &str, _: &[Vec<u8>], _: u64) -> Result<Vec<u64>, SharedError> {
        match *self {}
    }

    pub async fn queue_remove(&self, _: Vec<u64>) -> Result<HashSet<u64>, SharedError> {
        match *self {}
    }
}
