//! Publishes of clients: who may publish, the event of a refused one, and the files of a job for clients of Salt.

use std::sync::Arc;

use brine_job::trim::trim_deep;
use brine_master_access::access::{Refusal, User};
use brine_master_jobs::{AUTH_LIST, Published};
use brine_value::{Value, map, msgpack};
use brine_wire::PublishRequest;
use brine_zmtp::Peer;

use super::Requests;

/// The maximum size of a refused publish in its event, in bytes.
const MAX_REFUSED: usize = 4096;

impl Requests {
    /// Writes the files of a job for the client that published it and is about to read them.
    pub(super) async fn write_job(&self, request: &PublishRequest, published: &Published) {
        let Some(jid) = published.jid.clone() else { return };
        let (mut load, minions) = (request.fields(&jid), published.minions.clone());
        load.extend(self.services.mask.record(&load));
        let files = Arc::clone(&self.services.job_files);
        let written = self.services.executors.disk.run(move |_| files.write_job(&jid, &load, &minions));
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "writing the files of a job for a client failed"),
            Err(error) => tracing::error!(%error, "writing the files of a job for a client failed"),
        }
    }

    /// Authenticates and authorises the publisher. Fields that only the master's own tools may set are removed from
    /// requests of other users.
    ///
    /// # Errors
    /// The user may not publish the job.
    pub(super) async fn admit_publish(
        self: &Arc<Self>,
        peer: &Peer,
        request: &mut PublishRequest,
    ) -> Result<(), Refusal> {
        let proof = request.proof.as_ref();
        let caller =
            Box::pin(self.services.access.identify(peer, "publish", request.key.as_deref(), &request.user, proof))
                .await?;
        let (caller, is_passed_on) = match caller {
            User::Master(name) => match request.kwargs.shift_remove(AUTH_LIST) {
                // The local syndic publishes with the master's key, and passes on the entries that limit the upstream
                // master's user.
                Some(Value::List(entries)) if !entries.is_empty() => (User::Limited { name, entries }, true),
                _ => (User::Master(name), false),
            },
            caller @ (User::Api | User::Limited { .. }) => {
                caller.name().clone_into(&mut request.user);
                (caller, false)
            }
        };
        Box::pin(self.services.access.authorise_job(peer, &caller, request, is_passed_on)).await?;
        if self.services.config.order_masters {
            let entries = if let User::Limited { entries, .. } = caller { entries } else { Vec::new() };
            request.kwargs.insert(AUTH_LIST.into(), self.services.access.entries_below(entries).into());
        }
        Ok(())
    }

    /// Publishes `salt/job/<jid>/error` for a refused publish that names a jid. Its size is limited, since
    /// unauthenticated peers can cause it.
    pub(super) async fn publish_refused(&self, request: &PublishRequest, refusal: &Refusal) {
        let Some(jid) = &request.jid else { return };
        let values = [&request.fun, &request.tgt, &Value::List(request.arg.clone())];
        let size: usize = values.iter().map(|value| msgpack::pack(value).len()).sum();
        if size + request.user.len() + request.ret.len() + request.tgt_type.len() > MAX_REFUSED {
            brine_bus::metrics::EVENTS_REFUSED.add(1);
            tracing::warn!(%jid, size, "event of a refused publish dropped: it exceeds {MAX_REFUSED} bytes");
            return;
        }
        let mut body = map! {"cmd" => "publish"};
        body.extend(request.fields(jid));
        body.extend(self.services.mask.record(&body));
        body.insert("error".into(), refusal.of_publish().get("error").cloned().into());
        // They may be why it is refused.
        trim_deep(&mut body);
        self.services.events.fire(&format!("salt/job/{jid}/error"), &body).await;
    }
}
