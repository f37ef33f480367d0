//! The metrics of this crate, and the registration of all metrics of a master.

brine_metrics::metrics! {
    counter RETURNS = "brine_returns_total", "Job returns received.";
    counter REACTIONS_KNOWN = "brine_reactions_known_total", "Reactions not dispatched again after a restart because they had been dispatched before it.";
}

/// Registers the metrics of all crates of a master.
pub fn register() {
    brine_metrics::register(&[
        METRICS,
        brine_master_access::metrics::METRICS,
        brine_master_jobs::metrics::METRICS,
        brine_master_store::metrics::METRICS,
        brine_bus::metrics::METRICS,
        #[cfg(feature = "cluster")]
        brine_cluster::metrics::METRICS,
        brine_jinja::metrics::METRICS,
        brine_job::metrics::METRICS,
        brine_engines::metrics::METRICS,
        brine_reactor::metrics::METRICS,
        brine_reactor::metrics::RULE_METRICS,
        brine_runtime::metrics::METRICS,
        brine_system::metrics::METRICS,
        brine_wire::metrics::METRICS,
        brine_zmtp::metrics::METRICS,
    ]);
}
