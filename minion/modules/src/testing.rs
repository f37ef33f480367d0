//! A minion with all functions of this crate, for unit tests.

brine_testing::with_rooms!(crate::ROOMS);
