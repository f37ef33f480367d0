//! Stub for builds without cluster support: no value of these types exists.
#![allow(missing_docs, reason = "documented in the crate `brine-cluster`")]

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

/// The members that are alive.
#[derive(Debug, Clone, Default)]
pub struct Members {
    pub alive: BTreeSet<String>,
    pub is_known: bool,
}

/// A value and its revision.
pub struct Stored {
    pub revision: u64,
    pub value: Vec<u8>,
}

/// The error of a shared value.
#[allow(dead_code, reason = "the errors of builds with clusters")]
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    #[error("{0}")]
    Unavailable(String),
    #[error("another master of the cluster has changed it")]
    Changed,
    #[error("it is too large for the cluster: expected at most {limit} bytes, got {size}")]
    TooLarge { size: usize, limit: usize },
}

/// A lock of the cluster. Never created in this build.
pub struct Lock;

impl Lock {
    #[allow(clippy::unused_self, reason = "the signature of builds with clusters")]
    pub fn is_held(&self) -> bool {
        false
    }
}

/// The values that members share. Uninhabited in this build.
pub enum Shared {}

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
