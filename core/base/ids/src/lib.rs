//! Validated ids of jobs and minions.

mod jid;
mod minion_id;

pub use jid::{InvalidJid, Jid};
pub use minion_id::{InvalidMinionId, MinionId, with_domain};
