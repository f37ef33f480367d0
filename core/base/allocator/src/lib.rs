//! The allocator of Brine's programs, jemalloc, and the memory that a thread holds.

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
#[must_use]
pub fn held() -> i64 {
    let counters = COUNTERS.try_with(|counters| *counters).ok().flatten();
    counters.map_or(0, |[allocated, freed]| allocated.get().wrapping_sub(freed.get()).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_of_this_thread_are_counted() {
        let before = held();
        let block = vec![1u8; 1 << 20];
        assert!(held() - before >= 1 << 20);
        drop(block);
        assert!(held() - before < 1 << 20);
    }
}
