//! The modules `beacons` and `schedule` and their states, with a minion that answers them.

mod beacons;
mod schedule;
