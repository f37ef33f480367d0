//! Algorithms over text that many parts share.
//!
//! | module | owns |
//! |---|---|
//! | [`glob`] | Python's `fnmatch` |
//! | [`nearest`] | the known word that a mistyped one is most similar to |
//! | [`shell`] | quoting for POSIX shells |

pub mod glob;
pub mod nearest;
pub mod shell;
