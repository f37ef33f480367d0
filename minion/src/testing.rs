//! A minion for unit tests: files in memory, no master.

use std::collections::BTreeMap;
use std::sync::Arc;

use brine_core::config::MinionConfig;
use brine_core::function::{Args, Registry};
use brine_core::{Jid, Map, map};
use parking_lot::{Mutex, RwLock};

use crate::context::{Context, FileClient, Job, Minion, Upstream};
use crate::states::StateContext;

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
    /// Tags and data, in order.
    pub fired: Mutex<Vec<(String, Map)>>,
}

impl Upstream for Alone {
    fn fire_local(&self, tag: &str, data: Map) -> Result<(), String> {
        self.fire_master(tag, data, &Map::new())
    }

    fn fire_master(&self, tag: &str, data: Map, _beside: &Map) -> Result<(), String> {
        self.fired.lock().push((tag.to_owned(), data));
        Ok(())
    }

    fn pillar(&self, _saltenv: Option<&str>, _pillarenv: Option<&str>, over: &Map) -> Result<Map, String> {
        Ok(over.clone())
    }
}

/// A minion with these files under `salt://`.
pub fn minion(files: &[(&str, &str)]) -> Arc<Minion> {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    Arc::new(Minion {
        id: "test-minion".into(),
        config: Arc::new(MinionConfig::default()),
        grains: RwLock::new(Arc::new(map! {"id" => "test-minion", "os" => "Debian", "os_family" => "Debian"})),
        pillar: RwLock::new(Arc::new(map! {"secret" => map!{"word" => "xyzzy", "empty" => ""}})),
        files: Arc::new(Files(files)),
        upstream: Arc::new(Alone::default()),
        jobs: Mutex::default(),
        functions: Registry::new(crate::modules::MODULES),
        states: Registry::new(crate::states::MODULES),
    })
}

/// The context of an execution function.
pub fn context(files: &[(&str, &str)]) -> Context {
    let job = Job::local(&Jid::new(), "test.ping", &Args::default());
    Context { minion: minion(files), job: Arc::new(job), in_template: false, run_pillar: None }
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
