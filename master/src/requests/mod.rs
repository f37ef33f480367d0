//! Requests on port 4506: opened, typed, allowed or refused, answered. `events.rs` takes what minions bring, `files.rs`
//! answers what they ask of the file server, `signatures.rs` verifies the signatures of returns.

mod events;
mod files;
mod signatures;
mod tags;

use std::sync::Arc;
use std::time::Instant;

use brine_auth::Token;
use brine_ids::MinionId;
use brine_runtime::executors::{Executor, MayBlock};
use brine_value::msgpack::{self, Budget};
use brine_value::{Map, Value, map};
use brine_wire::{Call, ClientCommand, Envelope, MinionCommand, PublishRequest, WireError};
use brine_zmtp::{Handler, Peer, Worker};
use bytes::Bytes;
use jiff::Timestamp;

use crate::Shared;
use crate::access::{Caller, Refusal};
use crate::auth::clear;
use crate::calls::Kind;
use crate::mine::MineError;
use crate::pillar::Asked;
use crate::sessions::SessionError;

/// What is said to who sends what is not understood or not allowed, in Salt's words and no others:
/// strangers learn nothing from it.
const BAD_LOAD: &str = "bad load";

/// The most bytes of a refused publish that its event repeats.
const MAX_REFUSED: usize = 4096;

/// Answers requests.
pub(crate) struct Requests(pub Arc<Shared>);

impl Handler for Requests {
    async fn handle(&self, peer: Peer, request: Bytes, worker: Worker) -> Option<Bytes> {
        let budget = if peer.is_authenticated() { Budget::AUTHENTICATED } else { Budget::UNAUTHENTICATED };
        // Thousands of requests may wait for the disk at a time: what they do not need any more goes, and what only some
        // need is in boxes.
        let envelope =
            match decode(&self.0.executors.crypto, request.len(), move || Envelope::unpack(&request, budget)).await {
                Some(Ok(envelope)) => envelope,
                Some(Err(error)) => return Some(refuse(&peer, None, &error)),
                None => return self.refuse(&peer),
            };
        let start = Instant::now();
        let named =
            |load: &Map| if self.0.config.master_stats { load.get("cmd").map(ToString::to_string) } else { None };
        let asked;
        let reply = match envelope {
            Envelope::Clear { load, version } => {
                asked = named(&load);
                match ClientCommand::from_map(&load) {
                    Ok(ClientCommand::Auth(auth, _)) if version < self.0.config.minimum_auth_version => {
                        return Some(refuse(&peer, Some(&auth.id), &WireError::OldVersion(version)));
                    }
                    Ok(command) => Box::pin(self.0.client_command(&peer, command, worker)).await,
                    Err(error) => return Some(refuse(&peer, None, &error)),
                }
            }
            Envelope::Sealed { id, version, .. } if version < self.0.config.minimum_auth_version => {
                return Some(refuse(&peer, Some(&id), &WireError::OldVersion(version)));
            }
            Envelope::Sealed { id, load, encryption, signature, .. } => {
                let (shared, minion) = (Arc::clone(&self.0), id.clone());
                let mut opened =
                    match decode(&self.0.executors.crypto, load.len(), move || shared.sessions.open(&minion, &load))
                        .await
                    {
                        Some(Ok(opened)) => opened,
                        Some(Err(error)) => return Some(refuse(&peer, Some(&id), &error)),
                        None => return self.refuse(&peer),
                    };
                peer.authenticate();
                let ttl = self.0.config.request_server_ttl;
                if ttl > 0 && !opened.is_within(ttl) {
                    return Some(refuse(&peer, Some(&id), &SessionError::TooOld));
                }
                self.0.presence.heard(&id, &peer);
                asked = named(&opened.load);
                let load = std::mem::take(&mut opened.load);
                let command = MinionCommand::from_map(&load);
                let signed = signatures::of(&command, &load, &opened);
                drop(load);
                match command {
                    Ok(command @ MinionCommand::Pillar { .. }) => {
                        let value = self.0.minion_command(&id, command, worker).await;
                        let shared = Arc::clone(&self.0);
                        // RSA takes milliseconds: not on the threads that serve sockets.
                        let sealed = self.0.executors.crypto.run(move |_| {
                            opened.reply_private(&value, &shared.identity.private_key, encryption, signature)
                        });
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
                        // The session is good: the minion need not begin another, and gets Salt's empty answer.
                        tell_refused(&peer, Some(&id), &error);
                        opened.reply(&Value::map())
                    }
                }
            }
        };
        if let Some(command) = asked {
            self.0.count_request(&command, start).await;
        }
        Some(reply.into())
    }

    /// The reply that makes minions authenticate and send their request again.
    fn refuse(&self, peer: &Peer) -> Option<Bytes> {
        brine_wire::metrics::REQUESTS_REFUSED.add(1);
        tracing::debug!(peer = %peer.address, "a request is refused without having been kept");
        Some(msgpack::pack(&BAD_LOAD.into()).into())
    }
}

/// From this size on, messages are decoded on a thread that may take its time.
const LARGE: usize = 1 << 20;

/// Decodes a message of this size; nothing if that panicked.
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

/// Returns what clients are told of a token, in Salt's fields: times are seconds since the epoch.
fn token_of(token: &Token, secret: Option<&str>) -> Map {
    let seconds = |time: Timestamp| time.as_millisecond() as f64 / 1000.0;
    let mut map = map! {
        "start" => seconds(token.start),
        "expire" => seconds(token.expire),
        "name" => &token.identity.username,
        "eauth" => &token.identity.eauth,
    };
    if let Some(entries) = &token.identity.entries {
        map.insert("auth_list".into(), entries.clone().into());
    }
    if !token.identity.groups.is_empty() {
        map.insert("groups".into(), token.identity.groups.clone().into());
    }
    map.extend(secret.map(|secret| ("token".into(), secret.into())));
    map
}

fn refuse(peer: &Peer, id: Option<&MinionId>, error: &dyn std::error::Error) -> Bytes {
    tell_refused(peer, id, error);
    msgpack::pack(&BAD_LOAD.into()).into()
}

fn tell_refused(peer: &Peer, id: Option<&MinionId>, error: &dyn std::error::Error) {
    brine_wire::metrics::REQUESTS_REFUSED.add(1);
    let minion = id.map(MinionId::as_str);
    tracing::warn!(peer = %peer.address, minion, %error, "a request is refused");
}

impl Shared {
    async fn client_command(self: &Arc<Self>, peer: &Peer, command: ClientCommand, worker: Worker) -> Vec<u8> {
        match command {
            ClientCommand::Ping => clear(map! {"cmd" => "ping", "id" => &self.id}.into()),
            ClientCommand::Auth(request, binding) => {
                drop(worker);
                self.authenticate(peer, *request, binding).await
            }
            ClientCommand::Publish(request) => {
                let mut request = *request;
                if let Err(refusal) = self.admit_publish(peer, &mut request).await {
                    self.tell_refused(&request, &refusal).await;
                    return clear(refusal.of_publish());
                }
                match self.publish(request).await {
                    Ok(published) => clear(published.to_value()),
                    Err(error) => clear(map! {"error" => map! {"message" => error.to_string()}}.into()),
                }
            }
            ClientCommand::Runner(call) => self.client_call(peer, Kind::Runner, call, worker).await,
            ClientCommand::Wheel(call) => self.client_call(peer, Kind::Wheel, call, worker).await,
            ClientCommand::MakeToken(request) => {
                drop(worker);
                let made = Box::pin(self.make_token(peer, *request)).await;
                clear(made.map_or_else(|| "".into(), |made| token_of(&made.token, Some(&made.secret)).into()))
            }
            ClientCommand::GetToken(secret) => {
                let found = self.token(&secret).await;
                clear(found.map_or_else(Value::map, |token| token_of(&token, Some(&secret)).into()))
            }
        }
    }

    /// Identifies who publishes, and returns why that user may not. What only the master's own tools may say is removed
    /// from the requests of others.
    async fn admit_publish(self: &Arc<Self>, peer: &Peer, request: &mut PublishRequest) -> Result<(), Refusal> {
        let proof = request.proof.as_ref();
        let caller = Box::pin(self.identify(peer, "publish", request.key.as_deref(), &request.user, proof)).await?;
        if let Caller::User { name, .. } = &caller {
            request.user.clone_from(name);
            request.kwargs.retain(|option, _| !option.as_str().is_some_and(|option| option.starts_with('_')));
        }
        Box::pin(self.authorise_job(peer, &caller, request)).await
    }

    async fn client_call(self: &Arc<Self>, peer: &Peer, kind: Kind, call: Call, worker: Worker) -> Vec<u8> {
        let Call { fun, args, key, proof, user, asynchronous } = call;
        let admitted = async {
            let caller = self.identify(peer, &fun, key.as_deref(), &user, proof.as_ref()).await?;
            self.authorise_call(peer, &caller, kind, &fun, &args, proof.as_ref()).await?;
            Ok::<_, Refusal>(caller)
        };
        let caller = match Box::pin(admitted).await {
            Ok(caller) => caller,
            Err(refusal) => return clear(refusal.of_call()),
        };
        let started = self.start_call(kind, &fun, args, caller.name(), &Map::new()).await;
        if asynchronous {
            return clear(map! {"jid" => &started.jid, "tag" => started.tag.as_str()}.into());
        }
        // It may ask minions, whose returns have to be handled.
        drop(worker);
        clear(started.finish().await.into())
    }

    /// Publishes `salt/job/<jid>/error` for a job that its publisher may not publish, if it brings a job id. Anybody can
    /// cause it, so its size is bounded.
    async fn tell_refused(&self, request: &PublishRequest, refusal: &Refusal) {
        let Some(jid) = &request.jid else { return };
        let values = [&request.fun, &request.tgt, &Value::List(request.arg.clone())];
        let size: usize = values.iter().map(|value| msgpack::pack(value).len()).sum();
        if size + request.user.len() + request.ret.len() + request.tgt_type.len() > MAX_REFUSED {
            brine_bus::metrics::EVENTS_REFUSED.add(1);
            tracing::warn!(%jid, size, "event of a refused publish left out: it exceeds {MAX_REFUSED} bytes");
            return;
        }
        let body = map! {
            "cmd" => "publish",
            "jid" => jid,
            "fun" => request.fun.clone(),
            "arg" => request.arg.clone(),
            "tgt" => request.tgt.clone(),
            "tgt_type" => &request.tgt_type,
            "ret" => &request.ret,
            "user" => &request.user,
            "error" => refusal.of_publish().get("error").cloned(),
        };
        self.fire(&format!("salt/job/{jid}/error"), &body).await;
    }

    async fn minion_command(self: &Arc<Self>, id: &MinionId, command: MinionCommand, worker: Worker) -> Value {
        match command {
            MinionCommand::Events(events) => {
                let fired = Box::pin(self.minion_events(id, events)).await;
                self.is_kept(fired, worker).await.into()
            }
            MinionCommand::Returns(loads) => {
                let fired = Box::pin(self.returns(id, id, loads)).await;
                self.is_kept(fired, worker).await.into()
            }
            MinionCommand::Pillar { mut grains, saltenv, pillarenv, pillar_override: over, clean_cache: anew } => {
                // Pillar files and targets decide by this grain: it is the session's id, whatever the minion claims.
                grains.insert("id".into(), id.into());
                Box::pin(self.pillar(Asked { id: id.clone(), grains, saltenv, pillarenv, over, anew })).await
            }
            MinionCommand::SyndicReturns(loads) => {
                let fired = Box::pin(self.syndic_returns(id, loads)).await;
                self.is_kept(fired, worker).await;
                Value::Nil
            }
            MinionCommand::MasterTops => Value::map(),
            // Brine has no targets that mean a minion's resources.
            MinionCommand::Resources(_) => {
                let body = map! {"Resource cache refresh" => id};
                Box::pin(self.fire(&format!("resource/refresh/{id}"), &body)).await;
                true.into()
            }
            MinionCommand::PeerPublish(asked) => Box::pin(self.peer_publish(id, *asked)).await,
            MinionCommand::PeerPublishAndWait(asked) => {
                drop(worker);
                Box::pin(self.peer_publish_and_wait(id, *asked)).await
            }
            MinionCommand::PeerReturns(jid) => Box::pin(self.peer_returns(id, jid)).await,
            MinionCommand::PeerRun(asked) => {
                drop(worker);
                Box::pin(self.peer_run(id, asked)).await
            }
            blocking => {
                let shared = Arc::clone(self);
                let id = id.clone();
                // Files are read, and the store, on threads that may wait for a disk.
                let done = self.executors.disk.run(move |thread| shared.blocking_command(&id, blocking, thread)).await;
                done.unwrap_or_else(|error| {
                    tracing::error!(%error, "a request of a minion failed");
                    Value::Nil
                })
            }
        }
    }

    /// Answers what may wait for a disk.
    fn blocking_command(self: &Arc<Self>, id: &MinionId, command: MinionCommand, thread: &MayBlock) -> Value {
        let disk = self.disk.get(thread);
        let told = |result: Result<(), MineError>| {
            if let Err(error) = &result {
                tracing::error!(minion = %id, %error, "changing a mine failed");
            }
            Value::Bool(result.is_ok())
        };
        match command {
            MinionCommand::FileReceive(piece) => self.receive(id, &piece).into(),
            MinionCommand::Mine { data, clear } => told(disk.mines.add(id, data, clear)),
            MinionCommand::MineDelete { fun } => told(disk.mines.delete(id, &fun)),
            MinionCommand::CatchUp(last) => self.catch_up(disk, id, last.as_ref()),
            MinionCommand::MineFlush => told(disk.mines.flush(id.as_str())),
            MinionCommand::MineGet(query) => match self.mine_get(disk, id, &query) {
                Ok(found) => found.into(),
                Err(error) => {
                    tracing::warn!(minion = %id, %error, "the mine cannot be asked");
                    Value::map()
                }
            },
            MinionCommand::RevokeAuth => self.revoke(id, thread).into(),
            MinionCommand::MasterOpts { env_only } => self.master_opts(disk, env_only),
            file => self.file_command(disk, id, file),
        }
    }
}
