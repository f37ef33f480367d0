//! The metrics of this crate.

brine_metrics::metrics! {
    counter TASKS_FAILED = "brine_tasks_failed_total", "Long-running tasks of a daemon that panicked or ended unexpectedly.";
    counter EXECUTOR_WORK["executor", "outcome"] = "brine_executor_work_total", "Work items of the executors by outcome: done, panicked, refused.";
    counter EXECUTOR_WAIT["executor"] = "brine_executor_wait_microseconds_total", "Microseconds that work items waited for a thread of their executor.";
}
