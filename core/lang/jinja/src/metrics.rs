//! The metrics of this crate.

brine_metrics::metrics! {
    counter TEMPLATE_LIMITS_EXCEEDED = "brine_template_limits_exceeded_total", "Renders that exceeded `template_fuel`, `template_memory` or `template_output`.";
}
