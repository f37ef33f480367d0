//! The option `engines` in Salt's format, and the restart of engines that end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_runtime::backoff::Backoff;
use brine_value::{Map, Value};
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::EngineError;
use crate::metrics::ENGINE_ENDS;

/// The first and the longest pause before an engine is restarted.
const BACKOFF_RANGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The run time after which the pause is reset.
const RESET_AFTER: Duration = Duration::from_secs(60);

/// A configured engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Engine {
    /// Its name in the configuration.
    pub name: String,
    /// Its module: the name, or the argument `engine_module`.
    pub module: String,
    /// The arguments of its function `start`.
    pub kwargs: Map,
}

impl Engine {
    /// Parses the option `engines`: a list of names and of mappings from a name to arguments, or one mapping. Returns
    /// the engines, and an error for each invalid entry.
    pub fn read(option: &Value) -> (Vec<Engine>, Vec<String>) {
        let (mut engines, mut errors) = (Vec::new(), Vec::new());
        let entries = match option {
            Value::Nil => Vec::new(),
            Value::List(entries) => entries.clone(),
            other => vec![other.clone()],
        };
        for entry in entries {
            match entry {
                Value::Str(name) => engines.push(Engine::new(name.as_str(), Map::new())),
                Value::Map(named) => {
                    for (name, arguments) in named {
                        match arguments {
                            Value::Nil => engines.push(Engine::new(&name.to_string(), Map::new())),
                            Value::Map(kwargs) => engines.push(Engine::new(&name.to_string(), kwargs)),
                            other => errors.push(format!(
                                "the arguments of the engine '{name}' are invalid: expected a mapping, got {}",
                                other.type_name()
                            )),
                        }
                    }
                }
                other => errors.push(format!("an entry is invalid: expected a name, got {}", other.type_name())),
            }
        }
        (engines, errors)
    }

    fn new(name: &str, mut kwargs: Map) -> Self {
        let module = kwargs.shift_remove("engine_module").map_or_else(|| name.to_owned(), |module| module.to_string());
        Engine { name: name.to_owned(), module, kwargs }
    }

    /// Runs the engine until `stopping` is cancelled. `start` runs it until it ends, with the reason if it fails.
    pub async fn run(
        self,
        start: impl Fn(Arc<Engine>, CancellationToken) -> BoxFuture<'static, Result<(), EngineError>> + Send,
        stopping: CancellationToken,
    ) {
        let engine = Arc::new(self);
        let mut backoff = Backoff::new(BACKOFF_RANGE.0, BACKOFF_RANGE.1);
        while !stopping.is_cancelled() {
            let begun = Instant::now();
            tracing::info!(engine = engine.name, "engine started");
            let ended = start(Arc::clone(&engine), stopping.clone()).await;
            if stopping.is_cancelled() {
                return;
            }
            ENGINE_ENDS.add(1);
            let why = ended.err().map_or_else(|| "its function returned".to_owned(), |error| error.to_string());
            if begun.elapsed() >= RESET_AFTER {
                backoff.reset();
            }
            let pause = backoff.next_wait();
            tracing::error!(engine = engine.name, "engine ended; restarting in {pause:.1?}: {why}");
            tokio::select! {
                () = stopping.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
