//! Handles requests on port 4506: decrypts, parses, authorises and answers them. `publishes.rs` admits the publishes of
//! clients, `events.rs` processes events and returns of minions, `refusals.rs` logs refused requests, `signatures.rs`
//! verifies the signatures of returns, `tags/` decides which tags a minion may publish, and `tokens.rs` formats tokens.

mod events;
mod publishes;
mod refusals;
mod signatures;
mod tags;
mod tokens;

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_ids::{Jid, MinionId};
use brine_master_access::access::{MasterCall, Refusal, SOURCE, User};
use brine_master_access::admission::clear;
use brine_master_access::admission::sessions::SessionError;
use brine_master_calls::{Caller, RunnerCalls, Services};
use brine_master_custom::Kind;
use brine_master_facts::pillars::PillarQuery;
use brine_master_store::file_requests;
use brine_master_store::mines::MineError;
use brine_master_store::return_events::ReturnEvents;
use brine_runtime::executors::{Executor, MayBlock};
use brine_value::msgpack::{self, Budget};
use brine_value::{Map, Value, map};
use brine_wire::{Call, ClientCommand, Envelope, Forwarded, HookEvent, IGNORES_JOB_FILES, MinionCommand, WireError};
use brine_zmtp::{Handler, Peer, Worker};
use bytes::Bytes;

use crate::engines;
use crate::peers::{self, Peers};
use crate::pushed_files;
use crate::stats::Stats;
use refusals::{BAD_LOAD, log_refused, refuse, report_unknown};

/// The handler of the request port.
pub(crate) struct RequestHandler(pub Arc<Requests>);

/// The parts of a master that requests use.
pub(crate) struct Requests {
    services: Arc<Services>,
    calls: Arc<RunnerCalls>,
    peers: Arc<Peers>,
    returns: ReturnEvents,
    stats: Stats,
    /// Whether the master receives webhooks itself: then minions cannot publish theirs.
    receives_webhooks: bool,
    /// Held for reading while the files of a job are being written (`write_job`). Returns wait for it.
    unwritten: tokio::sync::RwLock<()>,
}

impl Requests {
    /// Creates the request handling of a master.
    pub fn new(calls: Arc<RunnerCalls>, returns: ReturnEvents) -> Arc<Self> {
        let peers = Arc::new(Peers::new(Arc::clone(&calls)));
        Arc::new(Requests {
            receives_webhooks: engines::receives_webhooks(&calls.services),
            services: Arc::clone(&calls.services),
            calls,
            peers,
            returns,
            stats: Stats::default(),
            unwritten: tokio::sync::RwLock::default(),
        })
    }
}

impl Handler for RequestHandler {
    async fn handle(&self, peer: Peer, request: Bytes, worker: Worker) -> Option<Bytes> {
        let budget = if peer.is_authenticated() { Budget::AUTHENTICATED } else { Budget::UNAUTHENTICATED };
        let (services, config) = (&self.0.services, &self.0.services.config);
        // Thousands of requests may wait for the disk: unneeded data is dropped early, and rare branches are boxed.
        let envelope =
            match decode(&services.executors.crypto, request.len(), move || Envelope::unpack(&request, budget)).await {
                Some(Ok(envelope)) => envelope,
                Some(Err(error)) => return Some(refuse(&peer, None, &error)),
                None => return self.refuse(&peer),
            };
        let start = Instant::now();
        let named = |load: &Map| if config.master_stats { load.get("cmd").map(ToString::to_string) } else { None };
        let asked;
        let reply = match envelope {
            Envelope::Clear { load, version } => {
                asked = named(&load);
                match ClientCommand::from_map(&load) {
                    Ok(ClientCommand::Auth(auth, _)) if version < config.minimum_auth_version => {
                        return Some(refuse(&peer, Some(&auth.id), &WireError::OldVersion(version)));
                    }
                    Ok(command) => {
                        let reply = Box::pin(self.0.client_command(&peer, command, worker)).await;
                        // Unauthenticated peers must not fill the log.
                        if peer.is_authenticated() {
                            report_unknown(&peer, None, &load);
                        }
                        reply
                    }
                    Err(error) => return Some(refuse(&peer, None, &error)),
                }
            }
            Envelope::Sealed { id, version, .. } if version < config.minimum_auth_version => {
                return Some(refuse(&peer, Some(&id), &WireError::OldVersion(version)));
            }
            Envelope::Sealed { id, load, encryption, signature, .. } => {
                let (sessions, minion, sealed) = (Arc::clone(services.admission.sessions()), id.clone(), load.clone());
                let mut opened =
                    match decode(&services.executors.crypto, load.len(), move || sessions.open(&minion, &sealed)).await
                    {
                        Some(Ok(opened)) => opened,
                        Some(Err(error)) => match Box::pin(services.admission.open_shared(&peer, &id, load)).await {
                            Some(opened) => opened,
                            None => return Some(refuse(&peer, Some(&id), &error)),
                        },
                        None => return self.refuse(&peer),
                    };
                peer.authenticate();
                let ttl = config.request_server_ttl;
                if ttl > 0 && !opened.is_within(ttl) {
                    return Some(refuse(&peer, Some(&id), &SessionError::TooOld));
                }
                services.facts.presence.record(&id, &peer);
                asked = named(&opened.load);
                let load = std::mem::take(&mut opened.load);
                report_unknown(&peer, Some(&id), &load);
                let signed = signatures::return_signature(&load, &opened);
                match MinionCommand::from_map(load) {
                    Ok(command @ MinionCommand::Pillar { .. }) => {
                        let value = self.0.minion_command(&id, command, worker).await;
                        let identity = Arc::clone(services.admission.identity());
                        // RSA takes milliseconds, so it does not run on the threads that serve sockets.
                        let sealed = services
                            .executors
                            .crypto
                            .run(move |_| opened.reply_private(&value, &identity.private_key, encryption, signature));
                        match sealed.await {
                            Ok(Ok(reply)) => reply,
                            Ok(Err(error)) => return Some(refuse(&peer, Some(&id), &error)),
                            Err(error) => return Some(refuse(&peer, Some(&id), &error)),
                        }
                    }
                    Ok(command) => {
                        let value = if self.0.accepts_signature(&id, &command, signed, signature).await {
                            self.0.minion_command(&id, command, worker).await
                        } else {
                            false.into()
                        };
                        opened.reply(&value)
                    }
                    Err(error) => {
                        // The session is valid: with Salt's empty answer the minion does not authenticate again.
                        log_refused(&peer, Some(&id), &error);
                        opened.reply(&Value::map())
                    }
                }
            }
        };
        if let Some(command) = asked {
            self.0.count(&command, start).await;
        }
        Some(reply.into())
    }

    /// Returns the reply that makes minions authenticate and retry.
    fn refuse(&self, peer: &Peer) -> Option<Bytes> {
        brine_wire::metrics::REQUESTS_REFUSED.add(1);
        tracing::debug!(peer = %peer.address, "request refused: decoding it failed");
        Some(msgpack::pack(&BAD_LOAD.into()).into())
    }
}

/// The size from which messages are decoded on the executor `crypto`, in bytes.
const LARGE: usize = 1 << 20;

/// Decodes a message of this size; `None` if that panicked.
async fn decode<T: Send + 'static>(
    crypto: &Executor,
    size: usize,
    decode: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if size < LARGE {
        return Some(decode());
    }
    crypto.run(|_| decode()).await.ok()
}

impl Requests {
    async fn client_command(self: &Arc<Self>, peer: &Peer, command: ClientCommand, worker: Worker) -> Vec<u8> {
        match command {
            ClientCommand::Ping => clear(map! {"cmd" => "ping", "id" => &self.services.id}.into()),
            ClientCommand::Auth(request, binding) => {
                drop(worker);
                self.services.admission.authenticate(peer, *request, binding).await
            }
            ClientCommand::Publish(request) => {
                let mut request = *request;
                if request.proof.is_some() {
                    // Verifying a password takes a second or more, and unauthenticated peers may send any.
                    drop(worker);
                }
                if let Err(refusal) = self.admit_publish(peer, &mut request).await {
                    self.publish_refused(&request, &refusal).await;
                    return clear(refusal.of_publish());
                }
                let reads_files = request.kwargs.shift_remove(IGNORES_JOB_FILES).is_none();
                let written = reads_files.then(|| request.clone());
                let unwritten = if reads_files { Some(self.unwritten.read().await) } else { None };
                match self.services.jobs.publish(request).await {
                    Ok(published) => {
                        if let Some(request) = written {
                            self.write_job(&request, &published).await;
                        }
                        drop(unwritten);
                        clear(published.to_value())
                    }
                    Err(error) => clear(map! {"error" => map! {"message" => error.to_string()}}.into()),
                }
            }
            ClientCommand::Runner(call) => self.client_call(peer, Kind::Runner, call, worker).await,
            ClientCommand::Wheel(call) => self.client_call(peer, Kind::Wheel, call, worker).await,
            ClientCommand::MakeToken(request) => {
                drop(worker);
                let made = Box::pin(self.services.access.make_token(peer, *request)).await;
                // As in Salt, the reply has no envelope.
                msgpack::pack(
                    &made.map_or_else(|| "".into(), |made| tokens::fields(&made.token, Some(&made.secret)).into()),
                )
            }
            ClientCommand::Forwarded(forwarded) => {
                let Forwarded { key, address, command } = *forwarded;
                match self.services.access.admit_api(peer, &key, "forward").await {
                    Ok(()) => Box::pin(self.client_command(&peer.forwarding(address), command, worker)).await,
                    Err(refusal) => clear(refusal.of_call()),
                }
            }
            ClientCommand::Hook(event) => {
                let HookEvent { key, tag, data } = *event;
                if let Err(refusal) = self.services.access.admit_api(peer, &key, "hook").await {
                    return clear(refusal.of_call());
                }
                if Box::pin(self.hook_event(&tag, data, worker)).await {
                    clear(map! {"success" => true}.into())
                } else {
                    let message = "publishing the event failed: see the log of the master";
                    clear(map! {"error" => map! {"message" => message}}.into())
                }
            }
            ClientCommand::GetToken(secret) => {
                let token = self.services.access.token(&secret).await;
                msgpack::pack(&token.map_or_else(Value::map, |token| tokens::fields(&token, Some(&secret)).into()))
            }
        }
    }

    async fn client_call(self: &Arc<Self>, peer: &Peer, kind: Kind, call: Call, worker: Worker) -> Vec<u8> {
        let Call { fun, args, key, proof, user, asynchronous, jid, is_salt } = call;
        // Salt's own clients read the reply itself; a runner call returns at once, and its result is an event.
        let reply = |load: Value| if is_salt { msgpack::pack(&load) } else { clear(load) };
        let asynchronous = asynchronous || (is_salt && kind == Kind::Runner);
        // Verifying a password takes a second or more, and unauthenticated peers may send any.
        let worker = proof.is_none().then_some(worker);
        let admitted = async {
            let caller = self.services.access.identify(peer, &fun, key.as_deref(), &user, proof.as_ref()).await?;
            let call = MasterCall {
                kind,
                function: &fun,
                args: &args,
                source: self.calls.argument(kind, &fun, &args, SOURCE),
            };
            self.services.access.authorise_call(peer, &caller, &call, proof.as_ref()).await?;
            Ok::<_, Refusal>(caller)
        };
        let caller = match Box::pin(admitted).await {
            Ok(caller) => caller,
            Err(refusal) => return reply(refusal.of_call()),
        };
        let started = match &caller {
            User::Api => self.calls.start_for_api(&fun, args, caller.name()).await,
            User::Master(name) if !asynchronous || jid.is_some() => {
                self.calls.start_for_tool(kind, &fun, args, name, jid).await
            }
            caller => self.calls.start(kind, &fun, args, caller.name(), &Map::new()).await,
        };
        if asynchronous {
            return reply(map! {"jid" => &started.jid, "tag" => started.tag.as_str()}.into());
        }
        // The function may wait for minions, whose returns need workers.
        drop(worker);
        let mut finished = started.finish().await;
        if kind == Kind::Wheel
            && let Some(tag) = finished.get("tag").cloned()
            && let Some(Value::Map(data)) = finished.get_mut("data")
        {
            data.insert("tag".into(), tag);
        }
        reply(finished.into())
    }

    async fn minion_command(self: &Arc<Self>, id: &MinionId, command: MinionCommand, worker: Worker) -> Value {
        match command {
            MinionCommand::Events(events) => {
                let published = Box::pin(self.minion_events(id, events)).await;
                self.is_persisted(published, worker).await.into()
            }
            MinionCommand::Returns(loads) => {
                let published = Box::pin(self.returns(id, id, loads)).await.ok();
                self.is_persisted(published, worker).await.into()
            }
            MinionCommand::Pillar {
                mut grains,
                saltenv,
                pillarenv,
                pillar_override,
                ext,
                extra_minion_data,
                clean_cache,
            } => {
                // Pillar files and targets rely on this grain, so it is set to the authenticated id.
                grains.insert("id".into(), id.into());
                let id = id.clone();
                let query = PillarQuery {
                    id,
                    grains,
                    saltenv,
                    pillarenv,
                    pillar_override,
                    ext,
                    extra_minion_data: *extra_minion_data,
                    clean_cache,
                };
                Box::pin(self.services.pillars.pillar(query, self.calls.template_host())).await
            }
            MinionCommand::SyndicReturns { loads, acknowledged } => {
                match Box::pin(self.syndic_returns(id, loads)).await {
                    // All of the returns are permanently refused.
                    Some(0) => Value::Nil,
                    published => {
                        let persisted = self.is_persisted(published, worker).await;
                        if acknowledged { persisted.into() } else { Value::Nil }
                    }
                }
            }
            MinionCommand::MasterTops { opts } => Box::pin(self.services.pillars.master_tops(id, opts)).await,
            // Brine does not support targets for resources of minions.
            MinionCommand::Resources(_) => {
                let body = map! {"Resource cache refresh" => id};
                Box::pin(self.services.events.fire(&format!("resource/refresh/{id}"), &body)).await;
                true.into()
            }
            MinionCommand::PeerPublish(asked) => Box::pin(self.peers.publish(id, *asked)).await,
            MinionCommand::PeerPublishAndWait(asked) => {
                drop(worker);
                Box::pin(self.peers.publish_and_wait(id, *asked)).await
            }
            MinionCommand::PeerReturns(jid) => Box::pin(self.peers.returns(id, jid)).await,
            MinionCommand::PeerRun(asked) => {
                drop(worker);
                Box::pin(self.peers.run(id, asked)).await
            }
            blocking => {
                let (requests, id) = (Arc::clone(self), id.clone());
                let disk = &self.services.executors.disk;
                let result = disk.run(move |thread| requests.blocking_command(&id, blocking, thread)).await;
                result.unwrap_or_else(|error| {
                    tracing::error!(%error, "answering a minion failed");
                    Value::Nil
                })
            }
        }
    }

    /// Answers a command that may block on a disk.
    fn blocking_command(self: &Arc<Self>, id: &MinionId, command: MinionCommand, thread: &MayBlock) -> Value {
        let storage = self.services.storage.get(thread);
        let logged = |result: Result<(), MineError>| {
            if let Err(error) = &result {
                tracing::error!(minion = %id, %error, "changing a mine failed");
            }
            Value::Bool(result.is_ok())
        };
        match command {
            MinionCommand::FileReceive(piece) => pushed_files::receive(&self.services.config, id, &piece).into(),
            MinionCommand::Mine { data, clear } => logged(storage.mines.add(id, data, clear)),
            MinionCommand::MineDelete { fun } => logged(storage.mines.delete(id, &fun)),
            MinionCommand::CatchUp(from) => self.services.jobs.missed(storage, id, &from),
            MinionCommand::MineFlush => logged(storage.mines.flush(id.as_str())),
            MinionCommand::MineGet(query) => match self.services.facts.mine_get(storage, id, &query) {
                Ok(data) => data.into(),
                Err(error) => {
                    tracing::warn!(minion = %id, %error, "reading the mine failed");
                    Value::map()
                }
            },
            MinionCommand::RevokeAuth { preserve_data } => self.revoke(id, preserve_data, thread).into(),
            MinionCommand::MasterOpts { env_only } => {
                file_requests::master_opts(&self.services.config, &storage.files, env_only)
            }
            file => file_requests::answer(&storage.files, id, file),
        }
    }

    /// Revokes a minion's key at its own request, if `allow_minion_key_revoke` permits it. Returns whether it was
    /// revoked.
    fn revoke(&self, id: &MinionId, preserve_data: bool, thread: &MayBlock) -> bool {
        if !self.services.config.allow_minion_key_revoke {
            peers::refused(id, "the option 'allow_minion_key_revoke' does not allow it");
            return false;
        }
        let (jid, thread) = (Jid::new(), thread.clone());
        let caller = Caller::new(jid, id.to_string(), Map::new(), thread);
        let key = brine_master_store::keys::Key { id: id.clone(), state: brine_master_store::keys::KeyState::Accepted };
        if preserve_data {
            self.services.facts.preserve(id);
        }
        let results = brine_master_calls::key_changes::apply(
            &self.calls.wheel_context(caller),
            brine_master_store::keys::Act::Delete,
            &[key],
        );
        let revoked = results.iter().all(|(_, result)| result.is_ok());
        if revoked {
            // Ended immediately: the event of the key may be handled only after the minion's next request.
            self.services.admission.sessions().end(id);
        } else {
            self.services.facts.take_preserved(id);
        }
        revoked
    }

    /// Counts an answered request, if `master_stats` is set.
    async fn count(&self, command: &str, start: Instant) {
        let config = &self.services.config;
        if !config.master_stats {
            return;
        }
        let every = Duration::from_secs(config.master_stats_event_iter);
        if let Some((tag, body)) = self.stats.take(command, start.elapsed(), every) {
            self.services.events.fire(&tag, &body).await;
        }
    }
}
