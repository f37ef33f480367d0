//! The metrics of keys and of stored returns.

brine_metrics::metrics! {
    counter AUTHENTICATIONS = "brine_authentications_total", "Authentications accepted.";
    counter AUTHENTICATIONS_REFUSED = "brine_authentications_refused_total", "Authentications not accepted: pending, rejected, denied, malformed, or above a limit.";
    counter AUTHENTICATIONS_DEFERRED = "brine_authentications_deferred_total", "Authentications of Brine minions that got a later time to try again, because too many others waited or the address exceeded `auth_rate_limit`.";
    counter RETURNER_OUTAGES = "brine_returner_outages_total", "Outages of job caches and event returners: their servers became unreachable. Their events wait in the journal meanwhile.";
    counter RETURNS_TRIMMED = "brine_returns_trimmed_total", "Returns above `max_event_size`, or nested too deep, whose events were trimmed.";
}
