//! Publishing a job: who is meant, under which job id, and out to the minions.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use brine_bus::{Filter, Start};
use brine_crypt::{Cipher, CryptError, SignatureAlgorithm};
use brine_ids::Jid;
use brine_job::{Due, Times, Watch};
use brine_system::files::FileError;
use brine_target::{Target, TargetError, TargetKind};
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{PublishRequest, TOPIC_BROADCAST, TOPIC_GCM, TOPIC_SYNDIC, minion_topic, purpose};
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::Shared;
use crate::disk::Disk;
use crate::metrics;

/// Options of a request that minions see too.
const HANDED_ON: &[&str] = &[
    "delimiter",
    "metadata",
    "ret_config",
    "ret_kwargs",
    "module_executors",
    "executor_opts",
    "start_event",
    "to",
    "id",
];

/// What Salt's event about a new job tells of the load.
const TOLD: &[&str] = &["jid", "tgt_type", "tgt", "user", "fun", "arg"];
/// The field of that event that holds the rest of it, if there is more.
pub(crate) const MORE: &str = "_load";
/// The field of that event for a job whose id was given, such as that of a batch: it adds its minions to those of the job.
pub(crate) const PART: &str = "_part";

/// A job that has gone out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its id; nothing if it is for nobody and was not sent.
    pub jid: Option<Jid>,
    /// The minions that are expected to return.
    pub minions: Vec<String>,
    /// Minions that were named and are not known.
    pub missing: Vec<String>,
}

impl Published {
    /// The answer to a client, as Salt gives it.
    pub fn to_value(&self) -> Value {
        map! {
            "jid" => self.jid.as_ref().map(Jid::to_string),
            "minions" => self.minions.clone(),
            "missing" => self.missing.clone(),
        }
        .into()
    }
}

/// Whether a target speaks of node groups, which are in the master's configuration.
fn names_groups(request: &PublishRequest) -> bool {
    match request.tgt_type.as_str() {
        "nodegroup" => true,
        "compound" => request.tgt.to_string().contains("N@"),
        _ => false,
    }
}

/// What came of a job whose returns were waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// Who returned, in order of arrival, with the whole return.
    pub returned: Vec<(String, Map)>,
    /// Who did not, sorted.
    pub missing: Vec<String>,
}

/// Why a job has not gone out.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The target cannot be understood.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A function's name is not text.
    #[error("a function's name is text such as test.ping, or a list of such texts")]
    BadFunction,
    /// The bus or the store does not work.
    #[error("{0}")]
    Failed(String),
}

impl Shared {
    /// Publishes a job once more that was published before a restart and that nobody has returned for: it may
    /// not have gone out. Minions that have had it know its id.
    pub(crate) async fn publish_again(
        self: &Arc<Self>,
        request: PublishRequest,
        jid: Jid,
    ) -> Result<Published, PublishError> {
        let (minions, missing) = self.targets(&request).await?;
        let published = Published { jid: Some(jid.clone()), minions, missing };
        self.send_to(&request, &published, self.load(&request, &jid)).await?;
        tracing::info!(%jid, fun = %request.fun, "a job of before the restart is published again");
        Ok(published)
    }

    /// Publishes a job.
    pub async fn publish(self: &Arc<Self>, request: PublishRequest) -> Result<Published, PublishError> {
        match &request.fun {
            Value::Str(_) => {}
            Value::List(all) if !all.is_empty() && all.iter().all(|fun| fun.as_str().is_some()) => {}
            _ => return Err(PublishError::BadFunction),
        }
        let (minions, missing) = self.targets(&request).await?;
        // As in Salt, a job for ids none of which is known is no job.
        if minions.is_empty() {
            return Ok(Published { jid: None, minions, missing });
        }
        let jid = request.jid.clone().unwrap_or_default();
        let published = Published { jid: Some(jid.clone()), minions, missing };
        let load = self.load(&request, &jid);
        let mut new = self.announcement(&load);
        new.insert("minions".into(), published.minions.clone().into());
        new.insert("missing".into(), published.missing.clone().into());
        if request.jid.is_some() {
            new.insert(PART.into(), true.into());
        }
        let caused = request.kwargs.iter().filter(|(name, _)| name.as_str().is_some_and(|name| name.starts_with('_')));
        let caused: Map = caused.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !caused.is_empty() {
            self.causes.remember(&jid, &caused);
            new.extend(caused);
        }
        if self.config.bare_jid_events {
            self.fire(jid.as_str(), &map! {"minions" => published.minions.clone()}).await;
        }
        // First the event: the job is known before anybody can return for it.
        let tag = format!("salt/job/{jid}/new");
        self.fire_job(&tag, &new).await.map_err(|error| PublishError::Failed(error.to_string()))?;
        self.fire(&format!("salt/job/{jid}/publish"), &load).await;
        self.send_to(&request, &published, load).await?;
        let (tgt, tgt_type) = (&request.tgt, &request.tgt_type);
        tracing::info!(%jid, fun = %request.fun, %tgt, %tgt_type, user = %request.user, minions = published.minions.len(), "job published");
        tracing::debug!(%jid, minions = published.minions.join(","), missing = published.missing.join(","), "job published to these minions");
        Ok(published)
    }

    async fn send_to(
        self: &Arc<Self>,
        request: &PublishRequest,
        published: &Published,
        mut load: Map,
    ) -> Result<(), PublishError> {
        if names_groups(request) {
            // Minions know no groups: they get the names.
            load.insert("tgt".into(), published.minions.clone().into());
            load.insert("tgt_type".into(), "list".into());
        }
        if let Some(jid) = &published.jid {
            self.recent_publishes.record(jid, &load);
        }
        // A minion whose session is not known yet may listen for any cipher: it opens what comes once it has
        // authenticated.
        let all_known = self.sessions.knows_all(&published.minions);
        let ciphers = if all_known { self.sessions.ciphers_in_use() } else { self.ciphers.clone() };
        self.send(load, ciphers, published.minions.clone()).await.map_err(PublishError::Failed)?;
        metrics::PUBLISHES.add(1);
        Ok(())
    }

    /// Who a request is for: the accepted minions that its target means, and those that it names which are
    /// not known.
    pub(crate) async fn targets(
        self: &Arc<Self>,
        request: &PublishRequest,
    ) -> Result<(Vec<String>, Vec<String>), PublishError> {
        let delimiter = request.kwargs.get("delimiter").and_then(Value::as_str).unwrap_or(":");
        let kind: TargetKind = request.tgt_type.parse()?;
        let target = Target::parse(kind, request.tgt.clone(), delimiter, &self.config.nodegroups)?;
        let shared = Arc::clone(self);
        let resolved = self.disk.run(move |disk| shared.resolve(disk, &target)).await;
        let resolved = resolved.map_err(|error| PublishError::Failed(error.to_string()))?;
        resolved.map_err(|error| PublishError::Failed(format!("resolving the target failed: {error}")))
    }

    /// Publishes a job and waits for its returns, for this long at most.
    pub async fn ask(self: &Arc<Self>, request: PublishRequest, timeout: Duration) -> Result<Answers, PublishError> {
        let subscribed = self.bus.subscribe(Filter::prefix("salt/job/"), Start::Now);
        let mut returns = subscribed.map_err(|error| PublishError::Failed(error.to_string()))?;
        let published = self.publish(request).await?;
        let mut answers = Answers { returned: Vec::new(), missing: published.minions };
        let Some(jid) = published.jid else { return Ok(answers) };
        // Nobody is asked again: what counts is who answers in time.
        let times = Times { timeout, gather: Duration::ZERO };
        let mut watch = Watch::new(jid, answers.missing.clone(), times, Instant::now());
        let gather = async {
            while !watch.is_over() {
                let Some(event) = returns.recv().await else { return };
                answers.returned.extend(watch.take(&event, Instant::now()));
            }
        };
        // Who has not answered by then stays missing.
        _ = tokio::time::timeout(timeout, gather).await;
        answers.missing.retain(|id| watch.waits_for(id));
        Ok(answers)
    }

    /// Asks minions that are silent whether they still work on a job, or tells which of them have not answered to
    /// that. To be called when the deadline has come. The error is one sentence.
    pub(crate) async fn look_for_silent(
        self: &Arc<Self>,
        watch: &mut Watch,
        user: &str,
    ) -> Result<BTreeSet<String>, String> {
        match watch.time_is_up(user, Instant::now()) {
            Due::Missing(ids) => Ok(ids),
            Due::Ask(request) => {
                let asked = self.publish(*request).await;
                watch.asked(asked.as_ref().ok().and_then(|asked| asked.jid.clone()), Instant::now());
                asked.map(|_| BTreeSet::new()).map_err(|error| error.to_string())
            }
        }
    }

    /// The load that minions get, without its serial.
    fn load(&self, request: &PublishRequest, jid: &Jid) -> Map {
        let mut load = map! {
            "jid" => jid,
            "fun" => request.fun.clone(),
            "arg" => request.arg.clone(),
            "tgt" => request.tgt.clone(),
            "tgt_type" => &request.tgt_type,
            "ret" => &request.ret,
            "user" => &request.user,
        };
        for name in HANDED_ON {
            if let Some(value) = request.kwargs.get(*name).filter(|value| !value.is_nil()) {
                load.insert((*name).into(), value.clone());
            }
        }
        load
    }

    /// What the event about a new job tells of its load: Salt's fields, and the others below [`MORE`] for
    /// the job cache.
    fn announcement(&self, load: &Map) -> Map {
        let (told, mut more): (Map, Map) =
            load.clone().into_iter().partition(|(name, _)| name.as_str().is_some_and(|name| TOLD.contains(&name)));
        more.retain(|_, value| value.is_truthy());
        let mut new = told;
        if !more.is_empty() {
            new.insert(MORE.into(), more.into());
        }
        new
    }

    /// Replaces the publish keys, and sends something that only the new ones open: minions notice at once
    /// and not with the next job, which would be lost to them.
    pub(crate) async fn rotate_keys(self: &Arc<Self>) {
        self.sessions.rotate();
        self.fire("key", &map! {"rotate_aes_key" => true}).await;
        let notice = map! {"jid" => &Jid::new(), "fun" => "test.ping", "arg" => Vec::<Value>::new(), "tgt" => Vec::<Value>::new(), "tgt_type" => "list"};
        if let Err(error) = self.send(notice, self.ciphers.clone(), Vec::new()).await {
            tracing::error!(error, "minions could not be told of the new keys");
        }
    }

    /// Encrypts a load once for each of these ciphers and publishes it to these minions, or to all if there are none, as
    /// far as minions filter publishes. Loads that are encrypted at the same time go out in the order of their serials:
    /// Salt's minions take nothing whose serial is below the last one.
    async fn send(self: &Arc<Self>, mut load: Map, ciphers: Vec<Cipher>, minions: Vec<String>) -> Result<(), String> {
        let (_sent, mine) = oneshot::channel::<()>();
        let (serial, before) = {
            let mut last = self.last_publish.lock();
            (self.sessions.next_serial(), last.replace(mine))
        };
        load.insert("serial".into(), serial.into());
        let shared = Arc::clone(self);
        let sealed = self.executors.crypto.run(move |_| {
            let topics = shared.topics(&load, &minions);
            let (keys, load) = (shared.sessions.publish_keys(), msgpack::pack_map(&load));
            let seal = |cipher| Ok((cipher, shared.seal_publish(cipher, &keys, &load)?));
            let sealed: Result<Vec<_>, CryptError> = ciphers.into_iter().map(seal).collect();
            sealed.map(|payloads| (topics, payloads))
        });
        let sealed = sealed.await;
        if let Some(before) = before {
            // It closes when the one before is out.
            _ = before.await;
        }
        let (topics, payloads) = sealed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        for (cipher, payload) in payloads {
            match cipher {
                Cipher::AesCbcHmac => self.publisher.publish_under(topics.clone(), &payload),
                // For Brine's minions, which subscribe to it by name.
                Cipher::Aes256Gcm => self.publisher.publish_by_name(&[Bytes::from_static(TOPIC_GCM), payload]),
            };
        }
        Ok(())
    }

    /// Returns the topics under which minions that filter publishes get a load. As in Salt, minions themselves match the
    /// targets of other kinds, which all get.
    fn topics(&self, load: &Map, minions: &[String]) -> Vec<Bytes> {
        let matched_here = matches!(load.get("tgt_type").and_then(Value::as_str), Some("glob" | "pcre" | "list"));
        if !self.config.zmq_filtering || !matched_here || minions.is_empty() {
            return vec![Bytes::from_static(TOPIC_BROADCAST)];
        }
        let syndic = self.config.order_masters.then_some(Bytes::from_static(TOPIC_SYNDIC));
        minions.iter().map(|id| Bytes::from(minion_topic(id))).chain(syndic).collect()
    }

    fn seal_publish(
        &self,
        cipher: Cipher,
        keys: &crate::sessions::PublishKeys,
        load: &[u8],
    ) -> Result<Bytes, CryptError> {
        let sealed = keys.of(cipher).seal(load, None, purpose::PUBLISH);
        let mut envelope = map! {"enc" => "aes"};
        // Every minion has the key of the stream, and could forge what is not signed.
        if self.config.sign_pub_messages || cipher == Cipher::Aes256Gcm {
            let algorithm = SignatureAlgorithm::default();
            envelope.insert("sig_algo".into(), algorithm.name().into());
            envelope.insert("sig".into(), self.identity.private_key.sign(&sealed, algorithm)?.into());
        }
        envelope.insert("load".into(), sealed.into());
        Ok(Bytes::from(msgpack::pack_map(&envelope)))
    }

    /// The accepted minions that a target means, and those that it names which are not known.
    ///
    /// # Errors
    /// The accepted minions cannot be listed.
    pub(crate) fn resolve(&self, disk: &Disk, target: &Target) -> Result<(Vec<String>, Vec<String>), FileError> {
        let accepted = disk.accepted()?;
        let known: HashSet<&str> = accepted.iter().map(String::as_str).collect();
        let named = target.listed().into_iter().flatten();
        let missing = named.filter(|id| !known.contains(*id)).map(str::to_owned).collect();
        // Who has never told what it is may match: it is asked, and decides for itself.
        let minions = accepted.iter().map(String::as_str).filter(|id| target.may_match(&disk.minion_data.facts(id)));
        let minions = minions.map(str::to_owned).collect();
        Ok((minions, missing))
    }
}
