//! When scheduled jobs run. Pure: time is passed in.

pub mod dates;
