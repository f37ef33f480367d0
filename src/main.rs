//! The binary of all tools; see `cli`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

use std::process::ExitCode;

fn main() -> ExitCode {
    brine_jinja::limits::measure_memory(brine_allocator::held);
    brine::cli::main(std::env::args_os())
}
