//! Pillars of minions: rendered or cached, and stored for target matching.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_config::{MasterConfig, master_template_opts};
use brine_function::{Args, CallError};
use brine_ids::MinionId;
use brine_jinja::{Functions, Host};
use brine_master_custom::HostFunctions;
use brine_master_store::events::Events;
use brine_master_store::storage::Storage;
use brine_runtime::executors::{Blocking, Executor, MayBlock};
use brine_sls::master_tops;
use brine_sls::pillar::{PillarRequest, PillarSource};
use brine_value::{Map, Value, map, merge, msgpack};
use parking_lot::Mutex;

/// A request for a pillar.
#[derive(Clone)]
pub struct PillarQuery {
    /// The id of the minion.
    pub id: MinionId,
    /// Its grains.
    pub grains: Map,
    /// The environment of its states.
    pub saltenv: Option<String>,
    /// The environment of its pillar; `None` for all.
    pub pillarenv: Option<String>,
    /// Values that are merged over the rendered pillar, for this request only.
    pub pillar_override: Map,
    /// An entry of `ext_pillar` for this request only.
    pub ext: Option<Map>,
    /// Options that the minion sends for `ext_pillar`.
    pub extra_minion_data: Map,
    /// Whether the cached pillar is dropped first.
    pub clean_cache: bool,
}

/// Creates the template host with runner and wheel functions, for a given thread.
pub type MasterHost = Arc<dyn Fn(&MayBlock) -> Host + Send + Sync>;

/// The pillars of minions.
pub struct Pillars {
    config: Arc<MasterConfig>,
    source: PillarSource,
    storage: Blocking<Storage>,
    render: Executor,
    events: Events,
    /// The execution functions for pillar files.
    host: Option<Arc<dyn HostFunctions>>,
    /// The rendered pillars (`pillar_cache`).
    pub cache: PillarCache,
}

impl Pillars {
    /// Creates the pillars of a configuration.
    pub fn new(
        config: Arc<MasterConfig>,
        storage: Blocking<Storage>,
        render: Executor,
        events: Events,
        host: Option<Arc<dyn HostFunctions>>,
    ) -> Self {
        let source = PillarSource::new(Arc::new(master_template_opts(&config)));
        Pillars { config, source, storage, render, events, host, cache: PillarCache::default() }
    }

    /// Returns a minion's pillar. Stores it with the grains, and publishes the change. A pillar with an override or an
    /// external source of the request is not stored: targets by pillar match the stored one. Pillar files call runner and
    /// wheel functions of `master`.
    pub async fn pillar(self: &Arc<Self>, query: PillarQuery, master: MasterHost) -> Value {
        let (pillars, id) = (Arc::clone(self), query.id.clone());
        let rendered = self.render.run(move |thread| {
            let pillar = pillars.cached_or_rendered(&query, &master(thread));
            let is_plain = query.pillar_override.is_empty() && query.ext.is_none();
            let stored = is_plain.then(|| pillar.clone());
            let ticket = pillars.storage.get(thread).minion_data.put(&query.id, query.grains, stored);
            (pillar, ticket)
        });
        // A panic: the minion must not mistake an empty pillar for its own.
        let Ok((pillar, ticket)) = rendered.await else {
            return map! {"_errors" => brine_value::list!["The pillar could not be rendered: see the master's log"]}
                .into();
        };
        if let Err(error) = ticket.durable().await {
            tracing::error!(minion = %id, %error, "storing the data of a minion failed");
        }
        if self.config.minion_data_cache && self.config.minion_data_cache_events {
            self.events.fire(&format!("minion/refresh/{id}"), &map! {"Minion data cache refresh" => &id}).await;
        }
        pillar.into()
    }

    /// Returns the SLS files that `master_tops` assigns to a minion with these options, by environment.
    pub async fn master_tops(self: &Arc<Self>, id: &MinionId, mut opts: Map) -> Value {
        if self.config.master_tops.is_empty() {
            return Value::map();
        }
        // Modules decide by the authenticated id.
        opts.insert("id".into(), id.into());
        if let Some(Value::Map(grains)) = opts.get_mut("grains") {
            grains.insert("id".into(), id.into());
        }
        let pillars = Arc::clone(self);
        let assigned = self.render.run(move |_| {
            let functions =
                pillars.host.iter().map(|host| host.functions(None)).fold(Host::new(), Host::with_functions);
            master_tops::assigned(&pillars.config.opts, &opts, &functions)
        });
        assigned
            .await
            .unwrap_or_else(|error| {
                tracing::error!(minion = %id, %error, "master_tops failed");
                Map::new()
            })
            .into()
    }

    fn cached_or_rendered(&self, query: &PillarQuery, master: &Host) -> Map {
        if !self.config.pillar_cache || query.ext.is_some() {
            return self.render(query, master);
        }
        if query.clean_cache {
            self.cache.remove(&query.id);
        }
        let lifetime = Duration::from_secs(self.config.pillar_cache_ttl);
        let cached = self.cache.get(&query.id, query.pillarenv.as_deref(), lifetime);
        let mut pillar = cached.unwrap_or_else(|| {
            // The override applies to this request only.
            let plain = PillarQuery { pillar_override: Map::new(), ..query.clone() };
            let pillar = self.render(&plain, master);
            if !pillar.contains_key("_errors") {
                self.cache.put(&query.id, query.pillarenv.as_deref(), &pillar, lifetime);
            }
            pillar
        });
        merge(&mut pillar, &query.pillar_override);
        pillar
    }

    /// Renders a pillar without storing it.
    pub fn render(&self, query: &PillarQuery, master: &Host) -> Map {
        self.with_request(query, master, |request| self.source.render(request))
    }

    /// Returns the merged top files of the pillar, and their errors.
    pub fn top(&self, query: &PillarQuery, master: &Host) -> (Map, Vec<String>) {
        self.with_request(query, master, |request| self.source.top(request))
    }

    fn with_request<R>(&self, query: &PillarQuery, master: &Host, run: impl FnOnce(&PillarRequest<'_>) -> R) -> R {
        let grains = Arc::new(query.grains.clone());
        let host = pillar_host(self.host.as_deref(), master, &grains);
        run(&PillarRequest {
            id: &query.id,
            grains: &grains,
            saltenv: query.saltenv.as_deref(),
            pillarenv: query.pillarenv.as_deref(),
            pillar_override: &query.pillar_override,
            on_demand: query.ext.as_ref(),
            extra_minion_data: &query.extra_minion_data,
            functions: Some(host),
        })
    }
}

/// Returns the functions of pillar files and `ext_pillar`: execution functions of the master's host with the minion's
/// grains, and runner and wheel functions by `saltutil.runner` and `saltutil.wheel`.
fn pillar_host(host: Option<&dyn HostFunctions>, master: &Host, grains: &Arc<Map>) -> Host {
    let functions = host.map(|host| host.functions(Some(Arc::clone(grains))));
    let host = functions.into_iter().fold(Host::new(), Host::with_functions);
    host.with_functions(OnMaster(master.clone()))
}

/// Runner and wheel functions, called through `saltutil`.
struct OnMaster(Host);

impl Functions for OnMaster {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        self.0.call(function, args)
    }

    fn has(&self, function: &str) -> bool {
        matches!(function, "saltutil.runner" | "saltutil.wheel")
    }

    fn has_module(&self, module: &str) -> bool {
        module == "saltutil"
    }
}

/// The rendered pillars in memory, by minion and `pillarenv`.
#[derive(Debug, Default)]
pub struct PillarCache(Mutex<HashMap<MinionId, HashMap<Option<String>, Cached>>>);

#[derive(Debug)]
struct Cached {
    when: Instant,
    /// Packed, which takes a fraction of the memory.
    packed: Vec<u8>,
}

impl PillarCache {
    /// Returns a cached pillar, if it is younger than `lifetime`.
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

    /// Removes all pillars of a minion.
    pub fn remove(&self, id: &MinionId) {
        self.0.lock().remove(id);
    }
}

#[cfg(test)]
mod tests;
