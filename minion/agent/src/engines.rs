//! The engines of a minion: built-in ones, and functions of custom modules.

use std::ops::ControlFlow;
use std::sync::Arc;

use brine_context::{Context, Job, Minion};
use brine_engines::{BuiltIn, Engine, EngineError, PublishError, Publisher};
use brine_function::Args;
use brine_ids::Jid;
use brine_runtime::executors::Executor;
use brine_runtime::threads;
use brine_value::{Map, map};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// The maximum size of an event, in bytes: the default of masters.
const MAX_EVENT_SIZE: usize = 1 << 20;
/// The maximum number of events of an engine that are sent at a time: each occupies a thread while the master is away.
const MAX_SENDS: usize = 8;

/// Runs an engine until it ends or `stopping` is cancelled. A custom module takes precedence over a built-in engine.
pub(crate) fn run(
    minion: Arc<Minion>,
    engine: Arc<Engine>,
    stopping: CancellationToken,
) -> BoxFuture<'static, Result<(), EngineError>> {
    Box::pin(async move {
        // A function of a custom module lasts as long as the engine.
        let begun = threads::run("engine", {
            let (minion, stopping) = (Arc::clone(&minion), stopping.clone());
            move |_| {
                let module = (engine.module.as_str(), &engine.kwargs);
                let is_custom = || minion.custom.has_file("engines", &engine.module);
                match BuiltIn::preferred(&engine, minion.config.python_fallback, is_custom) {
                    Some(built_in) => ControlFlow::Continue(built_in),
                    None => ControlFlow::Break(minion.custom.run_engine(&minion, module, &stopping)),
                }
            }
        });
        match begun.await? {
            ControlFlow::Break(ended) => ended.map(|_| ()).map_err(|error| EngineError::Custom(error.to_string())),
            ControlFlow::Continue(built_in) => {
                let sends = Executor::new("engine events", MAX_SENDS, 0);
                let publisher = EventSend { minion, stopping: stopping.clone(), sends };
                built_in?.run(Arc::new(publisher), stopping).await
            }
        }
    })
}

/// Publishes events as `event.send` does: on the master's bus, or without a master on the minion's own one.
struct EventSend {
    minion: Arc<Minion>,
    stopping: CancellationToken,
    sends: Executor,
}

impl Publisher for EventSend {
    fn id(&self) -> &str {
        self.minion.id.as_str()
    }

    fn max_event_size(&self) -> usize {
        MAX_EVENT_SIZE
    }

    fn publish(&self, tag: String, data: Map) -> BoxFuture<'_, Result<(), PublishError>> {
        let (minion, cancel, sends) = (Arc::clone(&self.minion), self.stopping.clone(), self.sends.clone());
        Box::pin(async move {
            let sent = sends.run(move |_| {
                let args = Args::keyword(map! {"tag" => tag, "data" => data});
                let job = Job { cancel, ..Job::local(&Jid::new(), "event.send", &args) };
                Context::new(minion, Arc::new(job)).call("event.send", args)
            });
            match sent.await {
                Ok(Ok(sent)) if sent.is_truthy() => Ok(()),
                Ok(Ok(_)) => {
                    Err(PublishError::Refused("the event was not accepted: see the log of the master".to_owned()))
                }
                Ok(Err(error)) => Err(PublishError::Unavailable(error.message())),
                Err(error) => Err(PublishError::Unavailable(error.to_string())),
            }
        })
    }
}
