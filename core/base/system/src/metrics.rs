//! The metrics of this crate.

brine_metrics::metrics! {
    counter PROGRAMS_TIMED_OUT = "brine_programs_timed_out_total", "Programs of the master that were killed at their deadline, such as git.";
    counter OUTPUT_CUT = "brine_command_output_cut_total", "Command outputs truncated at `cmd_output_limit`.";
}
