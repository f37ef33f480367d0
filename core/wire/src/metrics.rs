//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter REQUESTS_REFUSED = "brine_requests_refused_total", "Requests refused: malformed, unknown or not permitted.";
}
