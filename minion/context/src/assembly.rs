//! Creates minions: puts their functions together, those of Salt modules and of custom ones.

use std::sync::Arc;

use brine_bus::{Bus, SocketNames};
use brine_config::MinionConfig;
use brine_function::Registry;
use brine_host::programs::System;
use brine_ids::MinionId;
use brine_mask::Mask;
use brine_schedule::Schedule;
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;

use crate::allowed::Allowed;
use crate::beacons::Configured;
use crate::context::{Minion, Modules, RunningJobs};
use crate::custom::CustomModules;
use crate::local_bus::LocalBus;
use crate::upstream::{FileClient, Upstream};
use crate::{Grains, custom_calls};

/// The state that the minions of several masters share.
struct Shared {
    modules: Modules,
    beacons: Arc<Configured>,
    schedule: Arc<Mutex<Schedule>>,
    jobs: RunningJobs,
}

/// Creates the mask of a minion. Names that do not compile are reported, and the default ones used.
fn mask(config: &MinionConfig, modules: Modules) -> Mask {
    let mask = Mask::new(&config.masked_names, &config.unmasked_names).unwrap_or_else(|error| {
        tracing::error!(%error, "option 'masked_names': the default names are masked");
        Mask::default()
    });
    mask.with_parameters(Arc::new(modules))
}

impl Minion {
    /// Creates a minion of these parts, without a pillar. Its bus is the given one, or that of the daemon with this id.
    ///
    /// With a bus, it must be called within a runtime.
    pub fn new(
        id: &MinionId,
        config: &Arc<MinionConfig>,
        modules: Modules,
        grains: Arc<Grains>,
        files: Arc<dyn FileClient>,
        upstream: Arc<dyn Upstream>,
        bus: Option<Bus>,
    ) -> Arc<Self> {
        let (beacons, schedule) = (Configured::new(config.beacons.clone()), Schedule::new(config.schedule.clone()));
        let (beacons, schedule) = (Arc::new(beacons), Arc::new(Mutex::new(schedule)));
        let shared = Shared { modules, beacons, schedule, jobs: RunningJobs::default() };
        Self::with_shared(id, config, shared, grains, files, upstream, bus)
    }

    /// Creates a minion as [`Minion::new`] for another master of this one: it shares beacons, schedule and running jobs.
    pub fn for_master(
        &self,
        id: &MinionId,
        config: &Arc<MinionConfig>,
        grains: Arc<Grains>,
        files: Arc<dyn FileClient>,
        upstream: Arc<dyn Upstream>,
        bus: Option<Bus>,
    ) -> Arc<Self> {
        let (beacons, schedule) = (Arc::clone(&self.beacons), Arc::clone(&self.schedule));
        let shared = Shared { modules: self.modules, beacons, schedule, jobs: Arc::clone(&self.jobs) };
        Self::with_shared(id, config, shared, grains, files, upstream, bus)
    }

    fn with_shared(
        id: &MinionId,
        config: &Arc<MinionConfig>,
        Shared { modules, beacons, schedule, jobs }: Shared,
        grains: Arc<Grains>,
        files: Arc<dyn FileClient>,
        upstream: Arc<dyn Upstream>,
        bus: Option<Bus>,
    ) -> Arc<Self> {
        let names = SocketNames::minion(id.as_str());
        let events = config.sock_dir.join(&names.publish);
        let local = match bus {
            Some(bus) => LocalBus::Own { bus, runtime: Handle::current() },
            None => LocalBus::Sockets { directory: config.sock_dir.clone(), names },
        };
        let (allowed, allowed_states) = (Allowed::functions(config), Allowed::states(config));
        let functions = |custom: &Arc<CustomModules>| {
            Registry::new(&modules.functions()).with_overlay(custom_calls::functions(custom))
        };
        Arc::new_cyclic(|minion| {
            let custom = CustomModules::new(config, events, custom_calls::outside_jobs(minion.clone()));
            Minion {
                id: id.to_string(),
                config: Arc::clone(config),
                grains,
                pillar: RwLock::default(),
                files,
                upstream,
                programs: Arc::new(System),
                local,
                beacons,
                schedule,
                jobs,
                mask: mask(config, modules),
                functions: allowed.of(functions(&custom)),
                inner_functions: Allowed::inside(config).map(|allowed| allowed.of(functions(&custom))),
                states: allowed_states.of(Registry::new(&modules.states()).with_overlay(custom_calls::states(&custom))),
                custom,
                modules,
            }
        })
    }
}
