//! From SLS files to what is run: high data (ids, states, arguments) and low chunks (one call each, in
//! order).
//!
//! Nothing here runs anything or knows how an SLS is rendered: a [`SlsSource`] gives the data. Errors are
//! texts in Salt's words, as Salt returns them: a list in the place of results.

mod high;
mod low;
mod order;
mod requisite;

pub use high::{HighData, SlsSource, load, load_data};
pub use low::{Chunk, compile};
pub use requisite::{Quantifier, Reference, Requisite, RequisiteKind};

#[cfg(test)]
mod tests;
