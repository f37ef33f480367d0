//! Child processes of jobs: run, time out, end with all their children.

/// The process groups that a job has started.
#[derive(Debug, Default)]
pub struct Children {}
