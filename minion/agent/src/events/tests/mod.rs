//! The modules `beacons` and `schedule` and their states, with a running minion.

mod beacons;
mod schedule;
