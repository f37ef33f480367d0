//! The metrics of this crate, and the registration of all metrics of a master.

brine_metrics::metrics! {
    counter PUBLISHES = "brine_publishes_total", "Jobs published.";
    counter AUTHENTICATIONS = "brine_authentications_total", "Authentications accepted.";
    counter AUTHENTICATIONS_REFUSED = "brine_authentications_refused_total", "Authentications not accepted: pending, rejected, denied, malformed, or above a limit.";
    counter AUTHENTICATIONS_DEFERRED = "brine_authentications_deferred_total", "Authentications of Brine minions that got a later time to try again, because too many others waited or the address exceeded `auth_rate_limit`.";
    counter LOGINS["system", "outcome"] = "brine_logins_total", "Password authentications with backends of `external_auth` by outcome: accepted, refused, throttled, busy (too many at once), failed (the backend did not answer).";
    counter PUBLISHES_CAUGHT_UP = "brine_publishes_caught_up_total", "Jobs delivered late to minions that were disconnected when they were published.";
    counter PUBLISHES_MISSED = "brine_publishes_missed_total", "Missed jobs that were not delivered to a reconnected minion: too old, or too many.";
    counter RETURNS = "brine_returns_total", "Job returns received.";
    counter RETURNER_OUTAGES = "brine_returner_outages_total", "Outages of job caches and event returners: their servers became unreachable. Their events wait in the journal meanwhile.";
    counter RETURNS_TRIMMED = "brine_returns_trimmed_total", "Returns above `max_event_size` whose events were trimmed.";
    counter REACTIONS_KNOWN = "brine_reactions_known_total", "Reactions not dispatched again after a restart because they had been dispatched before it.";
}

/// Registers the metrics of all crates of a master.
pub fn register() {
    brine_metrics::register(&[
        METRICS,
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
