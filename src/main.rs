//! The one binary. Which tool it is depends on the name it is called by; see `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    brine::cli::main(std::env::args_os())
}
