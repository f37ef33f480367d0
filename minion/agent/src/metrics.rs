//! The metrics of this crate, and the registration of all metrics of a minion.

brine_metrics::metrics! {
    counter RETURNS_RETRIED = "brine_returns_retried_total", "Job returns that a minion kept for retry because its master did not accept them.";
    counter MINION_EVENTS_LOST = "brine_minion_events_lost_total", "Events of a minion that its master did not accept in time.";
    counter MASTER_CHANGES = "brine_master_changes_total", "Connections of a minion to another one of its masters.";
    counter PUBLISH_STREAMS_DAMAGED = "brine_publish_streams_damaged_total", "Connections to the publish port that ended because a message was damaged or did not end in time.";
    counter CATCH_UPS_FAILED = "brine_catch_ups_failed_total", "Requests for missed jobs that the master did not answer: jobs may be lost.";
    counter JOBS_INTERRUPTED = "brine_jobs_interrupted_total", "Jobs interrupted because the minion was killed.";
    counter JOBS_REFUSED = "brine_jobs_refused_total", "Jobs that a minion refused because its queue was full.";
    counter BLACKOUT_REFUSED = "brine_blackout_refused_total", "Functions that a minion did not call because it is in blackout mode.";
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
