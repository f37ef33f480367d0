//! The minion of a test. Functions that would touch the host are gates: they return what the test mocks, work on the files
//! of a private directory, or fail with how to mock them.
//!
//! | file | owns |
//! |---|---|
//! | `functions.rs` | the modules of all tests, and the gates of their functions |
//! | `pure.rs` | the functions that work by themselves |
//! | `calls.rs` | mocked calls |
//! | `states.rs` | the states that are examined |
//! | `root.rs` | the private directory with the files of the test |
//! | `minion.rs` | the minion: configuration, files, pillar |

mod calls;
mod functions;
mod minion;
mod pure;
mod root;
mod states;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use brine_config::ConfigError;
use brine_context::{Context, Job, Minion};
use brine_function::Args;
use brine_ids::Jid;
use parking_lot::{Mutex, RwLock};

use crate::format::Given;
pub use functions::Library;
pub use minion::{Roots, pillar};
pub use pure::is_pure;
use root::Root;
pub use states::{EXAMINED, is_examined};

/// The world of a test: its minion, and what its functions did.
pub struct World {
    library: Arc<Library>,
    given: Given,
    root: Root,
    /// The number of uses of each mocked call, by function.
    used: Mutex<HashMap<String, Vec<u64>>>,
    /// The messages about calls that are not mocked, each once.
    refused: Mutex<Vec<String>>,
    /// Whether states of `file` write into the private directory.
    writes: AtomicBool,
    /// The key of the worlds of all tests.
    key: String,
}

/// The worlds by the ids of their jobs: functions know only their job.
static WORLDS: LazyLock<RwLock<HashMap<String, Arc<World>>>> = LazyLock::new(RwLock::default);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A world that functions can find; forgotten on drop.
pub struct Opened {
    world: Arc<World>,
    /// The context of its functions.
    pub context: Context,
}

impl Drop for Opened {
    fn drop(&mut self) {
        WORLDS.write().remove(&self.world.key);
    }
}

impl std::ops::Deref for Opened {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// Why a test has no world.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The options of its minion are invalid.
    #[error("'opts' are invalid: {0}")]
    Options(#[from] ConfigError),
    /// Its files cannot be created.
    #[error("creating the files of the test failed: {0}")]
    Files(#[from] std::io::Error),
}

impl World {
    /// Creates the world of a test.
    ///
    /// # Errors
    /// The options are invalid, or the private directory cannot be created.
    pub fn open(library: &Arc<Library>, given: &Given, roots: &Roots) -> Result<Opened, WorldError> {
        let root = Root::create(&given.files)?;
        let key = format!("{:020}", NEXT.fetch_add(1, Ordering::Relaxed));
        let minion: Arc<Minion> = minion::create(library, given, roots, &root)?;
        let world = Arc::new(World {
            library: Arc::clone(library),
            given: given.clone(),
            root,
            used: Mutex::default(),
            refused: Mutex::default(),
            writes: AtomicBool::new(false),
            key: key.clone(),
        });
        WORLDS.write().insert(key.clone(), Arc::clone(&world));
        let job = Job { jid: key, ..Job::local(&Jid::new(), "state.apply", &Args::default()) };
        let context = Context::new(minion, Arc::new(job));
        Ok(Opened { world, context })
    }

    /// Returns the world of a running function.
    fn of(context: &Context) -> Option<Arc<World>> {
        WORLDS.read().get(&context.job.jid).cloned()
    }

    /// Returns the messages about calls that are not mocked.
    pub fn refused(&self) -> Vec<String> {
        self.refused.lock().clone()
    }

    fn refuse(&self, message: &str) {
        let mut refused = self.refused.lock();
        if !refused.iter().any(|other| other == message) {
            refused.push(message.to_owned());
        }
    }

    /// Runs `work` while states of `file` write into the private directory.
    pub fn writing<T>(&self, work: impl FnOnce() -> T) -> T {
        self.writes.store(true, Ordering::Relaxed);
        let result = work();
        self.writes.store(false, Ordering::Relaxed);
        result
    }

    /// Returns the content of a file in the private directory.
    pub fn content(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.root.path(path)).ok()
    }

    /// Returns the place of a path of the host in the private directory.
    pub fn place(&self, path: &str) -> String {
        self.root.path(path).display().to_string()
    }
}

impl World {
    /// Whether the test gives the result of a state.
    pub fn gives_result(&self, id: &str, function: &str) -> bool {
        self.given.states.contains_key(id) || self.given.states.contains_key(function)
    }
}
