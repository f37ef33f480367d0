//! The state that all jobs of a minion share.

use std::sync::Arc;

use brine_config::MinionConfig;
use brine_function::Registry;
use brine_host::programs::Programs;
use brine_mask::Mask;
use brine_schedule::Schedule;
use brine_value::Map;
use parking_lot::{Mutex, RwLock};

use super::{Context, Job, Modules, StateContext};
use crate::beacons::Configured;
use crate::custom::CustomModules;
use crate::local_bus::LocalBus;
use crate::upstream::{FileClient, Upstream};
use crate::{Grains, schedule};

/// The option and the pillar key with the functions of the mine.
pub const MINE_FUNCTIONS: &str = "mine_functions";

/// The running jobs of a minion, by jid.
pub type RunningJobs = Arc<Mutex<indexmap::IndexMap<String, Arc<Job>>>>;

/// The shared state of all jobs of a minion. A minion that is connected to several masters has one for each of them; they
/// have the same beacons, schedule and running jobs.
pub struct Minion {
    /// The minion's id.
    pub id: String,
    /// The configuration.
    pub config: Arc<MinionConfig>,
    /// The grains.
    pub grains: Arc<Grains>,
    /// The pillar as last rendered.
    pub pillar: RwLock<Arc<Map>>,
    /// Files under `salt://`.
    pub files: Arc<dyn FileClient>,
    /// The link to the master.
    pub upstream: Arc<dyn Upstream>,
    /// The programs of this host.
    pub programs: Arc<dyn Programs>,
    /// The minion's own bus.
    pub local: LocalBus,
    /// The current beacons of the configuration.
    pub beacons: Arc<Configured>,
    /// The current schedule.
    pub schedule: Arc<Mutex<Schedule>>,
    /// The running jobs, by jid.
    pub jobs: RunningJobs,
    /// Masks secret arguments in returns, in files about jobs, and in error messages.
    pub mask: Mask,
    /// Execution functions.
    pub functions: Registry<Context>,
    /// The execution functions that custom modules may call; unset if they are those of `functions`.
    pub inner_functions: Option<Registry<Context>>,
    /// State functions.
    pub states: Registry<StateContext>,
    /// Custom modules, whose functions are in both, too.
    pub custom: Arc<CustomModules>,
    /// The modules of both.
    pub modules: Modules,
}

impl Minion {
    /// Returns the execution functions that custom modules may call.
    pub(crate) fn inner_functions(&self) -> &Registry<Context> {
        self.inner_functions.as_ref().unwrap_or(&self.functions)
    }

    /// Replaces the pillar. If it changes the functions of the mine, an update of the mine is scheduled.
    pub fn set_pillar(&self, pillar: Map) {
        let functions = |pillar: &Map| pillar.get(MINE_FUNCTIONS).cloned();
        let new = functions(&pillar);
        let old = std::mem::replace(&mut *self.pillar.write(), Arc::new(pillar));
        if functions(&old) != new {
            self.schedule.lock().forget(Some(schedule::MINE));
        }
    }
}
