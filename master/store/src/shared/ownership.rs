//! Work that one process of the cluster owns, and that another one resumes when its owner dies: batches and
//! orchestrations.
//!
//! The state of the work is a value of the cluster. The owner replaces it as the work advances, on condition that
//! nobody else has changed it, so a former owner that was cut off can do no further work. A large state is stored next
//! to that value, which refers to it by name.

use std::sync::Arc;

use brine_digest::Digest;
use brine_runtime::backoff::Backoff;
use brine_value::{Map, Value, map, msgpack};

use super::{Members, Shared, SharedError};

/// The maximum size of a state that is embedded in the value, in bytes: less than the maximum of a value.
const MAX_EMBEDDED: usize = 880 << 10;
/// The maximum size of a state, in bytes: it is written whole each time.
const MAX_STATE: usize = 32 << 20;

/// The ownership of a unit of work.
pub struct Ownership {
    shared: Arc<Shared>,
    key: String,
    /// Distinguishes successive processes of the same member.
    process: String,
    revision: u64,
    /// Which of the two slots for a large state is current: a crash while the other one is written loses nothing.
    is_second: bool,
    has_large: bool,
}

/// A unit of work as stored in the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Owned {
    /// The member that owns it.
    pub member: String,
    /// Its process, of which a member has one after the other.
    pub process: String,
    /// The revision of the value.
    pub revision: u64,
    /// `None` if the servers have discarded it: large states may have to make room for newer data.
    pub state: Option<Map>,
}

/// The outcome of storing a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The state is stored.
    Stored,
    /// Another process owns the work now.
    Elsewhere,
    /// The state is too large, and not stored.
    TooLarge,
}

/// Packs a value with a state, or with the name and the digest of a large one.
fn pack(member: &str, process: &str, state: impl Into<Value>) -> Vec<u8> {
    msgpack::pack_map(&map! {"member" => member, "process" => process, "state" => state.into()})
}

/// Unpacks the work without its state, and separately the state or the reference to it.
fn unpack(packed: &[u8], revision: u64) -> Option<(Owned, Value)> {
    let mut fields: Map = msgpack::unpack_map(packed).ok()?;
    let text = |fields: &Map, name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let (member, process) = (text(&fields, "member")?, text(&fields, "process")?);
    let state = fields.shift_remove("state").filter(|state| matches!(state, Value::Map(_) | Value::Str(_)))?;
    Some((Owned { member, process, revision, state: None }, state))
}

impl Owned {
    /// Reads the work with this key; `None` if there is none, or its format is unknown.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn read(shared: &Shared, key: &str) -> Result<Option<Self>, SharedError> {
        let Some((owned, state)) = Self::without_state(shared, key).await? else { return Ok(None) };
        let state = match state {
            Value::Map(state) => Some(state),
            reference => {
                let reference = reference.to_string();
                let (name, digest) = reference.rsplit_once(' ').unwrap_or_default();
                let whole = shared.get_large(key, name).await?;
                // An older state, stored again, must not be resumed.
                let whole = whole.filter(|whole| brine_digest::hex(Digest::Sha256.of(whole)) == digest);
                whole.and_then(|whole| msgpack::unpack_map(&whole).ok())
            }
        };
        Ok(Some(Owned { state, ..owned }))
    }

    async fn without_state(shared: &Shared, key: &str) -> Result<Option<(Self, Value)>, SharedError> {
        let Some(stored) = shared.get(key).await? else { return Ok(None) };
        let owned = unpack(&stored.value, stored.revision);
        if owned.is_none() {
            tracing::error!(key, "work of the cluster has an unknown format: is another master newer?");
        }
        Ok(owned)
    }

    /// Whether this process should resume the work: its owner was an earlier process of this member, or is dead while
    /// this member leads.
    pub fn is_due(&self, shared: &Shared, process: &str, members: &Members) -> bool {
        if self.member == shared.member() {
            // Work of this very process has just ended.
            return self.process != process;
        }
        members.is_known && shared.leads() && !members.alive.contains(&self.member)
    }
}

impl Ownership {
    /// Stores new work in the cluster. Returns `None` if the cluster does not answer or the state is too large: the
    /// work then ends with this master.
    pub async fn begin(shared: &Arc<Shared>, key: &str, process: &str, state: &Map) -> Option<Self> {
        match Self::take_over(shared, key, process, state, 0).await {
            Ok(ownership) => ownership,
            Err(error) => {
                tracing::warn!(key, %error, "storing work in the cluster failed: it ends with this master");
                None
            }
        }
    }

    /// Takes over work at this revision. Returns `None` if another process has changed it since.
    ///
    /// # Errors
    /// The cluster does not answer, or the state is too large.
    pub async fn take_over(
        shared: &Arc<Shared>,
        key: &str,
        process: &str,
        state: &Map,
        revision: u64,
    ) -> Result<Option<Self>, SharedError> {
        let (shared, key, process) = (Arc::clone(shared), key.to_owned(), process.to_owned());
        let mut ownership = Ownership { shared, key, process, revision, is_second: false, has_large: false };
        match ownership.store(state).await {
            Ok(()) => Ok(Some(ownership)),
            Err(SharedError::Changed) if revision > 0 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores a state, on condition that nobody else has changed the value.
    async fn store(&mut self, state: &Map) -> Result<(), SharedError> {
        let embedded = pack(self.shared.member(), &self.process, state.clone());
        self.revision = if embedded.len() <= MAX_EMBEDDED {
            self.shared.put(&self.key, &embedded, self.revision).await?
        } else {
            let whole = msgpack::pack_map(state);
            if whole.len() > MAX_STATE {
                return Err(SharedError::TooLarge { size: whole.len(), limit: MAX_STATE });
            }
            let is_second = !self.is_second;
            let name = format!("{} {}", self.process, u8::from(is_second));
            self.has_large = true;
            self.shared.put_large(&self.key, &name, &whole).await?;
            let reference = format!("{name} {}", brine_digest::hex(Digest::Sha256.of(&whole)));
            let named = pack(self.shared.member(), &self.process, reference);
            let revision = self.shared.put(&self.key, &named, self.revision).await?;
            self.is_second = is_second;
            revision
        };
        Ok(())
    }

    /// Stores a state. Waits while the cluster does not answer, because without it the owner is unknown.
    pub async fn store_state(&mut self, state: &Map) -> StoreOutcome {
        let (mut backoff, mut was_away) = (Backoff::default(), false);
        loop {
            let error = match self.store(state).await {
                Ok(()) => return StoreOutcome::Stored,
                Err(SharedError::TooLarge { .. }) => return StoreOutcome::TooLarge,
                // An earlier attempt may have succeeded although its response was lost.
                Err(SharedError::Changed) => match self.current().await {
                    Ok(Some(revision)) => {
                        self.revision = revision;
                        continue;
                    }
                    Ok(None) => return StoreOutcome::Elsewhere,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if !was_away {
                tracing::warn!(key = self.key, %error, "storing work in the cluster failed: retrying");
            }
            was_away = true;
            backoff.wait().await;
        }
    }

    /// Returns the revision of the work in the cluster, if this process owns it.
    async fn current(&self) -> Result<Option<u64>, SharedError> {
        let owned = Owned::without_state(&self.shared, &self.key).await?.map(|(owned, _)| owned);
        let own = |owned: &Owned| owned.member == self.shared.member() && owned.process == self.process;
        Ok(owned.filter(own).map(|owned| owned.revision))
    }

    /// Removes work that has ended from the cluster.
    pub async fn end(self) {
        let mut backoff = Backoff::default();
        let mut revision = self.revision;
        loop {
            if let Ok(true) = self.shared.remove(revision).await {
                break;
            }
            match self.current().await {
                Ok(Some(current)) => revision = current,
                Ok(None) => return,
                Err(_) => {}
            }
            backoff.wait().await;
        }
        if self.has_large
            && let Err(error) = self.shared.remove_large(&self.key).await
        {
            tracing::debug!(key = self.key, %error, "removing a large state from the servers failed: it expires");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_round_trips_and_invalid_data_is_rejected() {
        let state = map! {"a" => 1};
        let packed = pack("m1", "p", state.clone());
        let owned = || Owned { member: "m1".into(), process: "p".into(), revision: 7, state: None };
        assert_eq!(unpack(&packed, 7), Some((owned(), state.into())));
        assert_eq!(unpack(&pack("m1", "p", "p 1"), 7), Some((owned(), "p 1".into())));
        for junk in [
            &b""[..],
            b"junk",
            &packed[..packed.len() - 1],
            &pack("m1", "p", 1),
            &msgpack::pack_map(&map! {"member" => "m1"}),
        ] {
            assert_eq!(unpack(junk, 7), None);
        }
    }
}
