//! The metrics of this crate.

brine_metrics::metrics! {
    counter REQUESTS_REFUSED = "brine_requests_refused_total", "Requests refused: malformed, unknown or not permitted.";
}
