//! A minion with the functions of this crate and of those below it, for unit tests.

use brine_context::Rooms;

static ROOMS: Rooms = Rooms(&[brine_modules_files::ROOMS, crate::ROOMS]);

brine_testing::with_rooms!(ROOMS);
