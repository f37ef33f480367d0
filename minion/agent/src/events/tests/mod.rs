//! Refreshes, and the modules `beacons` and `schedule` and their states with a running minion.

mod beacons;
mod refreshes;
mod schedule;
