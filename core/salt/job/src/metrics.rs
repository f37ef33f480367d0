//! The metrics of this crate.

brine_metrics::metrics! {
    counter RETURNS_LOST = "brine_returns_lost_total", "Job returns that a returner could not store, or that a minion dropped before its master accepted them.";
    counter FIELDS_DROPPED = "brine_request_fields_dropped_total", "Fields of requests that were ignored: unknown ones, and ones that only the master's own tools may send.";
}
