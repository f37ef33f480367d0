//! Jobs: publishes them to the minions of a target, collects their returns, and runs batches.
//!
//! `stream.rs` encrypts and publishes loads, `run.rs` drives a job to its end, `batches` are jobs that the master runs
//! in batches, `to_end.rs` runs the jobs of orchestrations. `recent_publishes/` resends jobs to minions that were
//! disconnected, `new_job.rs` encodes the events of a new job, `plan_check.rs` checks jobs that apply plans, and `causality.rs` tracks which reaction led to which job.

pub mod batches;
pub mod causality;
pub mod checkpoint;
mod new_job;
mod plan_check;
mod recent_publishes;
mod run;
mod stream;
#[cfg(test)]
mod tests;
mod to_end;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_auth::FIND_JOB;
use brine_bus::BusError;
use brine_config::MasterConfig;
use brine_event::{Event, EventError, MASKED};
use brine_ids::{Jid, MinionId};
pub use brine_job::Published;
pub use brine_job::{AUTH_LIST, MASTER_ID};
use brine_job::{Action, Driver, LOAD_OPTIONS, ReportingSyndics, Times};
use brine_mask::{MASK, Mask, is_masked};
use brine_master_facts::{Facts, ResolveError, Targets};
use brine_master_store::events::{Events, JOB_CACHE_TIMEOUT};
use brine_master_store::job_events::PART;
use brine_master_store::plans::PlanError;
use brine_master_store::sealed_arguments::SealedArguments;
use brine_master_store::shared::{OptionalShared, Shared};
use brine_master_store::storage::Storage;
use brine_runtime::executors::{Blocking, MayBlock};
use brine_runtime::supervisor::Background;
use brine_value::{Map, Value, map, msgpack};
use brine_wire::{CatchUp, PublishRequest};
use bytes::Bytes;
use tokio::time::Instant;

use crate::metrics;
use batches::Batches;
use causality::Causality;
use recent_publishes::RecentPublishes;
use stream::PackedLoad;
pub use stream::PublishStream;
pub use to_end::RunError;

/// Whether a target refers to nodegroups, which only the master can resolve.
fn names_groups(request: &PublishRequest) -> bool {
    match request.tgt_type.as_str() {
        "nodegroup" => true,
        "compound" => request.tgt.to_string().contains("N@"),
        _ => false,
    }
}

/// The returns of a job within a time.
#[derive(Debug, Clone, PartialEq)]
pub struct JobReturns {
    /// The minions that returned, in order of arrival, each with its return.
    pub returned: Vec<(String, Map)>,
    /// The minions that did not return, sorted.
    pub missing: Vec<String>,
}

/// The reason why a job was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The target cannot be resolved.
    #[error(transparent)]
    Resolve(ResolveError),
    /// The name of a function is not a string.
    #[error("the function is invalid: expected a string such as test.ping, or a list of strings")]
    BadFunction,
    /// The arguments were copied from a record, where secrets are masked.
    #[error("the arguments contain '{MASK}', which stands for a secret: publish the job with its real arguments")]
    Masked,
    /// The master applies approved plans alone, and this job is none.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The job reaches the function of plans by another one.
    #[error("plans are applied by `salt --apply` alone, as plan_approval is set on the master")]
    HiddenPlan,
    /// The job is not valid as an event: its arguments nest too deep.
    #[error("the job is refused: {0}")]
    Event(EventError),
    /// The bus or the publish stream failed. A retry may succeed.
    #[error("{0}")]
    Failed(String),
}

impl From<BusError> for PublishError {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Event(error) => PublishError::Event(error),
            other => PublishError::Failed(other.to_string()),
        }
    }
}

impl From<ResolveError> for PublishError {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Failed(message) => PublishError::Failed(message),
            error @ ResolveError::Target(_) => PublishError::Resolve(error),
        }
    }
}

/// The maximum wait for minions to reconnect after a restart, and the polling interval.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Publishes jobs and tracks their returns.
pub struct Jobs {
    config: Arc<MasterConfig>,
    events: Events,
    facts: Arc<Facts>,
    /// The publish stream.
    pub stream: Arc<PublishStream>,
    /// The batches of this master and of `salt -b`.
    pub batches: Batches,
    /// The causes of jobs.
    pub causality: Causality,
    recent_publishes: RecentPublishes,
    storage: Blocking<Storage>,
    /// Masks arguments in events.
    pub mask: Mask,
    sealed_arguments: Arc<SealedArguments>,
    background: Background,
    /// The values that the members of a cluster share.
    cluster: OnceLock<Arc<Shared>>,
    /// Distinguishes this process from earlier ones of the same cluster member.
    pub process: String,
}

impl Jobs {
    /// Creates the jobs of a publish stream. Batches run as tasks of `background`.
    #[allow(clippy::too_many_arguments, reason = "the parts that jobs use, each passed once")]
    pub fn new(
        config: Arc<MasterConfig>,
        events: Events,
        facts: Arc<Facts>,
        stream: Arc<PublishStream>,
        batches: Batches,
        storage: Blocking<Storage>,
        (mask, sealed_arguments): (Mask, Arc<SealedArguments>),
        background: Background,
    ) -> Self {
        let recent_publishes =
            RecentPublishes::new(Duration::from_secs(config.publish_catch_up), !config.cluster.is_empty());
        let causality = Causality::default();
        Jobs {
            config,
            events,
            facts,
            stream,
            batches,
            causality,
            recent_publishes,
            storage,
            mask,
            sealed_arguments,
            background,
            cluster: OnceLock::new(),
            process: brine_crypt::token::nonce(),
        }
    }

    /// Shares the batches of this master with its cluster.
    pub fn join_cluster(&self, shared: OptionalShared) {
        if let Some(shared) = shared {
            // Called once, at startup.
            _ = self.cluster.set(shared);
        }
    }

    /// Restores the recent publishes from the journal, within a time limit.
    pub fn read_journal(&self, thread: &MayBlock) {
        self.recent_publishes.read_journal(thread, &self.events.bus, &self.sealed_arguments);
    }

    /// Returns the loads that a minion has missed, oldest first.
    pub fn missed(&self, storage: &Storage, id: &MinionId, from: &CatchUp) -> Value {
        let is_syndic = self.config.order_masters && self.facts.syndics.contains(id);
        self.recent_publishes.missed(storage, &self.config.nodegroups, (id, is_syndic), from)
    }

    /// Publishes a job from before a restart again if no minion has returned for it, since the first publish may have
    /// failed. Minions that have received it recognise its jid.
    pub async fn publish_again(&self, request: PublishRequest, jid: Jid) -> Result<Published, PublishError> {
        let Targets { minions, missing } = self.facts.targets(&request).await?;
        let published = Published {
            jid: Some(jid.clone()),
            minions,
            missing,
            disconnected: Vec::new(),
            syndics: self.reporting_syndics(),
        };
        self.send(&request, &published, load(&request, &jid), None).await?;
        tracing::info!(%jid, fun = %request.fun, "job published again after the restart");
        Ok(published)
    }

    /// Publishes the load of another cluster member's job. Its events are already on this bus.
    pub async fn publish_of_member(&self, mut load: Map) -> Result<(), PublishError> {
        if let Some(reference) = load.shift_remove(MASKED) {
            let reference = reference.to_string();
            let fields = self.storage.run(move |storage| storage.sealed_arguments.fields(&reference)).await;
            let Ok(Some(fields)) = fields else {
                metrics::PUBLISHES_MISSED.add(1);
                return Err(PublishError::Failed("its masked arguments have expired".to_owned()));
            };
            load.extend(fields);
        }
        let mut request = PublishRequest::from_map(&load).map_err(|error| PublishError::Failed(error.to_string()))?;
        let delimiter = load.get("delimiter").map(|delimiter| ("delimiter".into(), delimiter.clone()));
        request.kwargs.extend(delimiter);
        let Targets { minions, missing } = self.facts.targets(&request).await?;
        let published =
            Published { jid: request.jid.clone(), minions, missing, disconnected: Vec::new(), syndics: None };
        self.send(&request, &published, load, None).await
    }

    /// Records the sequence number of a job event.
    pub fn job_published(&self, number: u64) {
        self.events.job_published(number);
    }

    /// Publishes a job.
    pub async fn publish(&self, request: PublishRequest) -> Result<Published, PublishError> {
        self.publish_as(request, None).await
    }

    /// Publishes a job under this id, unless the request has one.
    pub async fn publish_as(&self, mut request: PublishRequest, jid: Option<Jid>) -> Result<Published, PublishError> {
        if let Some(name) = self.config.ext_job_cache.as_deref().filter(|name| !name.is_empty())
            && !brine_returners::split(&request.ret).any(|one| one == name)
        {
            // As in Salt, minions also return to `ext_job_cache`.
            let separator = if request.ret.is_empty() { "" } else { "," };
            request.ret = format!("{}{separator}{name}", request.ret);
        }
        match &request.fun {
            Value::Str(_) => {}
            Value::List(all) if !all.is_empty() && all.iter().all(|fun| fun.as_str().is_some()) => {}
            _ => return Err(PublishError::BadFunction),
        }
        if request.arg.iter().any(is_masked) {
            return Err(PublishError::Masked);
        }
        let Targets { minions, missing } = self.facts.targets(&request).await?;
        let syndics = self.reporting_syndics();
        // As in Salt, a job without accepted minions is not published, unless syndics may have some.
        if minions.is_empty() && syndics.is_none() {
            return Ok(Published { jid: None, minions, missing, disconnected: Vec::new(), syndics });
        }
        if let Some(id) = self.config.master_id.as_deref().filter(|_| self.config.order_masters) {
            request.kwargs.entry(MASTER_ID.into()).or_insert_with(|| id.into());
        }
        let jid = request.jid.clone().or(jid).unwrap_or_default();
        if self.config.plan_approval {
            self.check_plan(&request, &minions, &jid).await?;
        }
        let disconnected = if syndics.is_none() { self.disconnected(&minions) } else { Vec::new() };
        let published = Published { jid: Some(jid.clone()), minions, missing, disconnected, syndics };
        let load = load(&request, &jid);
        let recorded = self.recorded(&load);
        let mut further = map! {"minions" => published.minions.clone(), "missing" => published.missing.clone()};
        if self.config.order_masters {
            // An upstream master learns from this field whether further reports follow.
            let syndics = published.syndics.as_ref().map(|syndics| syndics.ids.clone()).unwrap_or_default();
            further.insert("syndics".into(), syndics.into());
        }
        if request.jid.is_some() {
            further.insert(PART.into(), true.into());
        }
        let cause = request.kwargs.iter().filter(|(name, _)| name.as_str().is_some_and(|name| name.starts_with('_')));
        let cause: Map = cause.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !cause.is_empty() {
            self.causality.record(&jid, &cause);
            further.extend(cause);
        }
        let bare = self.config.bare_jid_events.then(|| map! {"minions" => published.minions.clone()});
        let bare = bare.map(|body| Event::from_map(jid.as_str(), &body)).transpose().map_err(BusError::from)?;
        let packed = Bytes::from(msgpack::pack_map(&recorded));
        let (new, publish) = new_job::events(&jid, &recorded, &packed, &further).map_err(BusError::from)?;
        // The events are published first, so that the job is known before a minion can return for it.
        let event = self.events.fire_new_job(bare, new, publish).await?;
        // Minions receive the real arguments.
        let packed = Some(packed).filter(|_| matches!(recorded, Cow::Borrowed(_)));
        drop(recorded);
        self.send(&request, &published, load, packed).await?;
        if let Some(event) = event.filter(|_| !self.config.cluster.is_empty() || request.jid.is_some()) {
            // The caller may rely on the response: members publish the job to their minions from the journal, even if
            // this member dies now; a syndic does not publish a job of its upstream master again.
            self.events.persisted(event).await;
        }
        let (tgt, tgt_type) = (&request.tgt, &request.tgt_type);
        tracing::info!(%jid, fun = %request.fun, %tgt, %tgt_type, user = %request.user, minions = published.minions.len(), "job published");
        tracing::debug!(%jid, minions = published.minions.join(","), missing = published.missing.join(","), "job published to these minions");
        Ok(published)
    }

    /// Returns the load as events and the job cache record it: with masked arguments, and a reference to the real ones.
    fn recorded<'a>(&self, load: &'a Map) -> Cow<'a, Map> {
        let masked = self.mask.record(load);
        if masked.is_empty() {
            return Cow::Borrowed(load);
        }
        let fields = masked.keys().filter_map(|name| Some((name.clone(), load.get(name)?.clone())));
        let reference = self.sealed_arguments.store(&fields.collect());
        let mut recorded = load.clone();
        recorded.extend(masked);
        recorded.insert(MASKED.into(), reference.into());
        Cow::Owned(recorded)
    }

    /// Publishes a load to minions. `packed` is its encoding, if that is known.
    async fn send(
        &self,
        request: &PublishRequest,
        published: &Published,
        mut load: Map,
        mut packed: Option<Bytes>,
    ) -> Result<(), PublishError> {
        if names_groups(request) {
            packed = None;
            // Minions cannot resolve nodegroups, so they receive ids. Ids below syndics are unknown here, so with
            // syndics the target contains the definitions of the groups instead.
            let words = published.syndics.as_ref().and_then(|_| self.target_of_groups(request));
            let (tgt, kind) = words.map_or((published.minions.clone(), "list"), |words| (words, "compound"));
            load.insert("tgt".into(), tgt.into());
            load.insert("tgt_type".into(), kind.into());
        }
        let load = packed.map_or_else(|| PackedLoad::new(&load), |packed| PackedLoad::of(&load, packed));
        if let Some(jid) = &published.jid {
            self.recent_publishes.record(jid, load.bytes());
        }
        self.stream.publish(load, published.minions.clone()).await.map_err(PublishError::Failed)?;
        metrics::PUBLISHES.add(1);
        Ok(())
    }

    /// Returns the words of a compound target, with nodegroups replaced by their definitions.
    fn target_of_groups(&self, request: &PublishRequest) -> Option<Vec<String>> {
        let tgt = request.tgt.to_string();
        let group = format!("N@{tgt}");
        let words: Vec<&str> = match (&request.tgt, request.tgt_type.as_str()) {
            (_, "nodegroup") => vec![&group],
            (Value::List(words), _) => words.iter().filter_map(Value::as_str).collect(),
            _ => tgt.split_whitespace().collect(),
        };
        brine_target::without_nodegroups(&words, &self.config.nodegroups).ok()
    }

    /// Publishes a job and collects its returns until the timeout. Silent minions are not polled.
    pub async fn publish_and_wait(
        &self,
        request: PublishRequest,
        timeout: Duration,
    ) -> Result<JobReturns, PublishError> {
        let mut returns = self.subscribe(Vec::new()).map_err(|error| PublishError::Failed(error.to_string()))?;
        let user = request.user.clone();
        let published = self.publish(request).await?;
        let mut answers = JobReturns { returned: Vec::new(), missing: Vec::new() };
        let Some(jid) = published.jid.clone() else { return Ok(answers) };
        let (times, now) = (Times { timeout, gather: Duration::ZERO, find_job: FIND_JOB }, Instant::now());
        let driver = Driver::of_published(jid, &user, published.awaited(), times, now);
        answers.missing.extend(published.disconnected);
        let mut driver = driver.with_syndics(published.syndics, now);
        let gather = async {
            while let Action::Wait(_) = driver.next(Instant::now()) {
                let Some(event) = returns.recv().await else { return };
                answers.returned.extend(driver.process(&event, Instant::now()));
            }
        };
        // Minions that have not returned by then are missing.
        _ = tokio::time::timeout(timeout, gather).await;
        answers.missing.extend(driver.active().cloned());
        Ok(answers)
    }

    /// Returns the minions among these that are certainly disconnected. In a cluster, another member may know them.
    fn disconnected(&self, minions: &[String]) -> Vec<String> {
        if !self.config.skip_disconnected || !self.config.cluster.is_empty() {
            return Vec::new();
        }
        self.facts.certainly_absent(minions)
    }

    /// Returns the connected syndics, which will report about a job; `None` if there are no syndics. A disconnected
    /// syndic receives the job when it is back (`publish_catch_up`).
    fn reporting_syndics(&self) -> Option<ReportingSyndics> {
        let wait = self.config.syndic_wait.seconds();
        self.facts.has_syndics().then(|| ReportingSyndics { ids: self.facts.present_syndics(), wait })
    }

    /// Waits until these minions have connected, as after a restart, because jobs that are published earlier do not
    /// reach them. Gives up after [`RECONNECT_TIMEOUT`].
    async fn wait_for_minions(&self, expected: &BTreeSet<String>) {
        let deadline = Instant::now() + RECONNECT_TIMEOUT;
        while Instant::now() < deadline {
            let present: BTreeSet<String> = self.facts.present().iter().map(ToString::to_string).collect();
            if expected.is_subset(&present) {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the returns of a job by minion, from the job cache once it has stored all events up to now: the event of a
    /// return may precede both the subscription of the caller and the entry in the cache.
    async fn cached_returns(&self, jid: Jid) -> Option<Map> {
        self.events.job_cache_caught_up(JOB_CACHE_TIMEOUT).await;
        self.storage.run(move |storage| storage.job_cache.get_jid(&jid)).await.ok()?.ok()
    }

    /// Returns the timeouts of a job.
    fn times(&self, timeout: Duration) -> Times {
        Times { timeout, gather: self.config.gather_job_timeout.seconds(), find_job: FIND_JOB }
    }
}

/// Returns the load that minions receive, without its serial number.
fn load(request: &PublishRequest, jid: &Jid) -> Map {
    let mut load = request.fields(jid);
    for name in LOAD_OPTIONS.iter().chain(&["to"]) {
        if let Some(value) = request.kwargs.get(*name).filter(|value| !value.is_nil()) {
            load.insert((*name).into(), value.clone());
        }
    }
    load
}
