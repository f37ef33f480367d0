//! The state compiler: from SLS files to high data (ids, states, arguments) and low chunks (one call each, in the order
//! in which they run).
//!
//! | step | file |
//! |---|---|
//! | render each SLS with its includes, convert states to canonical form | `load.rs` |
//! | apply `extend`, `use`, the inverse requisites and `exclude` | `extend.rs` |
//! | check the structure | `verify.rs` |
//! | create the chunks | `low.rs` |
//! | resolve requisites, sort | `graph.rs` |
//!
//! The compiler neither runs states nor renders SLS files: an [`SlsSource`] returns their data. As in Salt, errors are
//! lists of strings; they have Salt's wording.

mod extend;
mod graph;
mod high;
mod load;
mod low;
mod requisite;
mod verify;

pub use high::HighData;
pub use load::{SlsError, SlsSource, load};
pub use low::{Chunk, Dependency, Listener, Low, RunStep};
pub use requisite::{Reference, Requisite, RequisiteKind};

/// The properties of the minion that the compiler depends on.
pub struct Target<'a> {
    /// Whether a state module has `mod_watch`. In other modules `watch` means `require`.
    pub acts_on_watch: &'a dyn Fn(&str) -> bool,
    /// Ignored requisites: `disabled_requisites`.
    pub disabled_requisites: &'a [String],
}

/// Compiles high data to low chunks in the order in which they run.
///
/// # Errors
///
/// All errors of the first step that has any, in Salt's wording.
pub fn compile(mut high: HighData, target: &Target) -> Result<Low, Vec<String>> {
    let mut errors = extend::apply_extensions(&mut high, false);
    errors.append(&mut verify::check(&high.states));
    if !errors.is_empty() {
        return Err(errors);
    }
    errors = extend::apply_requisites_in(&mut high, target.disabled_requisites);
    extend::apply_excludes(&mut high);
    if !errors.is_empty() {
        return Err(errors);
    }
    graph::ordered(low::chunks(&high.states, target), target.disabled_requisites)
}

/// Compiles like [`compile`], but returns the errors of all steps up to the chunks at once, after the given ones: for
/// `state.show_lowstate`.
pub fn compile_to_show(mut high: HighData, mut errors: Vec<String>, target: &Target) -> Result<Low, Vec<String>> {
    errors.append(&mut extend::apply_extensions(&mut high, false));
    errors.append(&mut verify::check(&high.states));
    errors.append(&mut extend::apply_requisites_in(&mut high, target.disabled_requisites));
    extend::apply_excludes(&mut high);
    if !errors.is_empty() {
        return Err(errors);
    }
    graph::ordered(low::chunks(&high.states, target), target.disabled_requisites)
}

/// Compiles high data as it is written, without `extend`, `exclude` and inverse requisites: for `state.show_low_sls`.
pub fn compile_as_written(high: &HighData, target: &Target) -> Result<Low, Vec<String>> {
    let errors = verify::check(&high.states);
    if errors.is_empty() {
        graph::ordered(low::chunks(&high.states, target), target.disabled_requisites)
    } else {
        Err(errors)
    }
}

/// Sorts given low chunks into the order in which they run.
pub fn in_order(chunks: Vec<Chunk>, target: &Target) -> Result<Low, Vec<String>> {
    graph::ordered(chunks, target.disabled_requisites)
}

/// Whether a key is reserved for the compiler: `__sls__`, `__env__`, ...
fn is_dunder(key: &Value) -> bool {
    key.as_str().is_some_and(|key| key.starts_with("__"))
}

#[cfg(test)]
mod tests;

use brine_value::Value;
