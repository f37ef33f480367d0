//! Publishes the jobs of upstream masters through the local master, under the original user and with its limits.

use std::sync::Arc;

use brine_client::{ClientError, MasterClient};
use brine_job::{LOAD_OPTIONS, MASTER_ID};
use brine_runtime::backoff::Backoff;
use brine_runtime::executors::Executor;
use brine_system::files;
use brine_value::{Map, Value, map};
use brine_wire::{Publication, PublishRequest};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bundle::events_load;
use crate::metrics;
use crate::settings::Settings;
use crate::upstream_master::{Received, UpstreamMaster};

/// The capacity of the queue of jobs for the local master. Further ones wait in the connection.
const QUEUE_CAPACITY: usize = 1024;

/// Publishes jobs through the local master.
pub(crate) struct Publisher {
    settings: Arc<Settings>,
    client: Arc<MasterClient>,
    disk: Executor,
    /// The local master's key for command-line tools, cached after the first read.
    key: Mutex<Option<String>>,
}

impl Publisher {
    /// Creates a publisher. It connects with the first job.
    pub fn new(settings: Arc<Settings>, client: Arc<MasterClient>, disk: Executor) -> Self {
        Publisher { settings, client, disk, key: Mutex::default() }
    }

    /// Maintains the session with an upstream master, and publishes its jobs, until `stopping`.
    pub async fn run(self: Arc<Self>, upstream: Arc<UpstreamMaster>, stopping: CancellationToken) {
        let (sender, jobs) = mpsc::channel(QUEUE_CAPACITY);
        tokio::select! {
            () = upstream.run_session(sender) => {}
            () = self.publish_all(&upstream, jobs) => {}
            () = stopping.cancelled() => {}
        }
        upstream.ready.send_replace(false);
    }

    /// Publishes the jobs of an upstream master in order, until the queue is closed.
    async fn publish_all(&self, upstream: &Arc<UpstreamMaster>, mut jobs: mpsc::Receiver<Received>) {
        while let Some(received) = jobs.recv().await {
            self.forward(upstream, received).await;
        }
    }

    async fn forward(&self, upstream: &Arc<UpstreamMaster>, Received { publication, at }: Received) {
        if self.is_own(&publication) || is_notice(&publication) {
            tracing::debug!(jid = %publication.jid, "job not forwarded: it was started here, or is the notice of new keys");
            return;
        }
        let publication = Arc::new(publication);
        // Recorded before a minion can return: that routes its returns to this master. It is recorded as published only
        // below: a syndic that is killed in between requests it again, and the minions run a job id once.
        let (one, received) = (Arc::clone(upstream), Arc::clone(&publication));
        // After a panic, which is logged, the job may be recorded.
        if !self.disk.run(move |_| one.receive(&received)).await.unwrap_or(false) {
            tracing::debug!(jid = %publication.jid, "job received a second time: it is not forwarded again");
            return;
        }
        let (jid, fun) = (&publication.jid, &publication.fun);
        tracing::info!(%jid, %fun, user = publication.user, master = %upstream.address, "job received from an upstream master");
        let patience = upstream.patience().max(self.settings.master.timeout.pause());
        match self.publish(&publication, at + patience).await {
            Ok(true) => metrics::JOBS.add(1),
            Ok(false) => {
                metrics::JOBS.add(1);
                self.report(upstream, &publication, "new", map! {"missing" => Value::List(Vec::new())}).await;
            }
            Err(error) => {
                metrics::JOBS_REFUSED.add(1);
                tracing::error!(%jid, %fun, %error, "the local master refuses a job of an upstream master");
                self.report(upstream, &publication, "error", map! {"error" => error.to_string()}).await;
            }
        }
        let one = Arc::clone(upstream);
        // A failure is logged: the job is published once more after a restart.
        _ = self.disk.run(move |_| one.is_published(&publication)).await;
    }

    /// Whether a job was started by the local master, and has come back.
    fn is_own(&self, publication: &Publication) -> bool {
        let own = self.settings.master.master_id.as_deref();
        own.is_some() && publication.load.get(MASTER_ID).and_then(Value::as_str) == own
    }

    /// Publishes a job. Returns whether it targets any minion; the event of the new job lists them. Waits for a local
    /// master that is restarting.
    async fn publish(&self, publication: &Publication, until: Instant) -> Result<bool, ClientError> {
        let options =
            LOAD_OPTIONS.iter().filter_map(|name| Some(((*name).into(), publication.load.get(*name)?.clone())));
        let mut request = PublishRequest {
            tgt: publication.tgt.clone(),
            tgt_type: publication.tgt_type.clone(),
            fun: publication.fun.clone(),
            arg: publication.arg.clone(),
            ret: publication.ret.clone(),
            jid: Some(publication.jid.clone()),
            key: None,
            proof: None,
            user: publication.user.clone(),
            kwargs: options.collect(),
        };
        let mut backoff = Backoff::default();
        let mut is_key_fresh = false;
        loop {
            request.key = self.key(is_key_fresh).await;
            match self.client.publish(&request).await {
                Ok(published) => return Ok(published.jid.is_some()),
                // The local master has written a new key in the meantime.
                Err(ClientError::WrongKey(_)) if !is_key_fresh => is_key_fresh = true,
                Err(error @ ClientError::Unreachable(_)) if Instant::now() < until => {
                    tracing::warn!(jid = %publication.jid, %error, "the local master does not answer: retrying");
                    backoff.wait().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the key for command-line tools. `again` reads it anew.
    async fn key(&self, again: bool) -> Option<String> {
        let key = self.key.lock().clone();
        if key.is_some() && !again {
            return key;
        }
        let path = self.settings.key_file.clone();
        let read = self.disk.run(move |_| files::read_if_exists(&path)).await;
        match read {
            Ok(Ok(key)) => {
                self.key.lock().clone_from(&key);
                key
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "reading the local master's key failed");
                None
            }
            Err(error) => {
                tracing::error!(%error, "reading the local master's key failed");
                None
            }
        }
    }

    /// Reports to an upstream master that a job has no minions here, so that the master does not wait for any.
    async fn report(&self, upstream: &UpstreamMaster, publication: &Publication, what: &str, more: Map) {
        let jid = &publication.jid;
        let mut data = map! {
            "jid" => jid,
            "fun" => publication.fun.clone(),
            "minions" => Value::List(Vec::new()),
            "syndics" => Value::List(Vec::new()),
        };
        data.extend(more);
        let load = events_load(self.settings.id.as_str(), vec![(format!("salt/job/{jid}/{what}"), data)]);
        if let Err(error) = upstream.channel.request(load).await {
            tracing::warn!(%jid, master = %upstream.address, %error, "reporting to the upstream master failed");
        }
    }
}

/// Whether a publication is the notice of rotated keys, which targets no minion.
fn is_notice(publication: &Publication) -> bool {
    publication.tgt.as_list().is_some_and(<[Value]>::is_empty)
}
