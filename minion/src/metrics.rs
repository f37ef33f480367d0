//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter RETURNS_RETRIED = "brine_returns_retried_total", "Job returns of a minion that were kept because its master did not accept them.";
    counter MINION_EVENTS_LOST = "brine_minion_events_lost_total", "Events of a minion that its master did not accept in time.";
    counter JOBS_INTERRUPTED = "brine_jobs_interrupted_total", "Jobs that a minion was running when it was killed.";
    counter JOBS_REFUSED = "brine_jobs_refused_total", "Jobs that a minion refused because too many were waiting.";
}
