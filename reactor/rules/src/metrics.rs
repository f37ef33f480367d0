//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter RULE_KEYS_FORGOTTEN = "brine_reactor_rule_keys_forgotten_total", "Keys of rules over time dropped because there were too many.";
}
