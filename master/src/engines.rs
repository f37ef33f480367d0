//! The engines of a master: built-in ones, and functions of custom modules.

use std::sync::Arc;

use brine_engines::{BuiltIn, Engine, Publisher};
use brine_value::Map;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::runner_calls::{RunnerCalls, Services};

/// Runs an engine until it ends or `stopping` is cancelled. A custom module takes precedence over a built-in engine.
pub(crate) fn run(
    calls: Arc<RunnerCalls>,
    engine: Arc<Engine>,
    stopping: CancellationToken,
) -> BoxFuture<'static, Result<(), String>> {
    Box::pin(async move {
        let custom = tokio::task::spawn_blocking({
            let (calls, engine, stopping) = (Arc::clone(&calls), Arc::clone(&engine), stopping.clone());
            move || {
                let is_built_in = match BuiltIn::of(&engine) {
                    Some(Ok(_)) => true,
                    // The engine of the package `salt` may have arguments that the built-in one lacks.
                    Some(Err(_)) => !calls.services.config.python_fallback,
                    None => false,
                };
                if is_built_in && !calls.custom.has_engine(&engine.module) {
                    return None;
                }
                Some(calls.custom.run_engine(&engine, &calls, &stopping))
            }
        });
        match (custom.await.map_err(|error| error.to_string())?, BuiltIn::of(&engine)) {
            (Some(ended), _) => ended.map(|_| ()).map_err(|error| error.to_string()),
            (None, Some(built_in)) => built_in?.run(Arc::new(OnBus(Arc::clone(&calls.services))), stopping).await,
            (None, None) => Ok(()),
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

    fn publish(&self, tag: String, data: Map) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(
            async move { self.0.bus.fire_durably(&tag, &data).await.map(|_| ()).map_err(|error| error.to_string()) },
        )
    }
}
