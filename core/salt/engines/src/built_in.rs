//! The engines that are part of Brine. A custom module of the same name takes precedence.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::publisher::Publisher;
use crate::script::Script;
use crate::webhook::Webhook;
use crate::{Engine, EngineError};

/// A built-in engine with its arguments.
#[derive(Debug)]
pub enum BuiltIn {
    /// Publishes the lines of a program's output.
    Script(Script),
    /// Publishes HTTP requests.
    Webhook(Webhook),
    /// Does nothing: Salt's documentation turns on the reactor of a minion by this engine, which runs without it.
    Reactor,
}

impl BuiltIn {
    /// Returns the built-in engine of a module; `None` if there is none.
    ///
    /// # Errors
    /// An invalid argument.
    fn of(engine: &Engine) -> Option<Result<Self, EngineError>> {
        let refused = |why: &str| Some(Err(EngineError::Argument(why.to_owned())));
        match &*engine.module {
            "script" => Some(Script::new(&engine.kwargs).map(BuiltIn::Script).map_err(EngineError::Argument)),
            "webhook" => Some(Webhook::new(&engine.kwargs).map(BuiltIn::Webhook).map_err(EngineError::Argument)),
            "reactor" => Some(Ok(BuiltIn::Reactor)),
            "test" => refused(
                "it only logs events: follow them by `salt-run state.event`, or with the engine `script`, and remove it",
            ),
            "thorium" => refused("rules over time take the place of thorium: write `reactor_rules`"),
            _ => None,
        }
    }

    /// Returns the built-in engine of a module unless another one takes precedence: a custom module of the same name, or
    /// with `python_fallback` the engine of the package `salt`, which may have arguments that the built-in one lacks.
    ///
    /// # Errors
    /// An invalid argument.
    pub fn preferred(
        engine: &Engine,
        python_fallback: bool,
        is_custom: impl FnOnce() -> bool,
    ) -> Option<Result<Self, EngineError>> {
        let built_in = Self::of(engine)?;
        let is_left_to_salt = built_in.is_err() && python_fallback;
        (!is_left_to_salt && !is_custom()).then_some(built_in)
    }

    /// Runs the engine until `stopping` is cancelled.
    ///
    /// # Errors
    /// The reason why it has ended by itself.
    pub async fn run(self, publisher: Arc<dyn Publisher>, stopping: CancellationToken) -> Result<(), EngineError> {
        match self {
            BuiltIn::Script(script) => script.run(&*publisher, &stopping).await,
            BuiltIn::Webhook(webhook) => webhook.run(publisher, stopping).await,
            BuiltIn::Reactor => {
                stopping.cancelled().await;
                Ok(())
            }
        }
    }
}
