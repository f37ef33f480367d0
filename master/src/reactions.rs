//! The reactor in the master: where its reactions go, and what its templates reach.

use std::sync::Arc;

use brine_core::Value;
use brine_core::function::Args;
use brine_core::sls::jinja::Host;
use brine_core::wire::PublishRequest;
use brine_reactor::{Cause, Dispatch, DispatchError, Entries, Options, Reaction, Reactor};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::calls::Kind;
use crate::{Shared, StartError};

/// Who reactions are done for, as jobs and events name it.
const USER: &str = "Reactor";

/// Starts the reactor, if anything is bound.
pub(crate) fn start(shared: &Arc<Shared>, tasks: &TaskTracker, shutdown: &CancellationToken) -> Result<(), StartError> {
    let wrong = |error: brine_reactor::EntryError| StartError::Config { option: "reactor", reason: error.to_string() };
    let entries = Entries::from_config(&shared.config.reactor).map_err(wrong)?;
    if entries.is_empty() {
        return Ok(());
    }
    let options = Options {
        lanes: shared.config.reactor_worker_threads,
        renderer: shared.config.renderer.clone(),
        opts: Arc::new(shared.config.opts.clone()),
        host: Arc::new(ReactorHost { shared: Arc::clone(shared), runtime: Handle::current() }),
    };
    let events = Reactor::<MasterDispatch>::subscribe(&shared.bus)?;
    let reactor = Reactor::new(entries, options, MasterDispatch(Arc::clone(shared)));
    tasks.spawn(reactor.run(shared.bus.clone(), events, shutdown.clone()));
    Ok(())
}

struct MasterDispatch(Arc<Shared>);

impl Dispatch for MasterDispatch {
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError> {
        let known = match reaction {
            Reaction::Local(_) => true,
            Reaction::Runner { fun, .. } => self.0.has_call(Kind::Runner, fun),
            Reaction::Wheel { fun, .. } => self.0.has_call(Kind::Wheel, fun),
            Reaction::Caller { .. } => {
                return Err(DispatchError(
                    "'caller' works in a minion's reactor, this is the master's: use local".into(),
                ));
            }
        };
        if known { Ok(()) } else { Err(DispatchError(format!("'{}' is not available.", reaction.name()))) }
    }

    async fn dispatch(&self, reaction: Reaction, cause: Cause) -> Result<(), DispatchError> {
        match reaction {
            Reaction::Local(local) => {
                let mut kwargs = crate::calls::cause_fields(&cause);
                if let Some(metadata) = local.metadata {
                    kwargs.insert("metadata".into(), metadata);
                }
                let request = PublishRequest {
                    tgt: local.tgt,
                    tgt_type: local.tgt_type,
                    fun: local.fun.into(),
                    arg: local.args.to_wire(),
                    ret: local.ret,
                    jid: None,
                    key: None,
                    user: USER.to_owned(),
                    kwargs,
                };
                let target = request.tgt.to_string();
                let published = self.0.publish(request).await.map_err(|error| DispatchError(error.to_string()))?;
                if published.jid.is_none() {
                    tracing::warn!(tag = cause.tag, target, "a reaction is for minions of which none is known");
                }
                Ok(())
            }
            Reaction::Runner { fun, args } => self.call(Kind::Runner, &fun, args, &cause).await,
            Reaction::Wheel { fun, args } => self.call(Kind::Wheel, &fun, args, &cause).await,
            Reaction::Caller { .. } => self.check(&reaction),
        }
    }
}

impl MasterDispatch {
    async fn call(&self, kind: Kind, fun: &str, args: Args, cause: &Cause) -> Result<(), DispatchError> {
        // Its events tell what comes of it; the reactor does not wait.
        self.0.start_call(kind, fun, args, USER, Some(cause)).await;
        Ok(())
    }
}

/// `salt` in reactor templates: runner functions.
struct ReactorHost {
    shared: Arc<Shared>,
    runtime: Handle,
}

impl Host for ReactorHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, String> {
        let context = crate::runner::RunnerContext {
            master: Arc::clone(&self.shared),
            jid: brine_core::Jid::new(),
            user: USER.to_owned(),
            runtime: self.runtime.clone(),
        };
        // A runner may wait on the runtime whose thread this is: that is for a thread of its own.
        let call = || self.shared.runners.call(&context, function, args).map_err(|error| error.to_string());
        std::thread::scope(|scope| scope.spawn(call).join().unwrap_or_else(|_| Err("the function panicked".into())))
    }

    fn has(&self, function: &str) -> bool {
        self.shared.runners.get(function).is_some()
    }

    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        let Some(found) = self.shared.files.find(path, saltenv) else { return Ok(None) };
        std::fs::read_to_string(&found.path).map(Some).map_err(|error| error.to_string())
    }
}
