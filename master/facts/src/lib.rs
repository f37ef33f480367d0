//! What a master knows about its minions: grains, presence and mines ([`Facts`]), the minions of a target, and the pillars
//! that it renders for them ([`pillars`]).

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod facts;
pub mod id_rules;
pub mod pillars;

pub use facts::{Facts, ResolveError, Targets, mine, presence, resolve, syndics};
