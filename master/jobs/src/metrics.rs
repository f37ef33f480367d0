//! The metrics of publishes.

brine_metrics::metrics! {
    counter PUBLISHES = "brine_publishes_total", "Jobs published.";
    counter PUBLISHES_CAUGHT_UP = "brine_publishes_caught_up_total", "Jobs delivered late to minions that were disconnected when they were published.";
    counter PUBLISHES_MISSED = "brine_publishes_missed_total", "Missed jobs that were not delivered to a reconnected minion: too old, or too many.";
}
