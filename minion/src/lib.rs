//! The Brine minion: connects to a master, runs jobs and states, returns what came of them.
//!
//! | module | owns |
//! |---|---|
//! | [`context`] | what a running function sees: configuration, grains, pillar, files, its job |
//! | [`modules`] | execution functions, one file a Salt module |
//! | [`states`] | state functions, one file a Salt module |
//! | [`state`] | from top file to low chunks to results: the state run |
//! | [`grains`] | facts about this host |
//! | [`process`] | child processes of jobs: run, time out, end with all their children |

pub mod context;
pub mod grains;
pub mod modules;
pub mod process;
pub mod state;
pub mod states;
