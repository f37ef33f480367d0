//! Work of a cluster that one process owns, and another one goes on with when its owner dies: batches, orchestrations.
//!
//! The state of the work is a value of the cluster. The owner replaces it as it advances, under the condition that nobody
//! else has: a former owner that was cut off does nothing more.

use std::sync::Arc;

use brine_runtime::backoff::Backoff;
use brine_value::{Map, Value, map, msgpack};

use super::{Members, Shared, SharedError};

/// The maximum size of a state, in bytes: less than that of a value of the cluster.
const STATE: usize = 880 << 10;

/// The ownership of some work.
pub(crate) struct Ownership {
    shared: Arc<Shared>,
    key: String,
    /// Distinguishes the processes of one member.
    process: String,
    revision: u64,
}

/// Work as the cluster has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Owned {
    pub member: String,
    pub process: String,
    pub revision: u64,
    pub state: Map,
}

/// The outcome of storing a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// It is stored.
    Own,
    /// Another process owns the work now.
    Elsewhere,
    /// It is too large and not stored.
    TooLarge,
}

fn pack(member: &str, process: &str, state: &Map) -> Vec<u8> {
    msgpack::pack_map(&map! {"member" => member, "process" => process, "state" => state.clone()})
}

fn unpack(packed: &[u8], revision: u64) -> Option<Owned> {
    let mut fields: Map = msgpack::unpack_map(packed).ok()?;
    let text = |fields: &Map, name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let (member, process) = (text(&fields, "member")?, text(&fields, "process")?);
    let Some(Value::Map(state)) = fields.shift_remove("state") else { return None };
    Some(Owned { member, process, revision, state })
}

impl Owned {
    /// Reads the work with this key; `None` if there is none, or in an unknown form.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn read(shared: &Shared, key: &str) -> Result<Option<Self>, SharedError> {
        let Some(stored) = shared.get(key).await? else { return Ok(None) };
        let owned = unpack(&stored.value, stored.revision);
        if owned.is_none() {
            tracing::error!(key, "work of the cluster has an unknown form: is another master newer?");
        }
        Ok(owned)
    }

    /// Returns whether this member goes on with the work: its owner was an earlier process of this member, or is dead while this
    /// member leads.
    pub fn is_due(&self, shared: &Shared, process: &str, members: &Members) -> bool {
        if self.member == shared.member() {
            // That of this process has just ended.
            return self.process != process;
        }
        members.is_known && shared.leads() && !members.alive.contains(&self.member)
    }
}

impl Ownership {
    /// Makes new work that of the cluster. `None` if the cluster does not answer or the state is too large: the work then ends
    /// with this master.
    pub async fn begin(shared: &Arc<Shared>, key: &str, process: &str, state: &Map) -> Option<Self> {
        match Self::take(shared, key, process, state, 0).await {
            Ok(ownership) => ownership,
            Err(error) => {
                tracing::warn!(key, %error, "work has no successor: it ends with this master");
                None
            }
        }
    }

    /// Takes over work whose value has this revision. `None` if another process has changed it since.
    ///
    /// # Errors
    /// The cluster does not answer, or the state is too large.
    pub async fn take(
        shared: &Arc<Shared>,
        key: &str,
        process: &str,
        state: &Map,
        revision: u64,
    ) -> Result<Option<Self>, SharedError> {
        match shared.put(key, &pack(shared.member(), process, state), revision).await {
            Ok(revision) => {
                let (shared, key, process) = (Arc::clone(shared), key.to_owned(), process.to_owned());
                Ok(Some(Ownership { shared, key, process, revision }))
            }
            Err(SharedError::Changed) if revision > 0 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores a state. Waits while the cluster does not answer: without it nobody knows who goes on.
    pub async fn hold(&mut self, state: &Map) -> Held {
        let packed = pack(self.shared.member(), &self.process, state);
        if packed.len() > STATE {
            return Held::TooLarge;
        }
        let (mut backoff, mut was_away) = (Backoff::default(), false);
        loop {
            let error = match self.shared.put(&self.key, &packed, self.revision).await {
                Ok(revision) => {
                    self.revision = revision;
                    return Held::Own;
                }
                // An earlier attempt may have succeeded without an answer.
                Err(SharedError::Changed) => match self.current().await {
                    Ok(Some(revision)) => {
                        self.revision = revision;
                        continue;
                    }
                    Ok(None) => return Held::Elsewhere,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if !was_away {
                tracing::warn!(key = self.key, %error, "work waits for the cluster");
            }
            was_away = true;
            backoff.wait().await;
        }
    }

    /// Returns the revision of the work in the cluster, if this process owns it.
    async fn current(&self) -> Result<Option<u64>, SharedError> {
        let found = Owned::read(&self.shared, &self.key).await?;
        let own = |owned: &Owned| owned.member == self.shared.member() && owned.process == self.process;
        Ok(found.filter(own).map(|owned| owned.revision))
    }

    /// Removes work that has ended.
    pub async fn end(self) {
        let mut backoff = Backoff::default();
        let mut revision = self.revision;
        loop {
            if let Ok(true) = self.shared.remove(revision).await {
                return;
            }
            match self.current().await {
                Ok(Some(current)) => revision = current,
                Ok(None) => return,
                Err(_) => {}
            }
            backoff.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_read_back_and_garbage_is_none() {
        let state = map! {"a" => 1};
        let packed = pack("m1", "p", &state);
        let expected = Owned { member: "m1".into(), process: "p".into(), revision: 7, state };
        assert_eq!(unpack(&packed, 7), Some(expected));
        for junk in [&b""[..], b"junk", &packed[..packed.len() - 1], &msgpack::pack_map(&map! {"member" => "m1"})] {
            assert_eq!(unpack(junk, 7), None);
        }
    }
}
