//! Takes over the work of dead members: their batches and orchestrations are resumed here, and their other calls are
//! reported as failed.
//!
//! The running calls of each member are a value of the cluster, `calls.<member>`. It is written at the next poll after
//! a change, and at once when an orchestration begins. A short call between two polls costs nothing. Calls other than
//! orchestrations cannot be resumed, so the leader publishes their failure, once.

use std::collections::HashSet;
use std::sync::Arc;

use brine_ids::Jid;
use brine_master_calls::{REACTION, RunnerCalls};
use brine_master_jobs::checkpoint::{self, Checkpoint};
use brine_master_store::shared::{Members, Owned, Shared, SharedError};
use brine_value::{Map, Value, map, msgpack};
use tokio_util::sync::CancellationToken;

/// The prefix of the keys of calls.
const PREFIX: &str = "calls.";
/// The maximum number of listed calls of a member, and the size in bytes from which the arguments of a call are left
/// out.
const MAX_CALLS: usize = 256;
const MAX_ARGUMENTS: usize = 2 << 10;

/// Polls the members of the cluster until `shutdown`, and takes over the work of dead ones.
pub(crate) async fn follow_members(calls: Arc<RunnerCalls>, shared: Arc<Shared>, shutdown: CancellationToken) {
    let mut members = shared.members();
    let mut successor = Successor { calls, shared, written: None, is_resumed: false, reported: HashSet::new() };
    let interval = successor.shared.lease() / 5;
    let mut was_away = false;
    loop {
        let current_members = members.borrow_and_update().clone();
        let result = tokio::select! {
            result = successor.poll(&current_members) => result,
            () = shutdown.cancelled() => return,
        };
        match result {
            Ok(()) => was_away = false,
            Err(error) => {
                if !std::mem::replace(&mut was_away, true) {
                    tracing::warn!(%error, "reading the work of other masters failed: retrying");
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            _ = members.changed() => {}
            () = successor.calls.orchestration_begun.notified() => {}
            () = shutdown.cancelled() => return,
        }
    }
}

struct Successor {
    calls: Arc<RunnerCalls>,
    shared: Arc<Shared>,
    /// The running calls of this member as last stored in the cluster; `None` before the first write.
    written: Option<Vec<u8>>,
    /// Whether the work of this member's earlier process has been handled.
    is_resumed: bool,
    /// The calls whose failure this process has published: their value may be read again before it is removed.
    reported: HashSet<String>,
}

impl Successor {
    async fn poll(&mut self, members: &Members) -> Result<(), SharedError> {
        if !self.is_resumed {
            self.report(&own_key(self.shared.member())).await?;
            self.move_queues().await?;
            self.calls.services.jobs.resume_own_batches(&self.shared).await?;
            self.is_resumed = true;
        }
        let running = pack(self.calls.running_on_their_own(MAX_CALLS));
        if self.written.as_ref() != Some(&running) {
            self.shared.replace(&own_key(self.shared.member()), &running).await?;
            self.written = Some(running);
        }
        if members.is_known && self.shared.leads() {
            for key in self.shared.keys(PREFIX).await? {
                let is_alive = |member: &String| own_key(member) == key;
                if !members.alive.iter().any(is_alive) {
                    self.report(&key).await?;
                }
            }
        }
        self.adopt_orchestrations(members).await?;
        self.calls.services.jobs.adopt_batches(&self.shared, members).await
    }

    /// Resumes orchestrations whose owner is dead, if this member leads, and those of this member's earlier process.
    async fn adopt_orchestrations(&self, members: &Members) -> Result<(), SharedError> {
        let process = &self.calls.services.jobs.process;
        for key in self.shared.keys(checkpoint::PREFIX).await? {
            let jid = key.strip_prefix(checkpoint::PREFIX).and_then(|jid| jid.parse::<Jid>().ok());
            let Some(jid) = jid.filter(|jid| !self.calls.is_running(jid)) else { continue };
            let Some(owned) = Owned::read(&self.shared, &key).await? else { continue };
            if !owned.is_due(&self.shared, process, members) {
                continue;
            }
            let Owned { member: from, revision, state, .. } = owned;
            let Some(state) = checkpoint::progress(state) else {
                self.shared.remove(revision).await?;
                continue;
            };
            let call = state.get(checkpoint::CALL).and_then(Value::as_map).cloned().unwrap_or_default();
            if call.get(REACTION).is_some_and(Value::is_truthy) {
                // The reactor repeats the call, with the same jid.
                continue;
            }
            let adopted = Checkpoint::adopt(&self.shared, &key, process, state, revision).await?;
            let Some(checkpoint) = adopted else { continue };
            tracing::info!(%jid, from, "orchestration taken over");
            if !self.calls.resume(jid.clone(), &call, checkpoint) {
                tracing::error!(%jid, "an orchestration of the cluster has an unknown format: is another master newer?");
            }
        }
        Ok(())
    }

    /// Publishes the failure of the calls of a dead process, and removes them.
    async fn report(&mut self, key: &str) -> Result<(), SharedError> {
        let Some(stored) = self.shared.get(key).await? else { return Ok(()) };
        let calls = unpack(&stored.value);
        if calls.is_none() {
            tracing::error!(key, "the calls of another master have an unknown format: is it newer?");
        }
        for call in calls.unwrap_or_default() {
            if self.has_successor(&call).await? {
                continue;
            }
            let Some((tag, body)) = failure(call) else { continue };
            if !self.reported.insert(tag.clone()) {
                continue;
            }
            let fun = body.get("fun").map(ToString::to_string).unwrap_or_default();
            tracing::error!(tag, fun, "a call was interrupted, because its master has ended: it is not repeated");
            if let Err(error) = self.calls.services.events.fire_job(&tag, &body).await {
                tracing::error!(tag, %error, "publishing an event failed");
            }
        }
        // A new leader may have removed it first.
        self.shared.remove(stored.revision).await.map(drop)
    }

    /// Whether a call is an orchestration that another process resumes.
    async fn has_successor(&self, call: &Map) -> Result<bool, SharedError> {
        let jid = call.get("jid").and_then(Value::as_str).and_then(|jid| jid.parse::<Jid>().ok());
        let Some(jid) = jid else { return Ok(false) };
        let owned = Owned::read(&self.shared, &checkpoint::key(&jid)).await?;
        Ok(owned.and_then(|owned| checkpoint::progress(owned.state)).is_some())
    }

    /// Moves the queues that this master had before it joined into the cluster.
    async fn move_queues(&self) -> Result<(), SharedError> {
        let storage = &self.calls.services.storage;
        let own = storage.run(|storage| storage.queues.names()).await;
        for name in own.ok().and_then(Result::ok).unwrap_or_default() {
            let lock = self.shared.lock(&format!("queue {name}")).await?;
            let moved = self.move_queue(&name).await;
            self.shared.unlock(lock).await;
            moved?;
        }
        Ok(())
    }

    async fn move_queue(&self, name: &str) -> Result<(), SharedError> {
        let storage = &self.calls.services.storage;
        let queue = name.to_owned();
        let read = storage.run(move |storage| {
            Ok::<_, brine_master_store::queues::QueueError>(storage.queues.head(&queue, usize::MAX)?.items.clone())
        });
        let Ok(Ok(items)) = read.await else { return Ok(()) };
        tracing::info!(queue = name, items = items.len(), "the items of a queue move into the cluster");
        let last = self.shared.queue_last(name).await?;
        self.shared.queue_push(name, &items.iter().map(msgpack::pack).collect::<Vec<_>>(), last).await?;
        let queue = name.to_owned();
        // A crash before this point appends the items again: none is lost.
        let drained = storage.run(move |storage| storage.queues.drain(&queue).map(drop)).await;
        if !matches!(drained, Ok(Ok(()))) {
            tracing::error!(queue = name, "removing the items of a queue failed: they are in the cluster twice");
        }
        Ok(())
    }
}

fn own_key(member: &str) -> String {
    // Names of members use the alphabet of keys.
    format!("{PREFIX}{member}")
}

fn pack(calls: Vec<Map>) -> Vec<u8> {
    let short = |mut call: Map| {
        if call.get("fun_args").is_some_and(|args| msgpack::pack(args).len() > MAX_ARGUMENTS) {
            call.shift_remove("fun_args");
        }
        Value::Map(call)
    };
    msgpack::pack(&Value::List(calls.into_iter().map(short).collect()))
}

fn unpack(packed: &[u8]) -> Option<Vec<Map>> {
    let Ok(Value::List(calls)) = msgpack::unpack(packed) else { return None };
    let map = |call| if let Value::Map(call) = call { Some(call) } else { None };
    calls.into_iter().take(MAX_CALLS).map(map).collect()
}

/// Returns the tag and body of the event that reports an interrupted call as failed; `None` if `call` is malformed.
fn failure(call: Map) -> Option<(String, Map)> {
    let jid: Jid = call.get("jid")?.as_str()?.parse().ok()?;
    let fun = call.get("fun")?.as_str()?;
    let kind = if fun.starts_with("wheel.") { "wheel" } else { "run" };
    let text = "The call was interrupted, because its master has ended. It is not repeated: see how far it came, and start \
                it again.";
    let mut body: Map = call
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), Some("fun" | "fun_args" | "jid" | "user")))
        .map(owned)
        .collect();
    body.extend(map! {"return" => text, "success" => false, "retcode" => 1});
    Some((format!("salt/{kind}/{jid}/ret"), body))
}

fn owned((name, value): (&Value, &Value)) -> (Value, Value) {
    (name.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn an_interrupted_call_is_reported_as_failed() {
        let call = map! {
            "fun" => "runner.state.orchestrate", "jid" => "20261120235852025555", "user" => "root", "fun_args" => list!["orch.x"],
            "_from" => "evil",
        };
        let calls = unpack(&pack(vec![call.clone()])).unwrap();
        let (tag, body) = failure(calls[0].clone()).unwrap();
        assert_eq!(tag, "salt/run/20261120235852025555/ret");
        assert_eq!((body.get("success"), body.get("retcode")), (Some(&false.into()), Some(&1.into())));
        assert_eq!((body.get("user"), body.get("_from")), (Some(&"root".into()), None));
        let wheel = map! {"fun" => "wheel.key.list", "jid" => "20261120235852025555"};
        assert_eq!(failure(wheel).unwrap().0, "salt/wheel/20261120235852025555/ret");
    }

    #[test]
    fn invalid_data_reports_nothing_and_large_arguments_are_omitted() {
        for junk in [&b""[..], b"junk", &msgpack::pack(&list![1])] {
            assert_eq!(unpack(junk), None);
        }
        for call in [Map::new(), map! {"jid" => "../x", "fun" => "runner.x.y"}, map! {"jid" => "20261120235852025555"}]
        {
            assert_eq!(failure(call), None);
        }
        let large = map! {"fun" => "runner.x.y", "fun_args" => "x".repeat(MAX_ARGUMENTS)};
        assert_eq!(unpack(&pack(vec![large])), Some(vec![map! {"fun" => "runner.x.y"}]));
    }
}
