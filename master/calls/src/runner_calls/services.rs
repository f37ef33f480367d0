//! What runner and wheel functions are made of and work with: the parts of the master, and the modules.

use std::sync::Arc;

use brine_bus::Bus;
use brine_config::MasterConfig;
use brine_function::{Function, Functions, Registry};
use brine_ids::MinionId;
use brine_mask::Mask;
use brine_master_access::access::Access;
use brine_master_access::admission::Admission;
use brine_master_custom::{BuiltIn, HostFunctions};
use brine_master_facts::Facts;
use brine_master_facts::pillars::Pillars;
use brine_master_jobs::Jobs;
use brine_master_jobs::activity::Activity;
use brine_master_store::events::Events;
use brine_master_store::shared::{OptionalGate, OptionalShared};
use brine_master_store::storage::Storage;
use brine_runtime::executors::{Blocking, Executors};
use brine_zmtp::Publisher;

use super::{ReactorHandle, RunnerContext, WheelContext};
use crate::job_files::JobFiles;

/// The parts of a master that runner and wheel functions use.
pub struct Services {
    /// The id of the master.
    pub id: MinionId,
    /// The configuration.
    pub config: Arc<MasterConfig>,
    /// The event bus.
    pub bus: Bus,
    /// The events of the master itself.
    pub events: Events,
    /// The threads for work that blocks.
    pub executors: Executors,
    /// Keys, files and tables.
    pub storage: Blocking<Storage>,
    /// The files of jobs for Salt's Python clients.
    pub job_files: Arc<JobFiles>,
    /// The publish port.
    pub publisher: Publisher,
    /// Users and their permissions.
    pub access: Arc<Access>,
    /// Authentication of minions.
    pub admission: Arc<Admission>,
    /// Grains, mines and presence of minions; targets.
    pub facts: Arc<Facts>,
    /// Publishes and returns.
    pub jobs: Arc<Jobs>,
    /// What the fleet did lately.
    pub activity: Activity,
    /// The pillars of minions.
    pub pillars: Arc<Pillars>,
    /// The running reactor.
    pub reactor: ReactorHandle,
    /// The gate of the reactor, in a cluster.
    pub gate: OptionalGate,
    /// The values that the members of a cluster share.
    pub cluster: OptionalShared,
    /// Execution functions of the master's host.
    pub functions: Option<Arc<dyn HostFunctions>>,
    /// Masks arguments in events and logs.
    pub mask: Mask,
}

/// The built-in runner and wheel modules of a master.
#[derive(Clone, Copy)]
pub struct MasterModules {
    /// The runner modules.
    pub runners: &'static [&'static Functions<RunnerContext>],
    /// The wheel modules.
    pub wheels: &'static [&'static Functions<WheelContext>],
}

impl MasterModules {
    /// Returns the full names of all functions, for custom modules.
    pub fn names(self) -> BuiltIn {
        let runners = Registry::new(self.runners).built_in().map(Function::full_name).collect();
        BuiltIn { runners, wheels: Registry::new(self.wheels).built_in().map(Function::full_name).collect() }
    }
}
