//! A minion for unit tests that handles events on its own bus, as a running one does.

use std::path::Path;

use brine_bus::{Bus, BusLimits, Filter, Start};
use brine_config::MinionConfig;
use brine_context::local_bus::LocalBus;
use tokio::runtime::Handle;

use crate::leader::Leader;
use crate::pool::JobPool;
use crate::schedule::MinionSchedule;

brine_testing::with_modules!(brine_modules::MODULES);

/// Creates a minion with its own bus that handles the queries of its functions. `config_dir` is its configuration
/// directory. Must be called within a multi-threaded runtime.
pub fn answering(config_dir: &Path) -> Arc<Minion> {
    let bus = Bus::in_memory(BusLimits::default());
    let mut minion = minion(&[]);
    if let Some(own) = Arc::get_mut(&mut minion) {
        let config = MinionConfig { config_dir: config_dir.to_owned(), ..(*own.config).clone() };
        own.config = Arc::new(config);
        own.local = LocalBus::Own { bus: bus.clone(), runtime: Handle::current() };
    }
    let mut questions = bus.subscribe(Filter::prefix("manage_"), Start::Now).unwrap();
    let pool = Arc::new(JobPool::new(&minion.config));
    let spool = Arc::new(crate::spool::Spool::unused());
    let host = Arc::new(MinionSchedule { leader: Leader::only(&minion), pool, spool, bus });
    tokio::spawn(async move {
        while let Some(event) = questions.recv().await {
            crate::events::manage(&host, &event).await.unwrap();
        }
    });
    minion
}
