//! Fixtures for unit tests of the minion's crates: a minion with files in memory and no master, programs from
//! transcripts, a web server.
//!
//! Only tests depend on this crate. A crate names its modules' `MODULES` once, with [`with_modules!`].

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]
#![warn(clippy::self_named_module_files)]

mod scripted;
pub mod web;

use std::collections::BTreeMap;
use std::sync::Arc;

use brine_bus::SocketNames;
use brine_config::MinionConfig;
use brine_context::custom::CustomModules;
use brine_context::local_bus::LocalBus;
use brine_context::{
    Context, FetchError, FileClient, Grains, Job, Mask, MasterEvent, Minion, Modules, StateContext, Upstream,
    UpstreamError,
};
use brine_function::{Args, Registry};
use brine_host::programs::System;
use brine_ids::Jid;
use brine_schedule::Schedule;
use brine_value::{Map, Value, map};
use parking_lot::{Mutex, RwLock};
use tempfile::TempDir;

pub use scripted::{Applied, Scripted, answers, applied, debian, use_programs};

/// Defines the functions of this crate for minions with these modules.
#[macro_export]
macro_rules! with_modules {
    ($modules:expr) => {
        #[allow(unused_imports)]
        pub use $crate::{Alone, Answering, Applied, Scripted, answers, context_of};

        use std::sync::Arc;

        use brine_context::{Context, Minion, StateContext, Upstream};
        use brine_value::Map;

        /// Creates a minion with these files under `salt://`.
        #[allow(dead_code)]
        pub fn minion(files: &[(&str, &str)]) -> Arc<Minion> {
            minion_with(files, Arc::new(Alone::default()))
        }

        /// Creates a minion with these files under `salt://` that sends its events to this master.
        #[allow(dead_code)]
        pub fn minion_with(files: &[(&str, &str)], upstream: Arc<dyn Upstream>) -> Arc<Minion> {
            $crate::minion(&$modules, files, upstream)
        }

        /// Returns the context of an execution function.
        #[allow(dead_code)]
        pub fn context(files: &[(&str, &str)]) -> Context {
            context_of(minion(files))
        }

        /// Returns the context of a minion with these grains and programs.
        #[allow(dead_code)]
        pub fn context_with(grains: Map, programs: Arc<Scripted>) -> Context {
            context_of($crate::use_programs(minion(&[]), grains, programs))
        }

        /// Calls a state function on a minion with Debian whose programs answer as in a transcript.
        #[allow(dead_code)]
        pub fn applied(function: &str, keyword: Map, test: bool, transcript: &str) -> Applied {
            let programs = Scripted::new(transcript);
            let call = context_with($crate::debian(), programs.clone());
            $crate::applied(&call, &programs, function, keyword, test)
        }

        /// Returns the context of a state function.
        #[allow(dead_code)]
        pub fn state_context(test: bool, files: &[(&str, &str)]) -> StateContext {
            $crate::state_context(test, context(files))
        }
    };
}

struct Files {
    texts: BTreeMap<String, String>,
    /// The minion's cache, which is removed with it.
    _cache: TempDir,
}

impl FileClient for Files {
    fn read(&self, path: &str, _saltenv: &str) -> Result<Option<Vec<u8>>, FetchError> {
        Ok(self.texts.get(path).map(|text| text.clone().into_bytes()))
    }

    fn hash(&self, path: &str, _saltenv: &str) -> Result<Option<String>, FetchError> {
        Ok(self.texts.get(path).map(|text| format!("{}", text.len())))
    }

    fn list(&self, _saltenv: &str) -> Result<Vec<String>, FetchError> {
        Ok(self.texts.keys().cloned().collect())
    }

    fn directories(&self, _saltenv: &str) -> Result<Vec<String>, FetchError> {
        Ok(Vec::new())
    }

    fn empty_directories(&self, _saltenv: &str) -> Result<Vec<String>, FetchError> {
        Ok(Vec::new())
    }

    fn links(&self, _saltenv: &str) -> Result<Map, FetchError> {
        Ok(Map::new())
    }

    fn environments(&self) -> Result<Vec<String>, FetchError> {
        Ok(vec!["base".into()])
    }

    fn master_opts(&self) -> Result<Map, FetchError> {
        Ok(Map::new())
    }
}

/// A master that records the events it receives.
#[derive(Default)]
pub struct Alone {
    /// Recorded events, in order.
    pub fired: Mutex<Vec<MasterEvent>>,
    /// Whether the minion has no master.
    pub masterless: bool,
    /// Whether the master is of a Salt version that does not mask pillar values.
    pub shows_pillar: bool,
}

impl Upstream for Alone {
    fn has_master(&self) -> bool {
        !self.masterless
    }

    fn masks_pillar(&self) -> bool {
        !self.shows_pillar
    }

    fn fire_master(&self, event: MasterEvent) -> Result<(), UpstreamError> {
        self.fired.lock().push(event);
        Ok(())
    }

    fn pillar(&self, _saltenv: Option<&str>, _pillarenv: Option<&str>, over: &Map) -> Result<Map, UpstreamError> {
        Ok(over.clone())
    }

    fn pillar_with(&self, external: &Map, over: &Map) -> Result<Map, UpstreamError> {
        Ok(external.iter().chain(over).map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}

/// A master that answers requests by a function, and drops events.
pub struct Answering<F>(pub F);

impl<F: Fn(Map) -> Result<Value, UpstreamError> + Send + Sync> Upstream for Answering<F> {
    fn has_master(&self) -> bool {
        true
    }

    fn fire_master(&self, _event: MasterEvent) -> Result<(), UpstreamError> {
        Ok(())
    }

    fn pillar(&self, _saltenv: Option<&str>, _pillarenv: Option<&str>, over: &Map) -> Result<Map, UpstreamError> {
        Ok(over.clone())
    }

    fn pillar_with(&self, external: &Map, over: &Map) -> Result<Map, UpstreamError> {
        Ok(external.iter().chain(over).map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    fn ask(&self, load: Map) -> Result<Value, UpstreamError> {
        (self.0)(load)
    }
}

/// Creates a minion with these modules and files under `salt://` that sends its events to this master.
pub fn minion(modules: &Modules, files: &[(&str, &str)], upstream: Arc<dyn Upstream>) -> Arc<Minion> {
    let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let cache = tempfile::tempdir().unwrap();
    let config = Arc::new(MinionConfig { cachedir: cache.path().to_owned(), ..MinionConfig::default() });
    // Without a weak reference: tests change fields through `Arc::get_mut`.
    Arc::new(Minion {
        id: "test-minion".into(),
        custom: CustomModules::without_minion(&config),
        config,
        grains: Arc::new(Grains::from(map! {"id" => "test-minion", "os" => "Debian", "os_family" => "Debian"})),
        pillar: RwLock::new(Arc::new(map! {"secret" => map!{"word" => "xyzzy", "empty" => ""}})),
        files: Arc::new(Files { texts, _cache: cache }),
        upstream,
        programs: Arc::new(System),
        local: LocalBus::Sockets { directory: "/nonexistent".into(), names: SocketNames::minion("test-minion") },
        beacons: Arc::default(),
        schedule: Arc::new(Mutex::new(Schedule::new(Map::new()))),
        jobs: Arc::default(),
        mask: Mask::default(),
        functions: Registry::new(&modules.functions()),
        inner_functions: None,
        states: Registry::new(&modules.states()),
        modules: *modules,
    })
}

/// Returns the context of an execution function of this minion.
pub fn context_of(minion: Arc<Minion>) -> Context {
    let job = Job::local(&Jid::new(), "test.ping", &Args::default());
    Context::new(minion, Arc::new(job))
}

/// Returns the context of a state function.
pub fn state_context(test: bool, call: Context) -> StateContext {
    StateContext {
        call,
        test,
        saltenv: "base".into(),
        sls: "t".into(),
        id: "t".into(),
        chunk: Arc::default(),
        required: Vec::new(),
    }
}
