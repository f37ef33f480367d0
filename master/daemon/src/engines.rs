//! The engines of a master: built-in ones, and functions of custom modules.

use std::ops::ControlFlow;
use std::sync::Arc;

use brine_bus::BusError;
use brine_engines::{BuiltIn, Engine, EngineError, PublishError, Publisher};
use brine_ids::Jid;
use brine_master_calls::custom::CustomCaller;
use brine_master_calls::{Caller, RunnerCalls, Services};
use brine_runtime::executors::MayBlock;
use brine_runtime::threads;
use brine_value::Map;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Runs an engine until it ends or `stopping` is cancelled. A custom module takes precedence over a built-in engine.
pub(crate) fn run(
    calls: Arc<RunnerCalls>,
    engine: Arc<Engine>,
    stopping: CancellationToken,
) -> BoxFuture<'static, Result<(), EngineError>> {
    Box::pin(async move {
        // A function of a custom module lasts as long as the engine.
        let begun = threads::run("engine", {
            let (calls, stopping) = (Arc::clone(&calls), stopping.clone());
            move |_| {
                let fallback = calls.services.config.python_fallback;
                if let Some(built_in) =
                    BuiltIn::preferred(&engine, fallback, || calls.custom.has_engine(&engine.module))
                {
                    return ControlFlow::Continue(built_in);
                }
                let thread = MayBlock::on_dedicated_thread(Handle::current());
                let caller = Caller::new(Jid::new(), "engine".to_owned(), Map::new(), thread);
                let caller = CustomCaller { calls: &calls, caller: &caller };
                ControlFlow::Break(calls.custom.run_engine(&engine, &caller, &stopping))
            }
        });
        match begun.await? {
            ControlFlow::Break(ended) => ended.map(|_| ()).map_err(|error| EngineError::Custom(error.to_string())),
            ControlFlow::Continue(built_in) => {
                built_in?.run(Arc::new(OnBus(Arc::clone(&calls.services))), stopping).await
            }
        }
    })
}

/// Whether the option `engines` has the engine `webhook`.
pub(crate) fn receives_webhooks(services: &Services) -> bool {
    let (engines, _) = Engine::read(&services.config.engines);
    engines.iter().any(|engine| engine.module == "webhook")
}

/// Publishes events on the master's bus.
struct OnBus(Arc<Services>);

impl Publisher for OnBus {
    fn id(&self) -> &str {
        self.0.id.as_str()
    }

    fn max_event_size(&self) -> usize {
        self.0.config.max_event_size
    }

    fn publish(&self, tag: String, data: Map) -> BoxFuture<'_, Result<(), PublishError>> {
        Box::pin(async move {
            let published = self.0.bus.fire_durably(&tag, &data).await;
            published.map(|_| ()).map_err(|error| match error {
                BusError::Event(_) | BusError::TooLarge { .. } => PublishError::Refused(error.to_string()),
                _ => PublishError::Unavailable(error.to_string()),
            })
        })
    }
}
