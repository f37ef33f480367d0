//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter OUTPUT_CUT = "brine_command_output_cut_total", "Outputs of commands that were cut at cmd_output_limit.";
}
