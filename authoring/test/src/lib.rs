//! Unit tests of states: `*.test.yml` files give grains, pillar, mocks and files, and say what the state compiler, the
//! state functions and the reactor return for them. Nothing runs a command or writes to the host.
//!
//! | module | owns |
//! |---|---|
//! | [`format`] | the test files: keys, types, lines of errors |
//! | [`coverage`] | the lines and branches that tests have rendered |
//! | `discover` | the test files below paths, and the roots of their trees |
//! | [`host`] | the minion of a test: mocked functions, the files of a private directory, gates around everything else |
//! | `run` | one test: compiles, renders, examines |
//! | `expect` | expected and actual data, and their differences |
//! | `snapshot` | stored results beside test files |
//! | `saltcheck` | the tests of Salt's module `saltcheck` |
//! | [`report`] | the results as text, JUnit's XML and JSON |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod coverage;
mod discover;
mod expect;
pub mod format;
pub mod host;
pub mod report;
mod run;
mod saltcheck;
mod session;
mod snapshot;
#[cfg(test)]
mod tests;

pub use session::{Report, Session, Settings};
