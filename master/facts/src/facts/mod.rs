//! The facts about minions: presence, queries of their mines, and the resolution of targets.

pub mod mine;
pub mod presence;
pub mod syndics;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use brine_config::MasterConfig;
use brine_ids::MinionId;
use brine_master_store::storage::Storage;
use brine_runtime::executors::Blocking;
use brine_system::files::FileError;
use brine_target::{Target, TargetError, TargetKind};
use brine_value::{Map, Value, msgpack};
use brine_wire::PublishRequest;
use brine_zmtp::Publisher;
use parking_lot::Mutex;

use presence::Presence;
use syndics::Syndics;

/// The facts about minions.
pub struct Facts {
    config: Arc<MasterConfig>,
    storage: Blocking<Storage>,
    publisher: Publisher,
    /// The presence of minions.
    pub presence: Presence,
    /// The minions that are connected to other members of a cluster, with their addresses.
    elsewhere: Mutex<BTreeMap<MinionId, IpAddr>>,
    /// The syndics below this master.
    pub syndics: Syndics,
    /// The minions whose data stays when their keys are deleted, until the deletion is handled.
    preserved: Mutex<HashSet<MinionId>>,
}

/// The result of resolving a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// The accepted minions that match, sorted by id.
    pub minions: Vec<String>,
    /// The ids that the target lists and that are not accepted.
    pub missing: Vec<String>,
}

/// The error of a target that cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The target is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The accepted minions cannot be read.
    #[error("{0}")]
    Failed(String),
}

impl ResolveError {
    fn of_files(error: FileError) -> Self {
        ResolveError::Failed(format!("resolving the target failed: {error}"))
    }
}

impl Facts {
    /// Creates the facts of a master. `publisher` provides the connected subscribers.
    pub fn new(config: Arc<MasterConfig>, storage: Blocking<Storage>, publisher: Publisher) -> Self {
        let syndics = Syndics::new(&config);
        let (presence, elsewhere, preserved) = (Presence::default(), Mutex::default(), Mutex::default());
        Facts { config, storage, publisher, presence, elsewhere, syndics, preserved }
    }

    /// Keeps the data of a minion whose key is about to be deleted.
    pub fn preserve(&self, id: &MinionId) {
        self.preserved.lock().insert(id.clone());
    }

    /// Returns whether [`Facts::preserve`] was called for a minion since the last call of this function.
    pub fn take_preserved(&self, id: &MinionId) -> bool {
        self.preserved.lock().remove(id)
    }

    /// Parses a target, with the nodegroups of the configuration.
    pub fn target(&self, kind: TargetKind, tgt: Value, delimiter: &str) -> Result<Target, TargetError> {
        Target::parse(kind, tgt, delimiter, &self.config.nodegroups)
    }

    /// Resolves the target of a request to the minions that its job is expected to reach.
    pub async fn targets(&self, request: &PublishRequest) -> Result<Targets, ResolveError> {
        self.targets_by(request, expected).await
    }

    /// Resolves the target of a request to all minions that its job may reach, for permissions.
    pub async fn possible_targets(&self, request: &PublishRequest) -> Result<Targets, ResolveError> {
        self.targets_by(request, resolve).await
    }

    /// Returns all minions that a call of a function of the master with this target may reach, for permissions.
    pub fn possible_minions(&self, storage: &Storage, kind: &str, tgt: Value) -> Result<Vec<String>, ResolveError> {
        let target = self.target(kind.parse()?, tgt, ":")?;
        let resolved = resolve(storage, &target).map_err(ResolveError::of_files)?;
        Ok(self.without_syndics(resolved).minions)
    }

    async fn targets_by(
        &self,
        request: &PublishRequest,
        resolve: fn(&Storage, &Target) -> Result<Targets, FileError>,
    ) -> Result<Targets, ResolveError> {
        let delimiter = request.kwargs.get("delimiter").and_then(Value::as_str).unwrap_or(":");
        let target = self.target(request.tgt_type.parse()?, request.tgt.clone(), delimiter)?.sensible(delimiter)?;
        let resolved = self.storage.run(move |storage| resolve(storage, &target)).await;
        let resolved = resolved.map_err(|error| ResolveError::Failed(error.to_string()))?;
        Ok(self.without_syndics(resolved.map_err(ResolveError::of_files)?))
    }

    fn without_syndics(&self, resolved: Targets) -> Targets {
        let minions = resolved.minions.into_iter().filter(|id| !self.syndics.is_no_minion(id)).collect();
        Targets { minions, ..resolved }
    }

    /// Whether there are syndics, connected or not.
    pub fn has_syndics(&self) -> bool {
        !self.syndics.ids().is_empty()
    }

    /// Returns the connected syndics.
    pub fn present_syndics(&self) -> Vec<String> {
        let present = self.present();
        self.syndics.ids().into_iter().filter(|id| present.contains(id)).map(|id| id.to_string()).collect()
    }

    /// Returns the number of accepted minions in a nodegroup; `None` if the group is unknown or cannot be resolved.
    pub async fn group_size(&self, group: &str) -> Option<usize> {
        let target = self.target(TargetKind::Nodegroup, group.into(), ":").ok()?;
        let resolved = self.storage.run(move |storage| resolve(storage, &target).ok()).await;
        resolved.ok().flatten().map(|targets| targets.minions.len())
    }

    /// Returns the connected minions with their addresses; in a cluster those of all members.
    pub fn present_addresses(&self) -> BTreeMap<MinionId, IpAddr> {
        let mut present = self.elsewhere.lock().clone();
        present.extend(self.presence.present_addresses(&self.publisher.hosts()));
        present
    }

    /// Returns the connected minions; in a cluster those of all members.
    pub fn present(&self) -> BTreeSet<MinionId> {
        self.present_addresses().into_keys().collect()
    }

    /// Returns the minions among these that are certainly disconnected from this master.
    pub fn certainly_absent(&self, ids: &[String]) -> Vec<String> {
        self.presence.certainly_absent(ids, &self.publisher.hosts(), Instant::now())
    }

    /// Returns the minions that are connected to this master, packed for the other members of the cluster.
    pub fn packed_present(&self) -> Vec<u8> {
        let present = self.presence.present_addresses(&self.publisher.hosts()).into_iter();
        let present: Map = present.map(|(id, address)| (id.as_str().into(), address.to_string().into())).collect();
        msgpack::pack_map(&present)
    }

    /// Replaces the connected minions of the other members, given in their packed form.
    pub fn set_present_elsewhere(&self, members: &[(String, Vec<u8>)]) {
        let mut elsewhere = BTreeMap::new();
        for (member, packed) in members {
            let Ok(minions) = msgpack::unpack_map(packed) else {
                tracing::error!(member, "the minions of another master are invalid: is it newer?");
                continue;
            };
            elsewhere.extend(minions.iter().filter_map(|(id, address)| {
                Some((id.as_str()?.parse::<MinionId>().ok()?, address.as_str()?.parse::<IpAddr>().ok()?))
            }));
        }
        *self.elsewhere.lock() = elsewhere;
    }
}

/// Resolves a target to all minions that a job may reach: those without stored facts receive it and decide themselves.
///
/// # Errors
/// The accepted minions cannot be listed.
pub fn resolve(storage: &Storage, target: &Target) -> Result<Targets, FileError> {
    resolve_by(storage, target, |id| target.may_match(&storage.minion_data.facts(id)))
}

/// Resolves a target to the minions that a job is expected to reach, as in Salt without those whose facts are unknown.
fn expected(storage: &Storage, target: &Target) -> Result<Targets, FileError> {
    resolve_by(storage, target, |id| target.may_match(&storage.minion_data.facts_for_job(id)))
}

fn resolve_by(storage: &Storage, target: &Target, is_match: impl Fn(&str) -> bool) -> Result<Targets, FileError> {
    let accepted = storage.accepted()?;
    let accepted_ids: HashSet<&str> = accepted.iter().map(String::as_str).collect();
    let listed = target.listed().into_iter().flatten();
    let missing = listed.filter(|id| !accepted_ids.contains(*id)).map(str::to_owned).collect();
    let minions = accepted.iter().filter(|id| is_match(id)).cloned().collect();
    Ok(Targets { minions, missing })
}

#[cfg(test)]
mod tests;
