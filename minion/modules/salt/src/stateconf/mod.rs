//! `stateconf`: state functions only.

pub(crate) mod state;

use brine_context::Room;

pub(super) static ROOM: Room = Room { states: &[state::FUNCTIONS], ..Room::EMPTY };
