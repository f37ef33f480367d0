//! The binary of all tools; see `cli`.

use std::process::ExitCode;

use brine_jinja::limits::measure_memory;
use tikv_jemalloc_ctl::thread;

/// Events are allocated by one thread and freed by another, which makes glibc's allocator grow without bound.
/// Configured in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

thread_local! {
    /// jemalloc's counters of the bytes that this thread has allocated and freed.
    static COUNTERS: Option<[thread::ThreadLocal<u64>; 2]> =
        thread::allocatedp::read().ok().zip(thread::deallocatedp::read().ok()).map(<[_; 2]>::from);
}

/// Returns the number of bytes that this thread has allocated and not freed.
fn held() -> i64 {
    let counters = COUNTERS.try_with(|counters| *counters).ok().flatten();
    counters.map_or(0, |[allocated, freed]| allocated.get().wrapping_sub(freed.get()).cast_signed())
}

fn main() -> ExitCode {
    measure_memory(held);
    brine::cli::main(std::env::args_os())
}
