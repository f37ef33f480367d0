//! The metrics of this crate, and the registration of all metrics of a minion.

brine_metrics::metrics! {
    counter RETURNS_RETRIED = "brine_returns_retried_total", "Job returns that a minion kept for retry because its master did not accept them.";
    counter MINION_EVENTS_LOST = "brine_minion_events_lost_total", "Events of a minion that its master did not accept in time.";
    counter MASTER_CHANGES = "brine_master_changes_total", "Connections of a minion to another one of its masters.";
    counter JOBS_INTERRUPTED = "brine_jobs_interrupted_total", "Jobs interrupted because the minion was killed.";
    counter JOBS_REFUSED = "brine_jobs_refused_total", "Jobs that a minion refused because its queue was full.";
}

/// Registers the metrics of all crates of a minion.
pub fn register() {
    brine_metrics::register(&[
        METRICS,
        brine_bus::metrics::METRICS,
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
