//! Requests on port 4506: opened, typed, allowed or refused, answered.

use std::sync::Arc;
use std::time::Instant;

use brine_core::store::StoreError;
use brine_core::transport::{Handler, Peer, Worker};
use brine_core::value::msgpack;
use brine_core::wire::{Call, ClientCommand, Envelope, ListKind, MinionCommand, PublishRequest, WireError};
use brine_core::{Map, MinionId, Value, crypt::token, list, map, metrics};
use bytes::Bytes;

use crate::Shared;
use crate::auth::clear;
use crate::job_cache::NOT_KEPT;
use crate::pillar::Asked;
use crate::sessions::SessionError;
use crate::state_errors;

/// What is said to who sends what is not understood or not allowed, in Salt's words and no others:
/// strangers learn nothing from it.
const BAD_LOAD: &str = "bad load";

/// Answers requests.
pub(crate) struct Requests(pub Arc<Shared>);

impl Handler for Requests {
    async fn handle(&self, peer: Peer, request: Bytes, worker: Worker) -> Option<Bytes> {
        let envelope = match Envelope::unpack(&request) {
            Ok(envelope) => envelope,
            Err(error) => return Some(refuse(&peer, None, &error)),
        };
        // Thousands of requests may wait for the disk at a time: what they do not need any more goes, and what only some
        // need is in boxes.
        drop(request);
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
                let mut opened = match self.0.sessions.open(&id, &load) {
                    Ok(opened) => opened,
                    Err(error) => return Some(refuse(&peer, Some(&id), &error)),
                };
                drop(load);
                let ttl = self.0.config.request_server_ttl;
                if ttl > 0 && !opened.is_within(ttl) {
                    return Some(refuse(&peer, Some(&id), &SessionError::TooOld));
                }
                self.0.presence.heard(&id, &peer);
                asked = named(&opened.load);
                let command = MinionCommand::from_map(&std::mem::take(&mut opened.load));
                match command {
                    Ok(command @ MinionCommand::Pillar { .. }) => {
                        let value = self.0.minion_command(&id, command, worker).await;
                        let shared = Arc::clone(&self.0);
                        // RSA takes milliseconds: not on the threads that serve sockets.
                        let sealed = tokio::task::spawn_blocking(move || {
                            opened.reply_private(&value, &shared.identity.private_key, encryption, signature)
                        });
                        match sealed.await {
                            Ok(Ok(reply)) => reply,
                            Ok(Err(error)) => return Some(refuse(&peer, Some(&id), &error)),
                            Err(error) => return Some(refuse(&peer, Some(&id), &error)),
                        }
                    }
                    Ok(command) => {
                        let value = self.0.minion_command(&id, command, worker).await;
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
}

fn refuse(peer: &Peer, id: Option<&MinionId>, error: &dyn std::error::Error) -> Bytes {
    tell_refused(peer, id, error);
    msgpack::pack(&BAD_LOAD.into()).into()
}

fn tell_refused(peer: &Peer, id: Option<&MinionId>, error: &dyn std::error::Error) {
    metrics::REQUESTS_REFUSED.add(1);
    let minion = id.map(MinionId::as_str);
    tracing::warn!(peer = %peer.address, minion, %error, "a request is refused");
}

impl Shared {
    async fn client_command(self: &Arc<Self>, peer: &Peer, command: ClientCommand, worker: Worker) -> Vec<u8> {
        match command {
            ClientCommand::Ping => clear(map! {"cmd" => "ping", "id" => &self.id}.into()),
            ClientCommand::Auth(request, binding) => self.authenticate(*request, binding).await,
            ClientCommand::Publish(request) => {
                if !self.is_root_key(request.key.as_deref()) {
                    self.tell_refused(&request).await;
                    return self.unauthorised(peer, "publish", &request.user);
                }
                match self.publish(*request).await {
                    Ok(published) => clear(published.to_value()),
                    Err(error) => clear(map! {"error" => map! {"message" => error.to_string()}}.into()),
                }
            }
            ClientCommand::Runner(call) => self.client_call(peer, "runner", call, worker).await,
            ClientCommand::Wheel(call) => self.client_call(peer, "wheel", call, worker).await,
        }
    }

    async fn client_call(self: &Arc<Self>, peer: &Peer, kind: &'static str, call: Call, worker: Worker) -> Vec<u8> {
        if !self.is_root_key(call.key.as_deref()) {
            return self.unauthorised(peer, kind, &call.user);
        }
        let Call { fun, args, user, asynchronous, .. } = call;
        let kind = if kind == "wheel" { crate::calls::Kind::Wheel } else { crate::calls::Kind::Runner };
        let started = self.start_call(kind, &fun, args, &user, &Map::new()).await;
        if asynchronous {
            return clear(map! {"jid" => &started.jid, "tag" => started.tag.as_str()}.into());
        }
        // It may ask minions, whose returns have to be handled.
        drop(worker);
        clear(started.finish().await.into())
    }

    fn is_root_key(&self, shown: Option<&str>) -> bool {
        shown.is_some_and(|shown| token::constant_time_eq(shown, &self.root_key))
    }

    /// Tells of a job that its publisher may not publish, if it brings a job id: `salt/job/<jid>/error`.
    async fn tell_refused(&self, request: &PublishRequest) {
        let Some(jid) = &request.jid else { return };
        let body = map! {
            "cmd" => "publish",
            "jid" => jid,
            "fun" => request.fun.clone(),
            "arg" => request.arg.clone(),
            "tgt" => request.tgt.clone(),
            "tgt_type" => &request.tgt_type,
            "ret" => &request.ret,
            "user" => &request.user,
            "error" => map! {"name" => "AuthenticationError", "message" => "Authentication error occurred."},
        };
        self.fire(&format!("salt/job/{jid}/error"), &body).await;
    }

    fn unauthorised(&self, peer: &Peer, command: &str, user: &str) -> Vec<u8> {
        metrics::REQUESTS_REFUSED.add(1);
        tracing::warn!(peer = %peer.address, command, user, "a request without the master's key is refused");
        let message = "Authentication failure of type \"user\" occurred.";
        clear(map! {"error" => map! {"name" => "AuthorizationError", "message" => message}}.into())
    }

    async fn minion_command(self: &Arc<Self>, id: &MinionId, command: MinionCommand, worker: Worker) -> Value {
        match command {
            MinionCommand::Events(events) => {
                let fired = Box::pin(self.minion_events(id, events)).await;
                self.is_kept(fired, worker).await.into()
            }
            MinionCommand::Returns(loads) => {
                let fired = Box::pin(self.returns(id, loads)).await;
                self.is_kept(fired, worker).await.into()
            }
            MinionCommand::Pillar { grains, saltenv, pillarenv, pillar_override: over, clean_cache: anew } => {
                Box::pin(self.pillar(Asked { id: id.clone(), grains, saltenv, pillarenv, over, anew })).await
            }
            MinionCommand::SyndicReturns(loads) => {
                let fired = Box::pin(self.syndic_returns(id, loads)).await;
                self.is_kept(fired, worker).await;
                Value::Nil
            }
            MinionCommand::MasterOpts { env_only } => self.master_opts(env_only),
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
                let done = tokio::task::spawn_blocking(move || shared.blocking_command(&id, blocking)).await;
                done.unwrap_or_default()
            }
        }
    }

    /// Whether the journal has what was fired, once it has: minions take that for an answer.
    async fn is_kept(&self, fired: Option<u64>, worker: Worker) -> bool {
        let Some(last) = fired else { return false };
        // Others can be handled meanwhile, and go into the journal together.
        drop(worker);
        self.bus.kept(last).await.is_ok()
    }

    /// Fires a minion's events: the number of the last one, or nothing if one is refused.
    async fn minion_events(&self, id: &MinionId, events: Vec<(String, Map)>) -> Option<u64> {
        let mut last = 0;
        for (tag, mut body) in events {
            if !may_fire(id, &tag) {
                metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(minion = %id, %tag, "a minion fires an event that only the master or another minion may");
                return None;
            }
            if body.contains_key("cmd") {
                body.insert("id".into(), id.into());
                body.entry("ts".into()).or_insert_with(now);
            }
            let jid = body.get_mut("data").and_then(Value::as_map_mut).and_then(|data| data.shift_remove("_jid"));
            if let Some(Ok(jid)) = jid.map(|jid| jid.to_string().parse()) {
                self.causes.mark(&jid, &mut body);
                body.insert("_jid".into(), (&jid).into());
            }
            match self.bus.fire(&tag, &body).await {
                Ok(seq) => last = seq,
                Err(error) => {
                    tracing::warn!(minion = %id, %tag, %error, "a minion's event is refused");
                    return None;
                }
            }
        }
        Some(last)
    }

    /// Fires a minion's job returns: the number of the last one's event, or nothing if one is refused.
    async fn returns(&self, id: &MinionId, loads: Vec<Map>) -> Option<u64> {
        let mut last = 0;
        for mut load in loads {
            let jid = match load.get("jid").and_then(Value::as_str) {
                // A call on the minion itself that asks for a job id.
                Some(word @ ("req" | "nocache")) => {
                    if word == "nocache" {
                        load.insert(NOT_KEPT.into(), true.into());
                    }
                    let arg = load.get("fun_args").cloned().unwrap_or_else(|| list![]);
                    load.entry("arg".into()).or_insert(arg);
                    load.insert("tgt".into(), id.into());
                    load.insert("tgt_type".into(), "glob".into());
                    brine_core::Jid::new()
                }
                Some(text) => match text.parse() {
                    Ok(jid) => jid,
                    Err(error) => {
                        metrics::REQUESTS_REFUSED.add(1);
                        tracing::warn!(minion = %id, %error, "a return is refused");
                        return None;
                    }
                },
                None => {
                    metrics::REQUESTS_REFUSED.add(1);
                    tracing::warn!(minion = %id, "a return without a job id is refused");
                    return None;
                }
            };
            load.retain(|key, _| !matches!(key.as_str(), Some("tok" | "nonce" | "serial" | "load")));
            load.insert("jid".into(), (&jid).into());
            load.insert("id".into(), id.into());
            load.entry("cmd".into()).or_insert_with(|| "_return".into());
            load.entry("ts".into()).or_insert_with(now);
            metrics::RETURNS.add(1);
            self.causes.mark(&jid, &mut load);
            match self.fire_job(&format!("salt/job/{jid}/ret/{id}"), &load).await {
                Ok(seq) => last = seq,
                Err(error) => {
                    tracing::warn!(minion = %id, %jid, %error, "a return is refused");
                    return None;
                }
            }
            for (tag, body) in state_errors::of_return(&load) {
                self.fire(&tag, &body).await;
            }
        }
        Some(last)
    }

    /// Fires returns of minions of a master below this one, as their minions would have brought them. Whether a
    /// minion is such a master nobody can see: `order_masters` says whether there are any.
    async fn syndic_returns(&self, id: &MinionId, loads: Vec<Map>) -> Option<u64> {
        let mut last = None;
        if !self.config.order_masters {
            metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!(minion = %id, "returns of other minions are refused: 'order_masters' is off");
            return None;
        }
        for load in loads {
            let of = load.get("id").map(|id| id.to_string().parse::<MinionId>());
            if let Some(Ok(of)) = of {
                last = self.returns(&of, vec![load]).await.or(last);
            } else {
                metrics::REQUESTS_REFUSED.add(1);
                tracing::warn!(minion = %id, "a return of a minion with an impossible name is refused");
            }
        }
        last
    }

    fn master_opts(&self, env_only: bool) -> Value {
        let config = &self.config;
        // Environments without their folders, which are nobody else's business.
        let roots: Map = self.files.envs().into_iter().map(|env| (env.into(), Value::List(Vec::new()))).collect();
        let mut opts = map! {
            "file_roots" => roots,
            "top_file_merging_strategy" => &config.top_file_merging_strategy,
            "env_order" => config.env_order.clone(),
            "default_top" => &config.default_top,
        };
        if !env_only {
            opts.extend(map! {
                "renderer" => &config.renderer,
                "failhard" => config.failhard,
                "state_top" => &config.state_top,
                "state_top_saltenv" => config.state_top_saltenv.clone(),
                "nodegroups" => config.nodegroups.clone(),
                "state_auto_order" => config.state_auto_order,
                "state_events" => config.state_events,
                "state_aggregate" => config.state_aggregate.clone(),
                "jinja_env" => config.jinja_env.clone(),
                "jinja_sls_env" => config.jinja_sls_env.clone(),
                "jinja_lstrip_blocks" => config.jinja_lstrip_blocks,
                "jinja_trim_blocks" => config.jinja_trim_blocks,
            });
        }
        opts.into()
    }

    /// Answers what may wait for a disk.
    fn blocking_command(self: &Arc<Self>, id: &MinionId, command: MinionCommand) -> Value {
        let told = |result: Result<(), StoreError>| {
            if let Err(error) = &result {
                tracing::error!(minion = %id, %error, "a mine could not be changed");
            }
            Value::Bool(result.is_ok())
        };
        match command {
            MinionCommand::FileReceive(piece) => self.receive(id, &piece).into(),
            MinionCommand::Mine { data, clear } => told(self.mines.add(id, data, clear)),
            MinionCommand::MineDelete { fun } => told(self.mines.delete(id, &fun)),
            MinionCommand::MineFlush => told(self.mines.flush(id.as_str())),
            MinionCommand::MineGet(query) => match self.mine_get(id, &query) {
                Ok(found) => found.into(),
                Err(error) => {
                    tracing::warn!(minion = %id, %error, "the mine cannot be asked");
                    Value::map()
                }
            },
            MinionCommand::RevokeAuth => self.revoke(id, tokio::runtime::Handle::current()).into(),
            file => self.file_command(id, file),
        }
    }

    /// Tells of a request for what is out of the file roots. It is answered like one for what is not there.
    fn tell_leading_out(&self, id: &MinionId, command: &MinionCommand) {
        let (path, saltenv) = match command {
            MinionCommand::ServeFile { path, saltenv, .. }
            | MinionCommand::FileHash { path, saltenv, .. }
            | MinionCommand::FileFind { path, saltenv } => (path.as_str(), saltenv),
            MinionCommand::FileList { prefix, saltenv, .. } => (prefix.trim_matches('/'), saltenv),
            _ => return,
        };
        if self.files.leads_out(path, saltenv) {
            metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!(minion = %id, ?path, ?saltenv, "a minion asks for what is out of the file roots");
        }
    }

    fn file_command(&self, id: &MinionId, command: MinionCommand) -> Value {
        let failed = |error: &dyn std::error::Error| {
            tracing::warn!(minion = %id, %error, "a file cannot be served");
            Value::map()
        };
        self.tell_leading_out(id, &command);
        match command {
            MinionCommand::ServeFile { path, saltenv, loc } => {
                let empty = |dest: &str| map! {"data" => Vec::<u8>::new(), "dest" => dest};
                match self.files.read_chunk(&path, &saltenv, loc, brine_core::fileserver::BUFFER_SIZE) {
                    Ok(Some(chunk)) => map! {"data" => chunk.data, "dest" => chunk.relative}.into(),
                    Ok(None) => empty("").into(),
                    Err(error) => failed(&error),
                }
            }
            MinionCommand::FileHash { path, saltenv, stat } => match self.files.hash(&path, &saltenv) {
                Ok(Some(hash)) => {
                    let hash = Value::from(map! {"hsum" => hash, "hash_type" => "sha256"});
                    if stat {
                        let found = self.files.find(&path, &saltenv);
                        list![hash, found.map(|found| found.stat().into_iter().collect::<Value>())]
                    } else {
                        hash
                    }
                }
                Ok(None) if stat => list!["", Value::Nil],
                Ok(None) => "".into(),
                Err(error) => failed(&error),
            },
            MinionCommand::FileFind { path, saltenv } => match self.files.find(&path, &saltenv) {
                Some(found) => {
                    let stat: Value = found.stat().into_iter().collect();
                    map! {"path" => found.path, "rel" => found.relative, "stat" => stat, "back" => "roots"}.into()
                }
                None => map! {"rel" => "", "path" => ""}.into(),
            },
            MinionCommand::FileList { kind, saltenv, prefix } => match kind {
                ListKind::Files => self.files.file_list(&saltenv, &prefix).into(),
                ListKind::Folders => self.files.dir_list(&saltenv, &prefix).into(),
                ListKind::EmptyFolders => self.files.empty_dirs(&saltenv, &prefix).into(),
                ListKind::Links => {
                    let links = self.files.symlink_list(&saltenv, &prefix);
                    Value::Map(links.into_iter().map(|(link, target)| (link.into(), target.into())).collect())
                }
            },
            MinionCommand::FileEnvs => self.files.envs().into(),
            // The others do not read files and have been answered.
            _ => Value::Nil,
        }
    }
}

/// When a message came whose minion does not say when it sent it, in seconds since 1970.
fn now() -> Value {
    jiff::Timestamp::now().as_second().into()
}

/// Whether a minion may fire an event of this tag: what the master says of itself and what another minion
/// says of itself, it may not say in their place.
fn may_fire(id: &MinionId, tag: &str) -> bool {
    const MASTERS: &[&str] = &[
        "salt/auth",
        "salt/key",
        "salt/run/",
        "salt/wheel/",
        "salt/presence/",
        "salt/reactor/",
        "salt/reactors/",
        "salt/batch/",
        "salt/fileserver/",
        "minion/refresh/",
        crate::schedule::RETURN,
    ];
    if tag == "key" || MASTERS.iter().any(|prefix| tag.starts_with(prefix)) {
        return false;
    }
    let mut parts = tag.split('/');
    match (parts.next(), parts.next()) {
        (Some("salt"), Some("minion" | "beacon")) => parts.next() == Some(id.as_str()) && parts.next().is_some(),
        (Some("salt"), Some("state_result")) => parts.nth(1) == Some(id.as_str()),
        // That it begins a job and how far it is, is the minion's own to tell.
        (Some("salt"), Some("job")) => {
            matches!(parts.nth(1), Some("prog" | "start")) && parts.next() == Some(id.as_str())
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minion_speaks_only_for_itself() {
        let id: MinionId = "web1".parse().unwrap();
        for (tag, may) in [
            ("my/event", true),
            ("minion_start", true),
            ("salt/minion/web1/start", true),
            ("salt/minion/web10/start", false),
            ("salt/minion/db1/start", false),
            ("salt/beacon/web1/load", true),
            ("salt/beacon/db1/load", false),
            ("salt/state_result/20261120235852025555/web1/mine", true),
            ("salt/state_result/20261120235852025555/db1/not/mine", false),
            ("salt/job/20261120235852025555/start/web1", true),
            ("salt/job/20261120235852025555/start/db1", false),
            ("salt/batch/20261120235852025555/new", false),
            ("salt/fileserver/roots/update", false),
            ("salt/reactors/manage/add", false),
            ("key", false),
            ("__schedule_return", false),
            ("salt/job/20261120235852025555/prog/web1/0", true),
            ("salt/job/20261120235852025555/prog/db1/0", false),
            ("salt/job/20261120235852025555/ret/web1", false),
            ("salt/job/20261120235852025555/new", false),
            ("salt/auth", false),
            ("salt/key", false),
            ("salt/run/1/ret", false),
        ] {
            assert_eq!(may_fire(&id, tag), may, "{tag}");
        }
    }
}
