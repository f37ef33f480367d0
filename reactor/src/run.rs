//! Following the bus: match, render, hand over.

use std::collections::BTreeSet;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_core::bus::{Bus, Filter, Start, Subscription};
use brine_core::event::Event;
use brine_core::sls::jinja::{Context, Host};
use brine_core::sls::yaml;
use brine_core::store::StoreError;
use brine_core::{Map, Value, map, metrics};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::entries::Entries;
use crate::reaction::{self, Reaction};
use crate::sls::{SlsCache, SlsError};

/// The tag under which the reactor says that something is wrong.
const ERROR_TAG: &str = "salt/reactor/error";
/// The name under which it remembers how far it got.
const SUBSCRIBER: &str = "reactor";
/// How many events may wait in one lane: beyond them the reactor lags, in the journal.
const LANE: usize = 64;

/// What led to a reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The event's number.
    pub seq: u64,
    /// Which of the event's reactions it is, from 0.
    pub number: usize,
    /// The event's tag.
    pub tag: String,
    /// The SLS file.
    pub file: PathBuf,
}

/// Why a reaction was not handed over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DispatchError(pub String);

/// Where reactions go.
pub trait Dispatch: Send + Sync + 'static {
    /// Says what is wrong with a reaction that cannot be done at all: an unknown function.
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError>;

    /// Hands a reaction over. When this returns, it is on its way; its outcome is told by events.
    fn dispatch(&self, reaction: Reaction, cause: Cause) -> impl Future<Output = Result<(), DispatchError>> + Send;
}

/// How a reactor works.
pub struct Options {
    /// How many events are worked on side by side. Events of the same tag keep their order.
    pub lanes: usize,
    /// The render pipe of files that do not name one.
    pub renderer: String,
    /// `opts` in templates.
    pub opts: Arc<Map>,
    /// What `salt` in templates reaches.
    pub host: Arc<dyn Host>,
}

/// The reactor.
pub struct Reactor<D> {
    entries: Entries,
    options: Options,
    files: SlsCache,
    dispatch: D,
}

/// How far all lanes together have got: the highest number below which nothing is under way.
struct Progress {
    open: BTreeSet<u64>,
    seen: u64,
}

impl Progress {
    fn reached(&self) -> u64 {
        self.open.first().map_or(self.seen, |oldest| oldest - 1)
    }
}

impl<D: Dispatch> Reactor<D> {
    /// A reactor with these entries.
    pub fn new(entries: Entries, options: Options, dispatch: D) -> Self {
        Reactor { entries, options, files: SlsCache::default(), dispatch }
    }

    /// The reactor's place on the bus. Taken before anything else is served: what is fired from then on
    /// has its reactions, also after a crash.
    pub fn subscribe(bus: &Bus) -> Result<Subscription, StoreError> {
        bus.subscribe(Filter::All, Start::Durable(SUBSCRIBER.into()))
    }

    /// Reacts until `shutdown`, or until the bus ends.
    pub async fn run(self, bus: Bus, mut events: Subscription, shutdown: CancellationToken) {
        let reactor = Arc::new(self);
        let progress = Arc::new(Mutex::new(Progress { open: BTreeSet::new(), seen: 0 }));
        let mut lanes = Vec::new();
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..reactor.options.lanes.max(1) {
            let (lane, mut waiting) = mpsc::channel::<Event>(LANE);
            lanes.push(lane);
            let (reactor, progress, bus) = (Arc::clone(&reactor), Arc::clone(&progress), bus.clone());
            workers.spawn(async move {
                while let Some(event) = waiting.recv().await {
                    reactor.react(&event, &bus).await;
                    progress.lock().open.remove(&event.seq());
                }
            });
        }
        loop {
            let batch = tokio::select! {
                batch = events.recv_many() => batch,
                () = shutdown.cancelled() => break,
            };
            let Some(batch) = batch else { break };
            for event in batch {
                progress.lock().seen = event.seq();
                if !reactor.wants(event.tag()) {
                    continue;
                }
                progress.lock().open.insert(event.seq());
                let lane = &lanes[lane_of(event.tag(), lanes.len())];
                // A lane ends only with its sender, which is here.
                tokio::select! {
                    _ = lane.send(event) => {}
                    () = shutdown.cancelled() => break,
                }
            }
            events.commit(progress.lock().reached());
        }
        // What is in the lanes is finished, unless the process is in a hurry; the rest comes again.
        drop(lanes);
        while workers.join_next().await.is_some() {}
        if !shutdown.is_cancelled() {
            events.commit(progress.lock().reached());
        }
    }

    fn wants(&self, tag: &str) -> bool {
        // An error must not lead to itself: only an entry that names the tag asks for that.
        !self.entries.matching(tag).is_empty() && (tag != ERROR_TAG || self.entries.names(ERROR_TAG))
    }

    async fn react(&self, event: &Event, bus: &Bus) {
        let mut number = 0;
        for (_, files) in self.entries.matching(event.tag()) {
            for file in files {
                for reaction in self.reactions(file, event) {
                    let result = match reaction {
                        Ok(reaction) => {
                            let cause =
                                Cause { seq: event.seq(), number, tag: event.tag().to_owned(), file: file.clone() };
                            number += 1;
                            self.hand_over(reaction, cause).await
                        }
                        Err(message) => {
                            metrics::REACTOR_ERRORS.add(1);
                            Err(message)
                        }
                    };
                    if let Err(message) = result {
                        report(bus, event, file, &message).await;
                    }
                }
            }
        }
    }

    async fn hand_over(&self, reaction: Reaction, cause: Cause) -> Result<(), String> {
        let (name, file) = (reaction.name(), cause.file.clone());
        let failed = |error: DispatchError| {
            metrics::REACTIONS_FAILED.add(1);
            format!("{}: {name}: {error}", file.display())
        };
        self.dispatch.check(&reaction).map_err(&failed)?;
        self.dispatch.dispatch(reaction, cause).await.map_err(failed)?;
        metrics::REACTIONS.add(1);
        Ok(())
    }

    /// What a file asks for on an event.
    fn reactions(&self, file: &Path, event: &Event) -> Vec<Result<Reaction, String>> {
        let rendered = match self.render(file, event) {
            Ok(rendered) => rendered,
            Err(error) => return vec![Err(error.to_string())],
        };
        let reactions = reaction::read_all(&rendered).into_iter();
        reactions.map(|one| one.map_err(|error| format!("{}:{}: {error}", file.display(), error.line))).collect()
    }

    fn render(&self, file: &Path, event: &Event) -> Result<yaml::Located, SlsError> {
        let sls = self.files.get(file, &self.options.renderer)?;
        let failed = |error| SlsError::Render { path: file.to_owned(), error };
        let mut context = Context::new("base");
        context.set("data", &Value::Map(event.data()));
        context.set("tag", &event.tag().into());
        context.set_shared("opts", Arc::clone(&self.options.opts));
        let text = sls.render_text(&context, &self.options.host).map_err(failed)?;
        sls.parse_located(&text).map_err(failed)
    }
}

fn lane_of(tag: &str, lanes: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    tag.hash(&mut hasher);
    (hasher.finish() % lanes as u64) as usize
}

/// Says that a reaction did not happen: in the log and on the bus.
async fn report(bus: &Bus, event: &Event, file: &Path, message: &str) {
    tracing::error!(tag = event.tag(), seq = event.seq(), "{message}");
    let body = map! {
        "tag" => event.tag(),
        "file" => file.display().to_string(),
        "message" => message,
        "_cause" => event.seq(),
    };
    if let Err(error) = bus.fire(ERROR_TAG, &body).await {
        tracing::error!(%error, "the event that tells of a reactor error could not be fired");
    }
}
