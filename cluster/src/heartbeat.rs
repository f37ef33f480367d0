//! Heartbeats of the members, and the minions that are connected to each.
//!
//! A member puts a small value into the bucket of leases, where it expires by itself. It writes its connected minions
//! into the bucket of work whenever they change. The other members read the minions again when the digest in the
//! heartbeat has changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::Operation;
use brine_digest::Digest;
use brine_value::{FromValue, Value, map, msgpack};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::server_time;
use crate::link::{name_of, token};
use crate::message::MAX_PAYLOAD;
use crate::shared::{Members, Shared, SharedError};
use crate::{Local, metrics};

/// The maximum number of parts of a member's minion list, enough for about a million minions.
const MAX_PARTS: u64 = 256;
/// The prefixes of keys.
const ALIVE: &str = "alive.";
const PRESENT: &str = "present.";

/// The heartbeat of a member.
#[derive(Debug, Clone, Default, PartialEq)]
struct HeartbeatValue {
    /// The number of parts of its minion list.
    parts: u64,
    /// The SHA-256 digest of its minion list.
    digest: Vec<u8>,
}

impl HeartbeatValue {
    fn of(present: &[u8]) -> Self {
        HeartbeatValue { parts: present.len().div_ceil(MAX_PAYLOAD) as u64, digest: Digest::Sha256.of(present) }
    }

    fn pack(&self) -> Vec<u8> {
        msgpack::pack_map(&map! {"parts" => self.parts, "digest" => Value::Bytes(self.digest.clone())})
    }

    fn unpack(packed: &[u8]) -> Option<Self> {
        let fields = msgpack::unpack_map(packed).ok()?;
        let parts = u64::from_value(fields.get("parts")?).filter(|parts| *parts <= MAX_PARTS)?;
        Some(HeartbeatValue { parts, digest: fields.get("digest")?.as_bytes()?.to_vec() })
    }
}

/// The heartbeat task.
pub(crate) struct Heartbeat {
    pub shared: Arc<Shared>,
    pub local: Arc<dyn Local>,
    /// The heartbeat whose minion list is stored on the servers.
    announced: Option<HeartbeatValue>,
    /// The last heartbeat of each other member, and its minion list.
    heartbeats: HashMap<String, (HeartbeatValue, Vec<u8>)>,
    /// The time of the last heartbeat of each other member.
    seen: BTreeMap<String, Instant>,
    /// The time of the first response of the servers since the last outage.
    since: Option<Instant>,
}

impl Heartbeat {
    pub fn new(shared: Arc<Shared>, local: Arc<dyn Local>) -> Self {
        Heartbeat { shared, local, announced: None, heartbeats: HashMap::new(), seen: BTreeMap::new(), since: None }
    }

    /// Sends heartbeats until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let interval = (self.shared.lease() / 5).max(Duration::from_millis(100));
        loop {
            let began = Instant::now();
            let beat = tokio::select! {
                beat = self.beat() => beat,
                () = shutdown.cancelled() => return self.end().await,
            };
            if let Err(error) = beat {
                tracing::debug!(%error, "sending a heartbeat failed");
                (self.announced, self.since) = (None, None);
                // Missing heartbeats prove nothing while the servers are away.
                self.shared.members.send_if_modified(|members| std::mem::take(&mut members.is_known));
                if self.shared.is_isolated() {
                    self.heartbeats.clear();
                    self.local.members_received(Vec::new());
                }
            }
            tokio::select! {
                () = tokio::time::sleep(interval.saturating_sub(began.elapsed())) => {}
                () = shutdown.cancelled() => return self.end().await,
            }
        }
    }

    /// Removes the heartbeat, so that other members do not wait until it expires.
    async fn end(&self) {
        let key = format!("{ALIVE}{}", token(self.shared.member()));
        if let Ok(resources) = self.shared.link.resources().await {
            // Best effort.
            _ = tokio::time::timeout(Duration::from_secs(1), resources.lease.delete(key)).await;
        }
    }

    async fn beat(&mut self) -> Result<(), SharedError> {
        let present = self.local.connected_minions();
        let heartbeat = HeartbeatValue::of(&present);
        let own = token(self.shared.member());
        if heartbeat.parts <= MAX_PARTS && self.announced.as_ref() != Some(&heartbeat) {
            for (number, part) in present.chunks(MAX_PAYLOAD).enumerate() {
                self.shared.replace(&format!("{PRESENT}{own}.{number}"), part).await?;
            }
            self.announced = Some(heartbeat.clone());
        }
        let resources = self.shared.link.resources().await?;
        let key = format!("{ALIVE}{own}");
        let sealed = self.shared.link.seal(&key, &self.announced.clone().unwrap_or(heartbeat).pack());
        let sent = Instant::now();
        resources.lease.put(&key, sealed).await.map_err(|error| self.shared.unavailable(error))?;
        self.shared.state.servers_answered();
        let heartbeats = self.heartbeats(sent).await?;
        self.apply(heartbeats).await?;
        Ok(())
    }

    /// Returns the heartbeats of the other members. This member's own, sent at `sent`, tells the time of the servers.
    async fn heartbeats(&self, sent: Instant) -> Result<BTreeMap<String, HeartbeatValue>, SharedError> {
        let resources = self.shared.link.resources().await?;
        let keys = self.shared.link.keys("leases", &resources.lease_stream, ALIVE).await?;
        let mut heartbeats = BTreeMap::new();
        for key in keys {
            let Some(member) = key.strip_prefix(ALIVE).and_then(name_of) else { continue };
            let Ok(member) = String::from_utf8(member) else { continue };
            let entry = resources.lease.entry(&key).await.map_err(|error| self.shared.unavailable(error))?;
            let Some(entry) = entry.filter(|entry| entry.operation == Operation::Put) else { continue };
            let stored = server_time(entry.created.unix_timestamp_nanos());
            if member == self.shared.member() {
                self.shared.link.clock.set(sent, stored);
                continue;
            }
            let opened = self.shared.link.open_new(&key, &entry.value, stored).ok();
            let opened = opened.and_then(|opened| HeartbeatValue::unpack(&opened.plain));
            if let Some(heartbeat) = opened {
                heartbeats.insert(member, heartbeat);
            } else {
                metrics::VALUES_REFUSED.add(1);
                tracing::error!(
                    key,
                    "heartbeat refused: it is old, invalid or cannot be decrypted; the masters of a cluster need the same secret"
                );
            }
        }
        Ok(heartbeats)
    }

    /// Records the members that are alive, and reads the minion lists that have changed.
    async fn apply(&mut self, heartbeats: BTreeMap<String, HeartbeatValue>) -> Result<(), SharedError> {
        let (now, lease) = (Instant::now(), self.shared.lease());
        let mut is_new = self.heartbeats.len() != heartbeats.len();
        self.heartbeats.retain(|member, _| heartbeats.contains_key(member));
        for (member, heartbeat) in heartbeats {
            self.seen.insert(member.clone(), now);
            if self.heartbeats.get(&member).is_some_and(|(previous, _)| *previous == heartbeat) {
                continue;
            }
            // `None`: the parts already belong to a newer heartbeat, and are read with that one.
            if let Some(present) = self.present_of(&member, &heartbeat).await? {
                self.heartbeats.insert(member, (heartbeat, present));
                is_new = true;
            }
        }
        if is_new {
            let all = self.heartbeats.iter().map(|(member, (_, present))| (member.clone(), present.clone()));
            self.local.members_received(all.collect());
        }
        self.seen.retain(|_, seen| seen.elapsed() < lease);
        let since = *self.since.get_or_insert(now);
        let own = self.shared.member().to_owned();
        let alive: BTreeSet<String> = self.seen.keys().cloned().chain([own]).collect();
        // After an outage every member gets one lease to send a heartbeat.
        let members = Members { alive, is_known: since.elapsed() > lease };
        self.shared.members.send_if_modified(|current| {
            let is_changed = *current != members;
            *current = members;
            is_changed
        });
        Ok(())
    }

    /// Returns the minion list of a member; `None` if it does not match the digest of the heartbeat.
    async fn present_of(&self, member: &str, heartbeat: &HeartbeatValue) -> Result<Option<Vec<u8>>, SharedError> {
        let mut whole = Vec::new();
        for number in 0..heartbeat.parts {
            let part = self.shared.get(&format!("{PRESENT}{}.{number}", token(member))).await?;
            whole.extend(part.map(|stored| stored.value).unwrap_or_default());
        }
        Ok((Digest::Sha256.of(&whole) == heartbeat.digest).then_some(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_round_trip_and_are_bounded() {
        let heartbeat = HeartbeatValue::of(b"web1 web2");
        assert_eq!((HeartbeatValue::unpack(&heartbeat.pack()), heartbeat.parts), (Some(heartbeat.clone()), 1));
        assert_eq!(HeartbeatValue::of(b"").parts, 0);
        let huge = HeartbeatValue { parts: MAX_PARTS + 1, ..heartbeat };
        for packed in [&b""[..], b"junk", &huge.pack()] {
            assert_eq!(HeartbeatValue::unpack(packed), None);
        }
    }
}
