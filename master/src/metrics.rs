//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter PUBLISHES = "brine_publishes_total", "Jobs published.";
    counter AUTHENTICATIONS = "brine_authentications_total", "Authentications that were accepted.";
    counter AUTHENTICATIONS_REFUSED = "brine_authentications_refused_total", "Authentications that were pending, rejected, denied or malformed.";
    counter PUBLISHES_CAUGHT_UP = "brine_publishes_caught_up_total", "Jobs handed to minions that were not connected when they were published.";
    counter PUBLISHES_MISSED = "brine_publishes_missed_total", "Jobs that a minion was too late for, or that exceeded the answer.";
    counter RETURNS = "brine_returns_total", "Job returns taken.";
    counter RETURNS_TRIMMED = "brine_returns_trimmed_total", "Returns that exceeded max_event_size, whose events were trimmed.";
    counter REACTIONS_KNOWN = "brine_reactions_known_total", "Reactions that had been done before a restart and were not done again.";
}
