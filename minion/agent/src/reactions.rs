//! The minion's own reactor: `reactor:` in its configuration binds tags on its own bus to SLS files with
//! `caller` reactions, which call execution functions here.

use std::sync::Arc;
use std::time::Duration;

use brine_bus::{Bus, Subscription};
use brine_config::template_opts;
use brine_context::template_host::{MinionFiles, MinionHost};
use brine_context::{Context, Job, Minion};
use brine_function::Args;
use brine_ids::Jid;
use brine_jinja::{Host, InThread};
use brine_reactor::{
    Cause, DETACH, Dispatch, DispatchError, Dispatched, Entries, EntryError, Options, Reaction, Reactor,
};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::blackout;
use crate::leader::Leader;
use crate::pool::{JobPool, PoolError};

/// The number of events that are handled concurrently.
const WORKERS: usize = 4;
/// The maximum number of waiting events.
const MAX_WAITING: usize = 1000;
const RETRIES: u32 = 5;
const MAX_DEPTH: u64 = 16;
/// The maximum bytes of dead letters, which are in memory.
const DEAD_LETTER_BYTES: u64 = 4 << 20;

/// A prepared reactor, not yet started.
pub(crate) struct PreparedReactor {
    reactor: Arc<Reactor>,
    events: Subscription,
    bus: Bus,
}

impl PreparedReactor {
    /// Handles events until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        self.reactor.run(self.bus, self.events, shutdown).await;
    }
}

/// Creates the minion's reactor, if its configuration has entries. Subscribes to the bus at once, so that no event is
/// missed.
pub(crate) fn reactor(leader: &Leader, pool: &Arc<JobPool>, bus: &Bus) -> Result<Option<PreparedReactor>, EntryError> {
    let minion = &leader.minion();
    let config = &minion.config;
    // The check of the configuration has logged the errors of entries that are left out.
    let (entries, _) = Entries::usable(&config.opts)?;
    if entries.is_empty() {
        return Ok(None);
    }
    let of_grains = leader.clone();
    let options = Options {
        workers: WORKERS,
        waiting: MAX_WAITING,
        detach: DETACH,
        deadline: Duration::from_secs(config.reactor_deadline.max(1)),
        retries: RETRIES,
        strict_data: config.reactor_strict_data,
        max_depth: MAX_DEPTH,
        user: "Reactor",
        renderer: config.renderer.clone(),
        opts: Arc::new(template_opts(config)),
        grains: Arc::new(move || of_grains.minion().grains.get()),
        host: template_host(context(minion, "reactor", &Args::default(), None)),
        group_size: Arc::new(|_| Box::pin(async { None })),
        store: None,
        dead_letter_bytes: DEAD_LETTER_BYTES,
        gate: None,
        disk: pool.executors().disk.clone(),
    };
    // Both calls can only fail with a persistent store, and there is none.
    let started = Reactor::subscribe(bus).and_then(|events| {
        let dispatch = CallerDispatch { leader: leader.clone(), pool: Arc::clone(pool) };
        Ok(PreparedReactor { reactor: Reactor::new(entries, options, dispatch)?, events, bus: bus.clone() })
    });
    Ok(started.inspect_err(|error| tracing::error!(%error, "starting the minion's reactor failed")).ok())
}

fn context(minion: &Arc<Minion>, fun: &str, args: &Args, cause: Option<&Cause>) -> Context {
    // Events that the call publishes contain its cause.
    let load = cause.map(Cause::short_fields).unwrap_or_default();
    let job = Arc::new(Job { load, ..Job::local(&Jid::new(), fun, args) });
    let context = Context::new(Arc::clone(minion), job);
    if cause.is_none() { context.for_template() } else { context }
}

struct CallerDispatch {
    leader: Leader,
    pool: Arc<JobPool>,
}

impl Dispatch for CallerDispatch {
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError> {
        match reaction {
            Reaction::Caller { fun, .. } if self.leader.minion().functions.get(fun).is_some() => Ok(()),
            Reaction::Caller { fun, .. } => Err(DispatchError::permanent(format!("'{fun}' is not available."))),
            other => {
                let name = other.name();
                let message = format!("'{name}' works in the master's reactor, this is a minion's: use caller");
                Err(DispatchError::permanent(message))
            }
        }
    }

    fn dispatch(&self, reaction: Reaction, cause: Cause) -> BoxFuture<'_, Result<Dispatched, DispatchError>> {
        Box::pin(async move {
            self.check(&reaction)?;
            let Reaction::Caller { fun, args } = reaction else { return Ok(Dispatched::Done) };
            let (minion, name) = (self.leader.minion(), fun.clone());
            let called = self.pool.start(&name, move || {
                let context = context(&minion, &fun, &args, Some(&cause));
                blackout::call(&context, &fun, args)
            });
            let outcome = match called {
                Ok(running) => running.result().await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(outcome) if outcome.success && outcome.retcode == 0 => Ok(Dispatched::Done),
                Ok(outcome) => Err(DispatchError::permanent(outcome.value.to_string())),
                Err(error @ (PoolError::Full(_) | PoolError::Stopping)) => {
                    Err(DispatchError::transient(error.to_string()))
                }
                Err(error) => {
                    Err(DispatchError::permanent(format!("The minion function caused an exception: {error}")))
                }
            }
        })
    }
}

/// Returns the host of templates. Functions and files may block on the runtime, so each call has its own thread.
fn template_host(context: Context) -> Host {
    let files = InThread(MinionFiles(context.clone()));
    Host::new().with_functions(InThread(MinionHost::new(context))).with_files(files)
}
