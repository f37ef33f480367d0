//! `metrics`: what the master has counted.

use brine_core::{Value, functions};

use super::RunnerContext;

functions! {
    module "metrics", context RunnerContext;

    /// All counters of the master.
    ///
    /// CLI Example:
    ///
    ///     salt-run metrics.show
    fn show(context) {
        let counters = brine_core::metrics::ALL.iter().map(|counter| (counter.name.into(), counter.get().into()));
        let mut shown: brine_core::Map = counters.collect();
        shown.insert("brine_last_seq".into(), context.master.bus.last_seq().into());
        shown.insert("brine_sessions".into(), context.master.sessions.count().into());
        shown.insert("brine_publish_connections".into(), context.master.publisher.connections().into());
        Ok(Value::Map(shown))
    }
}
