//! The execution of work in a daemon.
//!
//! | module | owns |
//! |---|---|
//! | [`executors`] | named, bounded thread pools for work that blocks |
//! | [`threads`] | threads of their own for blocking work that lasts as long as its daemon |
//! | [`supervisor`] | the tasks of a daemon: panics, restarts, the order of stopping |
//! | [`polling`] | polling at an interval |
//! | [`backoff`] | pauses between the attempts of one operation |
//! | [`seconds`] | durations from configured numbers |

pub mod backoff;
pub mod executors;
pub mod metrics;
pub mod polling;
pub mod seconds;
pub mod supervisor;
pub mod threads;

/// The size of the stack of threads that run jobs and render files, in bytes: that of a main thread. SLS files that
/// include each other need it; of the rest the system makes no memory.
pub const STACK_SIZE: usize = 8 << 20;
