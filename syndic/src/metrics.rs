//! The metrics of this crate, and the registration of all metrics of a syndic.

brine_metrics::metrics! {
    counter JOBS = "brine_syndic_jobs_total", "Jobs of masters above that the syndic has published.";
    counter JOBS_REFUSED = "brine_syndic_jobs_refused_total", "Jobs of masters above that the local master refused or did not take.";
    counter RETURNS = "brine_syndic_returns_total", "Returns of minions that an upstream master has accepted.";
    counter EVENTS = "brine_syndic_events_total", "Events that an upstream master has accepted.";
    counter EVENTS_LOST = "brine_syndic_events_lost_total", "Events that were not forwarded: the journal had removed them, or an upstream master refuses them.";
    counter POSITIONS_DAMAGED = "brine_syndic_positions_damaged_total", "Positions in the journal that could not be read at the start: all events of the journal were sent again.";
    counter POSITIONS_NOT_STORED = "brine_syndic_positions_not_stored_total", "Positions in the journal that could not be stored: after a restart events are sent twice.";
}

/// Registers the metrics of all crates of a syndic.
pub fn register() {
    brine_metrics::register(&[
        METRICS,
        brine_runtime::metrics::METRICS,
        brine_system::metrics::METRICS,
        brine_wire::metrics::METRICS,
        brine_zmtp::metrics::METRICS,
    ]);
}
