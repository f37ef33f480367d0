//! The one binary. Which tool it is depends on the name it is called by; see `cli`.

use std::process::ExitCode;

/// Events are made by one thread and end in another, which the system's allocator answers with ever more memory.
/// How it is set up: `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    brine::cli::main(std::env::args_os())
}
