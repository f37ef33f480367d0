//! A minion for unit tests: files in memory, no master.

mod scripted;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use brine_bus::{Bus, BusLimits, Filter, SocketNames, Start};
use brine_config::MinionConfig;
use brine_function::{Args, Registry};
use brine_ids::Jid;
use brine_schedule::Schedule;
use brine_value::{Map, map};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;

use crate::beacons::Configured;
use crate::context::{Context, FileClient, Job, MasterEvent, Minion, Upstream};
use crate::host::programs::System;
use crate::local_bus::LocalBus;
use crate::pool::JobPool;
use crate::state::StateContext;

pub use scripted::{Scripted, answers, context_with};

struct Files(BTreeMap<String, String>);

impl FileClient for Files {
    fn read(&self, path: &str, _saltenv: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.get(path).map(|text| text.clone().into_bytes()))
    }

    fn hash(&self, path: &str, _saltenv: &str) -> Result<Option<String>, String> {
        Ok(self.0.get(path).map(|text| format!("{}", text.len())))
    }

    fn list(&self, _saltenv: &str) -> Result<Vec<String>, String> {
        Ok(self.0.keys().cloned().collect())
    }

    fn folders(&self, _saltenv: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    fn empty_folders(&self, _saltenv: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    fn links(&self, _saltenv: &str) -> Result<Map, String> {
        Ok(Map::new())
    }

    fn environments(&self) -> Result<Vec<String>, String> {
        Ok(vec!["base".into()])
    }

    fn master_opts(&self) -> Result<Map, String> {
        Ok(Map::new())
    }
}

/// Remembers what was fired at the master.
#[derive(Default)]
pub struct Alone {
    /// What was fired, in order.
    pub fired: Mutex<Vec<MasterEvent>>,
    /// Whether there is no master.
    pub masterless: bool,
    /// Whether the master is of a line that shows pillar values.
    pub shows_pillar: bool,
}

impl Upstream for Alone {
    fn has_master(&self) -> bool {
        !self.masterless
    }

    fn masks_pillar(&self) -> bool {
        !self.shows_pillar
    }

    fn fire_master(&self, event: MasterEvent) -> Result<(), String> {
        self.fired.lock().push(event);
        Ok(())
    }

    fn pillar(&self, _saltenv: Option<&str>, _pillarenv: Option<&str>, over: &Map) -> Result<Map, String> {
        Ok(over.clone())
    }
}

/// A minion with these files under `salt://`.
pub fn minion(files: &[(&str, &str)]) -> Arc<Minion> {
    minion_with(files, Arc::new(Alone::default()))
}

/// A minion with these files under `salt://`, whose events for the master go there.
pub fn minion_with(files: &[(&str, &str)], upstream: Arc<dyn Upstream>) -> Arc<Minion> {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    Arc::new(Minion {
        id: "test-minion".into(),
        config: Arc::new(MinionConfig::default()),
        grains: Arc::new(RwLock::new(Arc::new(
            map! {"id" => "test-minion", "os" => "Debian", "os_family" => "Debian"},
        ))),
        pillar: RwLock::new(Arc::new(map! {"secret" => map!{"word" => "xyzzy", "empty" => ""}})),
        files: Arc::new(Files(files)),
        upstream,
        programs: Arc::new(System),
        local: LocalBus::Sockets { folder: "/nonexistent".into(), names: SocketNames::minion("test-minion") },
        beacons: Configured::default(),
        schedule: Mutex::new(Schedule::new(Map::new())),
        jobs: Mutex::default(),
        functions: Registry::new(&crate::modules::functions()),
        states: Registry::new(&crate::modules::states()),
    })
}

/// The context of an execution function.
pub fn context(files: &[(&str, &str)]) -> Context {
    context_of(minion(files))
}

/// The context of an execution function of this minion.
pub fn context_of(minion: Arc<Minion>) -> Context {
    let job = Job::local(&Jid::new(), "test.ping", &Args::default());
    Context::new(minion, Arc::new(job))
}

/// The context of a state function.
pub fn state_context(test: bool, files: &[(&str, &str)]) -> StateContext {
    StateContext {
        call: context(files),
        test,
        saltenv: "base".into(),
        sls: "t".into(),
        id: "t".into(),
        chunk: Arc::default(),
        required: Vec::new(),
    }
}

/// A minion with a bus of its own, that answers there to what its functions ask. Its configuration is in this
/// folder. To be made within a runtime that has several threads.
pub fn answering(config_dir: &Path) -> Arc<Minion> {
    let bus = Bus::in_memory(BusLimits::default());
    let mut minion = minion(&[]);
    if let Some(own) = Arc::get_mut(&mut minion) {
        let config = MinionConfig { config_dir: config_dir.to_owned(), ..(*own.config).clone() };
        own.config = Arc::new(config);
        own.local = LocalBus::Own { bus: bus.clone(), runtime: Handle::current() };
    }
    let mut questions = bus.subscribe(Filter::prefix("manage_"), Start::Now).unwrap();
    let answering = Arc::clone(&minion);
    let pool = JobPool::new(&answering.config);
    tokio::spawn(async move {
        while let Some(event) = questions.recv().await {
            crate::events::manage(&answering, &pool, &bus, &event).await.unwrap();
        }
    });
    minion
}
