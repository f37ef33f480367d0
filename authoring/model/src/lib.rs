//! A tree of the files that authors write: SLS, pillar, top and reactor files and templates, with the ranges of ids,
//! states, arguments, requisites, includes and look-ups in their sources. Nothing is run.
//!
//! | module | owns |
//! |---|---|
//! | [`catalogue`] | the names that are known: functions with their arguments, grains |
//! | [`layout`] | which directories are roots, and the kind of each file |
//! | [`states`] | states, arguments and requisites |
//! | [`file`] | one file: its text, its template, its data for each choice of branches, and the states in it |
//! | [`symbols`] | what each part of a file means, where it is defined and used |
//! | [`cursor`] | what may be typed at a position |
//! | [`grains`] | the grains that minions have, with their documentation |
//! | [`tree`] | all files; incremental by file; [`index`]: what they define, and what is in one run |

pub mod catalogue;
pub mod cursor;
pub mod file;
pub mod grains;
pub mod layout;
pub mod lines;
pub mod states;
pub mod symbols;
pub mod tree;

pub use catalogue::{Catalogue, Functions, OptionMistake, Signature};
pub use file::{File, Problem, ProblemKind};
pub use layout::{FileKind, Layout};
pub use lines::{Lines, Position};
pub use states::{Argument, Include, Requisite, State};
pub use symbols::{Occurrence, Symbol};
pub use tree::Tree;
pub use tree::index::{self, Index, Place};
pub use tree::master::{Master, reactions};
pub use tree::missing::{Missing, Wanted};
