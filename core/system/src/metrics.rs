//! The metrics of this crate.

brine_metrics::metrics! {
    counter OUTPUT_CUT = "brine_command_output_cut_total", "Command outputs truncated at `cmd_output_limit`.";
}
