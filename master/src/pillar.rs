//! Pillar requests: rendered for the minion that asks, or taken from the cache, and kept for targeting.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_function::{Args, CallError};
use brine_ids::MinionId;
use brine_jinja::Host;
use brine_runtime::executors::MayBlock;
use brine_sls::pillar::{PillarRequest, merge};
use brine_value::{Map, Value, map, msgpack};
use parking_lot::Mutex;

use crate::Shared;
use crate::reactions::ReactorHost;

/// Whose pillar is asked for, and how.
#[derive(Clone)]
pub(crate) struct Asked {
    pub id: MinionId,
    pub grains: Map,
    pub saltenv: Option<String>,
    pub pillarenv: Option<String>,
    /// What goes over it, for this once.
    pub over: Map,
    /// Not from the cache.
    pub anew: bool,
}

impl Shared {
    /// A minion's pillar. Keeps it and the grains, and says so by an event.
    pub(crate) async fn pillar(self: &Arc<Self>, asked: Asked) -> Value {
        let (shared, id) = (Arc::clone(self), asked.id.clone());
        let rendered = self.executors.render.run(move |thread| {
            let pillar = shared.cached_or_rendered(&asked, thread);
            let ticket = shared.disk.get(thread).minion_data.put(&asked.id, asked.grains, pillar.clone());
            (pillar, ticket)
        });
        // It is a defect that ends the rendering: the minion must not take nothing for its pillar.
        let Ok((pillar, ticket)) = rendered.await else {
            return map! {"_errors" => brine_value::list!["The pillar could not be rendered: see the master's log"]}
                .into();
        };
        if let Err(error) = ticket.durable().await {
            tracing::error!(minion = %id, %error, "a minion's data could not be kept");
        }
        if self.config.minion_data_cache_events {
            self.fire(&format!("minion/refresh/{id}"), &map! {"Minion data cache refresh" => &id}).await;
        }
        pillar.into()
    }

    fn cached_or_rendered(self: &Arc<Self>, asked: &Asked, thread: &MayBlock) -> Map {
        if !self.config.pillar_cache {
            return self.render_pillar(asked, thread);
        }
        if asked.anew {
            self.pillar_cache.forget(&asked.id);
        }
        let lifetime = Duration::from_secs(self.config.pillar_cache_ttl);
        let cached = self.pillar_cache.get(&asked.id, asked.pillarenv.as_deref(), lifetime);
        let mut pillar = cached.unwrap_or_else(|| {
            // What is said for this once is not for the next one.
            let plain = Asked { over: Map::new(), ..asked.clone() };
            let pillar = self.render_pillar(&plain, thread);
            if !pillar.contains_key("_errors") {
                self.pillar_cache.put(&asked.id, asked.pillarenv.as_deref(), &pillar, lifetime);
            }
            pillar
        });
        merge(&mut pillar, &asked.over);
        pillar
    }

    /// Renders a pillar, and keeps nothing.
    pub(crate) fn render_pillar(self: &Arc<Self>, asked: &Asked, thread: &MayBlock) -> Map {
        let grains = Arc::new(asked.grains.clone());
        let functions =
            PillarFunctions { shared: Arc::clone(self), grains: Arc::clone(&grains), thread: thread.clone() };
        self.pillar_source.render(&PillarRequest {
            id: &asked.id,
            grains: &grains,
            saltenv: asked.saltenv.as_deref(),
            pillarenv: asked.pillarenv.as_deref(),
            over: &asked.over,
            functions: Some(Arc::new(functions)),
        })
    }
}

/// What pillar files and `ext_pillar` reach: the execution functions of the master's host with the minion's grains,
/// and runner and wheel functions by `saltutil.runner` and `saltutil.wheel`.
struct PillarFunctions {
    shared: Arc<Shared>,
    grains: Arc<Map>,
    thread: MayBlock,
}

fn is_masters(function: &str) -> bool {
    matches!(function, "saltutil.runner" | "saltutil.wheel")
}

impl Host for PillarFunctions {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        match &self.shared.functions {
            _ if is_masters(function) => {
                let host = ReactorHost { shared: Arc::clone(&self.shared), thread: self.thread.clone() };
                host.call(function, args)
            }
            Some(functions) => functions.call_with_grains(&self.grains, function, args),
            None => Err(CallError::NotAvailable(function.to_owned())),
        }
    }

    fn has(&self, function: &str) -> bool {
        is_masters(function) || self.shared.functions.as_ref().is_some_and(|functions| functions.has(function))
    }

    fn template(&self, _path: &str, _saltenv: &str) -> Result<Option<String>, String> {
        Ok(None)
    }
}

/// `pillar_cache`: pillars as they were rendered, in memory, by minion and by `pillarenv`.
#[derive(Debug, Default)]
pub(crate) struct PillarCache(Mutex<HashMap<MinionId, HashMap<Option<String>, Cached>>>);

#[derive(Debug)]
struct Cached {
    when: Instant,
    /// As msgpack, which takes a fraction of the room.
    packed: Vec<u8>,
}

impl PillarCache {
    /// A pillar that is not older than this.
    pub fn get(&self, id: &MinionId, pillarenv: Option<&str>, lifetime: Duration) -> Option<Map> {
        let all = self.0.lock();
        let cached = all.get(id)?.get(&pillarenv.map(str::to_owned))?;
        if cached.when.elapsed() > lifetime { None } else { msgpack::unpack_map(&cached.packed).ok() }
    }

    fn put(&self, id: &MinionId, pillarenv: Option<&str>, pillar: &Map, lifetime: Duration) {
        let cached = Cached { when: Instant::now(), packed: msgpack::pack_map(pillar) };
        let mut all = self.0.lock();
        all.retain(|_, pillars| {
            pillars.retain(|_, cached| cached.when.elapsed() <= lifetime);
            !pillars.is_empty()
        });
        all.entry(id.clone()).or_default().insert(pillarenv.map(str::to_owned), cached);
    }

    /// Forgets all pillars of a minion.
    pub fn forget(&self, id: &MinionId) {
        self.0.lock().remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pillar_is_kept_for_its_minion_and_environment() {
        let (cache, hour) = (PillarCache::default(), Duration::from_secs(3600));
        let (one, other): (MinionId, MinionId) = ("one".parse().unwrap(), "other".parse().unwrap());
        cache.put(&one, None, &map! {"a" => 1}, hour);
        cache.put(&one, Some("dev"), &map! {"a" => 2}, hour);
        assert_eq!(cache.get(&one, None, hour), Some(map! {"a" => 1}));
        assert_eq!(cache.get(&one, Some("dev"), hour), Some(map! {"a" => 2}));
        assert_eq!(cache.get(&one, Some("qa"), hour), None);
        assert_eq!(cache.get(&other, None, hour), None);
        assert_eq!(cache.get(&one, None, Duration::ZERO), None);
        cache.forget(&one);
        assert_eq!(cache.get(&one, Some("dev"), hour), None);
    }
}
