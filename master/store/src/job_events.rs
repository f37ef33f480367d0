//! Fields of the events of jobs and calls beyond Salt's, which one part of the master writes and another one reads.

/// The field of the event of a new job with the fields of its load that Salt's event does not have.
pub const MORE: &str = "_load";
/// The field of that event that marks a part of a job, such as of a batch: its minions are added to those of the job.
pub const PART: &str = "_part";
/// The field of a return that excludes it from the job cache.
pub const NOT_CACHED: &str = "_nocache";
