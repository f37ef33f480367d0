//! The metrics of this crate.

brine_metrics::metrics! {
    counter ENGINE_ENDS = "brine_engine_ends_total", "Ends of engines, which are started again.";
    counter ENGINE_LINES_REFUSED = "brine_engine_lines_refused_total", "Lines of the engine script that are not events, or whose event could not be published.";
    counter WEBHOOKS_REFUSED = "brine_webhooks_refused_total", "Connections and requests that the engine webhook refused.";
}
