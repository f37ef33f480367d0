//! Shared text algorithms.
//!
//! | module | owns |
//! |---|---|
//! | [`binary`] | the difference between text and binary data |
//! | [`glob`] | Python's `fnmatch` |
//! | [`nearest`] | suggestions for misspelt names |
//! | [`network`] | IP networks with the semantics of Python |
//! | [`python_regex`] | regular expressions of Python |
//! | [`shell`] | quoting for POSIX shells |
//! | [`tabs`] | Python's `str.expandtabs` |
//! | [`words`] | command lines into words |
//! | [`xml`] | text in XML |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod binary;
pub mod glob;
pub mod nearest;
pub mod network;
pub mod python_regex;
pub mod shell;
pub mod tabs;
pub mod words;
pub mod xml;
