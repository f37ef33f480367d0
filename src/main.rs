//! The binary of all tools; see `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    brine_jinja::limits::measure_memory(brine_allocator::held);
    brine::cli::main(std::env::args_os())
}
