//! `salt`: state functions only.

pub(crate) mod state;

use brine_context::Room;

/// All functions of this room.
pub(super) static ROOM: Room = Room { states: &[state::FUNCTIONS], ..Room::EMPTY };
