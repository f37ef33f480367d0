//! Algorithms over text that many parts share.
//!
//! | module | owns |
//! |---|---|
//! | [`glob`] | Python's `fnmatch` |
//! | [`nearest`] | the known word that a mistyped one is most similar to |
//! | [`network`] | IP networks as Python reads them |
//! | [`shell`] | quoting for POSIX shells |

pub mod glob;
pub mod nearest;
pub mod network;
pub mod shell;
